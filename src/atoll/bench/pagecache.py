"""Drops files from the page cache and checks whether they are gone.

On a NUMA machine the page cache is on the node where the first reader ran. Each deployment must
read the data itself; otherwise the second one works on memory that the first one placed.
posix_fadvise(POSIX_FADV_DONTNEED) drops the clean pages of one file and needs no privilege
(/proc/sys/vm/drop_caches drops all files and needs root), so dirty pages are written first.
Pages that a process has mapped stay; mincore(2) shows them.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterable

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = (
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_long,
)
_LIBC.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_LIBC.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
_MAP_FAILED = ctypes.c_void_p(-1).value


def drop(paths: Iterable[str]) -> float | None:
    """Drop the files' pages; returns the share that is still cached, None if it is unknown.

    Raises OSError if a file cannot be opened.
    """
    pages = cached = 0
    known = True
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            found = _resident(descriptor)
        finally:
            os.close(descriptor)
        if found is None:
            known = False
        else:
            cached += found[0]
            pages += found[1]
    if not known:
        return None
    return cached / pages if pages else 0.0


def _resident(descriptor: int) -> tuple[int, int] | None:
    """(pages in the cache, all pages) of an open file; None if the kernel would not say."""
    size = os.fstat(descriptor).st_size
    if size == 0:
        return 0, 0
    # Python's own mmap does not give its address away for a read-only map, hence libc's.
    address = _LIBC.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
    if address == _MAP_FAILED:
        return None
    try:
        pages = -(-size // mmap.PAGESIZE)
        flags = (ctypes.c_ubyte * pages)()
        if _LIBC.mincore(address, size, flags) != 0:
            return None
        return sum(flag & 1 for flag in flags), pages
    finally:
        _LIBC.munmap(address, size)
