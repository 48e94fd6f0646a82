"""Locks between processes, by flock(2): the kernel frees one when its last holder is gone."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def try_lock(descriptor: int) -> bool:
    """Lock the open file for as long as it stays open; False if another process has locked it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def locked(path: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Make the lock file and hold its lock. Calls `waiting` once if another process has the lock.
    Raises OSError."""
    with path.open("a") as lock:
        if not try_lock(lock.fileno()):
            waiting()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock now; False if the file is gone. Raises OSError."""
    try:
        with path.open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        pass
    return False
