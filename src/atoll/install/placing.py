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
def alone(
    folder: Path, waiting: Callable[[], None], *, clearing: Path | None = None
) -> Iterator[None]:
    """Hold the lock of `folder`; `waiting` is told if another one has it. Clears leftovers away
    there, or in the folder `clearing`."""
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
        for path in (clearing or folder).glob(".*"):
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


def put(tree: Path, into: Path, *, old: Path) -> None:
    """Make `tree` the folder `into`. What was there goes to `old`, and comes back if that fails.
    All on one file system. Raises OSError."""
    tree.chmod(0o755)
    descriptor = os.open(tree, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # One call for thousands of files: an fsync of each would take minutes.
        if ctypes.CDLL(None, use_errno=True).syncfs(descriptor) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(tree))
    finally:
        os.close(descriptor)
    replaced = os.path.lexists(into)
    if replaced:
        into.rename(old)
    try:
        tree.rename(into)
    except BaseException:
        if replaced:
            old.rename(into)
        raise
    sync_folder(into.parent)


def take_away(path: Path, *, by_way_of: Path | None = None) -> None:
    """Remove a folder: gone at once, its files after. Raises NotPermitted.

    `by_way_of`: the folder whose lock is held, where `path` is not in it."""
    if path.is_symlink():
        raise NotPermitted(
            f"{path}: is a link of yours to {os.readlink(path)}; remove what it leads to, then it"
        )
    going = (by_way_of or path.parent) / f"{_GOING}{path.name}"
    try:
        path.rename(going)
        shutil.rmtree(going)
    except OSError as fault:
        raise NotPermitted(f"{path}: cannot be removed ({fault.strerror or fault})") from None


def is_being_made(folder: Path) -> bool:
    """Whether a process makes something in there now: it holds the lock beside what it makes."""
    for path in folder.glob("*.lock"):
        try:
            with path.open() as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except FileNotFoundError:
            continue
        except OSError as fault:
            raise NotPermitted(f"{path}: cannot be read ({fault.strerror})") from None
    return False


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
