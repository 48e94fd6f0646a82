"""Makes a process the parent of orphans, and reaps them (PR_SET_CHILD_SUBREAPER, prctl(2)).

The descendants of a subreaper cannot leave it. When the parent of one dies, also after setsid and a
double fork, it becomes the child of the nearest living subreaper above it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


def become_subreaper(*, wanted: bool = True) -> None:
    """Or cease to be one. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, int(wanted), 0, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def reap(reaped: Callable[[int], bool] = lambda pid: False) -> None:
    """Reap every child that has ended, unless `reaped(pid)` has done so and returns True."""
    while True:
        try:
            # Leaves the status, so that the code that waits for a known child gets it.
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None:
            return
        if not reaped(ended.si_pid):
            os.waitpid(ended.si_pid, 0)
