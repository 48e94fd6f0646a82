"""A folder of the cache appears whole or not at all: made beside its place, synced, renamed.

One at a time holds the lock. So what a killed one left half made is nobody's, and whoever holds
the lock next clears it away. What was fetched stays: it is checked again before it is used.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from atoll.errors import DownloadFailed, NotPermitted
from atoll.store.files import sync_folder

_STAGING = ".making-"
_GOING = ".going-"


@contextlib.contextmanager
def alone(folder: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock of `folder`; `waiting` is told if another one has it. Clears leftovers away."""
    try:
        lock = (folder / ".lock").open("w")
    except OSError as fault:
        raise NotPermitted(f"{folder}: cannot be written ({fault.strerror})") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(lock, fcntl.LOCK_EX)
        for path in folder.glob(".*"):
            if path.name.startswith((_STAGING, _GOING)):
                shutil.rmtree(path, ignore_errors=True)
        yield


@contextlib.contextmanager
def staging(folder: Path) -> Iterator[Path]:
    """An empty folder below `folder`, gone at the end."""
    made = Path(tempfile.mkdtemp(prefix=_STAGING, dir=folder))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def put(tree: Path, into: Path) -> None:
    """Make `tree`, a folder of the same file system, the folder `into`, which is not there yet.
    Raises OSError."""
    tree.chmod(0o755)
    descriptor = os.open(tree, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # One call for thousands of files: an fsync of each would take minutes.
        if ctypes.CDLL(None, use_errno=True).syncfs(descriptor) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(tree))
    finally:
        os.close(descriptor)
    tree.rename(into)
    sync_folder(into.parent)


def take_away(path: Path) -> None:
    """Remove a folder: gone at once, its files after. Raises NotPermitted."""
    going = path.parent / f"{_GOING}{path.name}"
    try:
        path.rename(going)
        shutil.rmtree(going)
    except OSError as fault:
        raise NotPermitted(f"{path}: cannot be removed ({fault.strerror})") from None


def require_room(folder: Path, needed_bytes: int, what: str) -> None:
    """Raises DownloadFailed if the file system has less than that."""
    free = shutil.disk_usage(folder).free
    if free < needed_bytes:
        raise no_room(folder, needed_bytes, what)


def no_room(folder: Path, needed_bytes: int, what: str) -> DownloadFailed:
    free = shutil.disk_usage(folder).free
    return DownloadFailed(
        f"{folder}: {what} needs {needed_bytes / 1e6:.0f} MB there, {free / 1e6:.0f} MB are free; "
        "make room, or set XDG_CACHE_HOME to a folder on a larger disk"
    )


def is_full(fault: OSError) -> bool:
    return fault.errno in (errno.ENOSPC, errno.EDQUOT)
