"""Locates the page cache of the data files that a process has open or mapped, by node.

Cached pages of a file belong to no process, so numa_maps shows only those that this process has
mapped and touched. This module examines the whole cache of a file;
native/src/inspect/page_cache.hpp explains how, and what it costs. Files are opened through
/proc/PID, which gives the very file even if it has been deleted or lies in a container.
"""

from __future__ import annotations

import errno

from atoll.host.api import Host
from atoll.inspect.mappings import parse_maps
from atoll.schema.inspection import PageCacheLook

MOST_FILES = 16
MOST_DESCRIPTORS = 4096
# A node's share is then known to 3 % (95 %), at about 2 us per page.
PAGES_LOOKED_AT = 1024
_PAGE_BYTES = 4096
_NO_FILES = ("/dev/", "/proc/", "/sys/", "/memfd:", "/SYSV", "/anon_hugepage")


def look_at_page_cache(host: Host, pid: int) -> tuple[list[PageCacheLook], list[str]]:
    """The largest files, and what remains unknown and why.

    Leaves out programs and libraries (mapped executable), since every process of the machine shares
    them.
    """
    try:
        mapped, programs = _mapped_files(host, pid)
        opened, unknown = _open_files(host, pid)
    except OSError as fault:
        return [], [f"page cache: {_why(fault)}"]
    sized: list[tuple[int, str, str]] = []
    for name, path in {**mapped, **opened}.items():
        if name not in programs and (size := _size(host, path)):
            sized.append((size, name, path))
    sized.sort(key=lambda file: (-file[0], file[1]))
    if len(sized) > MOST_FILES:
        unknown.append(f"page cache: only the {MOST_FILES} largest of {len(sized)} files")
    looks = []
    files_by_reason: dict[str, list[str]] = {}
    for _, name, path in sized[:MOST_FILES]:
        try:
            look = _look(host, name, path)
        except OSError as fault:
            files_by_reason.setdefault(_why(fault), []).append(name)
            continue
        looks.append(look)
        if look.cached_bytes and not look.bytes_by_node:
            why = "too little of it is cached to estimate its nodes"
            files_by_reason.setdefault(why, []).append(name)
    unknown += (f"page cache of {_named(names)}: {why}" for why, names in files_by_reason.items())
    return looks, unknown


def _named(files: list[str]) -> str:
    return files[0] if len(files) == 1 else f"{len(files)} files, for example {files[0]}"


def _mapped_files(host: Host, pid: int) -> tuple[dict[str, str], set[str]]:
    """Paths by name, and the names of the files that are mapped executable."""
    vmas = [
        vma
        for vma in parse_maps(host.read_text(f"/proc/{pid}/maps"))
        if vma.name.startswith("/") and not vma.name.startswith(_NO_FILES)
    ]
    paths = {vma.name: f"/proc/{pid}/root{vma.name}" for vma in vmas}
    return paths, {vma.name for vma in vmas if vma.executable}


def _open_files(host: Host, pid: int) -> tuple[dict[str, str], list[str]]:
    folder = f"/proc/{pid}/fd"
    descriptors = sorted(host.list_dir(folder), key=lambda name: (len(name), name))
    paths = {}
    for descriptor in descriptors[:MOST_DESCRIPTORS]:
        try:
            name = host.read_link(f"{folder}/{descriptor}")
        except OSError:
            continue  # closed meanwhile
        if name.startswith("/") and not name.startswith(_NO_FILES):
            paths[name] = f"{folder}/{descriptor}"
    left = len(descriptors) - MOST_DESCRIPTORS
    return paths, [f"page cache: {left} more open files were not examined"] if left > 0 else []


def _size(host: Host, path: str) -> int:
    try:
        return host.file_size(path)
    except OSError:  # gone, or a directory, a pipe
        return 0


def _look(host: Host, name: str, path: str) -> PageCacheLook:
    pages = host.cached_nodes(path, most_pages=PAGES_LOOKED_AT)
    cached_bytes = min(pages.cached_pages * _PAGE_BYTES, pages.size_bytes)
    nodes = [int(node) for node in pages.nodes]
    return PageCacheLook(
        path=name,
        size_bytes=pages.size_bytes,
        cached_bytes=cached_bytes,
        bytes_by_node={
            node: round(cached_bytes * nodes.count(node) / len(nodes))
            for node in sorted(set(nodes))
        },
        sampled=len(nodes) < pages.cached_pages,
    )


def _why(fault: OSError) -> str:
    if fault.errno == errno.EPERM:
        return (
            "the kernel answers only the file's owner or users with write permission, or a "
            "container's seccomp profile forbids the calls (mincore, move_pages, process_vm_readv)"
        )
    if fault.errno == errno.EACCES:
        return "not permitted: run as its user or as root (CAP_SYS_PTRACE)"
    if fault.errno == errno.ENODEV:
        return "its file system does not support mapping"
    return fault.strerror or str(fault)
