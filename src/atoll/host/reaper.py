"""Orphans: how a process becomes their parent, and buries them (PR_SET_CHILD_SUBREAPER, prctl(2)).

The descendants of a subreaper cannot leave it: one whose parent dies, also after setsid and
a double fork, becomes the child of the nearest subreaper above it that lives.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


def become_subreaper() -> None:
    """Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def reap(buried: Callable[[int], bool] = lambda pid: False) -> None:
    """Bury every child that has ended. `buried` may do it first; it then says True."""
    while True:
        try:
            # Looked at first, so that whoever waits for a known child gets its status.
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None:
            return
        if not buried(ended.si_pid):
            os.waitpid(ended.si_pid, 0)
