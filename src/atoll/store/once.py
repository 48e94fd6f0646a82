"""A folder of the cache that is made once, and is there whole or not at all.

It is made in a hidden folder next to its place, brought to the disk, and renamed. A lock admits
one process at a time, so the next process removes what a killed one left half made.

    .NAME.lock           held while NAME is made, checked or replaced; never removed
    .NAME.unfinished/    what is being made, and what it replaces

This module imports little, because every server that copies a template runs it at its start.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from atoll.errors import AtollError, DiskFull
from atoll.schema.size import gib
from atoll.store.files import refusal, sync_folder
from atoll.store.locks import is_locked, locked

_UNFINISHED = ".unfinished"


def make_once(
    target: Path,
    make: Callable[[Path], object],
    *,
    what: str,
    needed_bytes: int = 0,
    is_whole: Callable[[Path], bool] = Path.is_dir,
    waiting: Callable[[], None] = lambda: None,
) -> None:
    """Have `make(folder)` make `target`, unless `target` is whole already.

    `make` gets a path where nothing is yet. `what` names the folder's content in messages.
    `needed_bytes`: the room to check for before anything is made. `waiting` is called if another
    process is at it. Raises DiskFull, NotPermitted, and what `make` raises; then `target` is as
    it was before.
    """
    try:
        with locked(lock_of(target), waiting):
            if is_whole(target):
                return
            with staging(target) as stage:  # first, because leftovers take up room
                require_room(target.parent, needed_bytes, what)
                try:
                    make(stage / target.name)
                except DiskFull as fault:
                    raise no_room(target.parent, needed_bytes, f"{what} ({fault})") from None
                put(stage / target.name, target)
    except OSError as fault:
        raise storing_failed(fault, target.parent, needed_bytes, what) from None


def lock_of(target: Path) -> Path:
    return target.with_name(f".{target.name}.lock")


def is_being_made(folder: Path) -> bool:
    """Whether a process makes something in `folder` now. Raises OSError."""
    return any(map(is_locked, folder.glob(".*.lock")))


@contextmanager
def staging(target: Path) -> Iterator[Path]:
    """An empty folder for what will be `target`; it is removed at the end. For the holder of the
    lock only: whatever a killed process left in it goes first. Raises OSError."""
    stage = target.with_name(f".{target.name}{_UNFINISHED}")
    shutil.rmtree(stage, ignore_errors=True)
    stage.mkdir(mode=0o700)
    try:
        yield stage
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def put(made: Path, target: Path) -> None:
    """Rename the folder `made` to `target`, once all of it is on the disk.

    An old `target` goes into the staging folder, and comes back if the rename fails. Raises
    OSError."""
    sync_file_system(made)
    old = target.with_name(f".{target.name}{_UNFINISHED}") / "old"
    replaces = os.path.lexists(target)
    if replaces:
        target.rename(old)
    try:
        made.rename(target)
    except BaseException:
        if replaces:
            old.rename(target)
        raise
    sync_folder(target.parent)


def remove_leftovers(folder: Path) -> None:
    """Remove what killed processes left in `folder`. For the holder of the folder's lock only."""
    for path in folder.glob(f".*{_UNFINISHED}"):
        shutil.rmtree(path, ignore_errors=True)


def remove_folder(target: Path, *, stage: Path | None = None) -> None:
    """Remove a folder: its name is gone at once, its files follow. Raises OSError.

    `stage`: the folder whose lock the caller holds, where that is not the parent."""
    going = (stage or target.parent) / f".{target.name}{_UNFINISHED}"
    target.rename(going)
    shutil.rmtree(going)


def copy_tree(source: str, target: str) -> None:
    """Copy folders and the content of files. Raises the first OSError as it came, which
    shutil.copytree would turn into text."""

    def fail(fault: OSError) -> None:
        raise fault

    for folder, _, names in os.walk(source, onerror=fail):
        there = target + folder[len(source) :]
        os.mkdir(there, 0o700)
        for name in names:
            shutil.copyfile(f"{folder}/{name}", f"{there}/{name}")


def require_room(folder: Path, needed_bytes: int, what: str) -> None:
    """Raises DiskFull if the file system of `folder` has less than `needed_bytes` free."""
    if _free_bytes(folder) < needed_bytes:
        raise no_room(folder, needed_bytes, what)


def no_room(folder: Path, needed_bytes: int, what: str) -> DiskFull:
    free = gib(_free_bytes(folder))
    needs = f"it needs about {gib(needed_bytes)}; " if needed_bytes else ""
    return DiskFull(
        f"{folder}: not enough room for {what}: {needs}{free} is free; make room, or set "
        "XDG_CACHE_HOME to a folder on a larger disk"
    )


def _free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


def storing_failed(fault: OSError, folder: Path, needed_bytes: int, what: str) -> AtollError:
    """The error for a fault of the file system while `what` was stored in `folder`."""
    kind = refusal(fault)
    if kind is DiskFull:
        return no_room(folder, needed_bytes, what)
    return kind(f"{what}: {fault.filename or folder}: {fault.strerror or fault}")


def sync_file_system(folder: Path) -> None:
    """Bring all that lies on the file system of `folder` to the disk. Raises OSError."""
    import ctypes  # an instance whose template is there does without

    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # One call for thousands of files: an fsync of each would take minutes.
        if ctypes.CDLL(None, use_errno=True).syncfs(descriptor) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(folder))
    finally:
        os.close(descriptor)
