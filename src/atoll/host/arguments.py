"""Taking a secret out of this process's own command line, as ps(1) and /proc/PID/cmdline show it.

A password on a command line is seen by every user of the machine. So it is
overwritten where the kernel keeps it, in this process's own memory. It can be seen for the moment
until then, so the environment is the better place for it.
"""

from __future__ import annotations

import ctypes
import os

_ARG_START, _ARG_END = 47, 48  # of proc(5)'s stat, counted from 0


def hide(secret: str) -> None:
    """Overwrite every occurrence of the secret by x; does nothing where /proc does not tell."""
    try:
        with open("/proc/self/stat", "rb") as source:
            # The name in parentheses may hold blanks.
            fields = source.read().rpartition(b")")[2].split()
    except OSError:
        return
    start, end = int(fields[_ARG_START - 2]), int(fields[_ARG_END - 2])
    if not start < end:
        return
    arguments = ctypes.string_at(start, end - start)
    wanted = os.fsencode(secret)
    place = arguments.find(wanted)
    while wanted and place >= 0:
        ctypes.memset(start + place, ord("x"), len(wanted))
        place = arguments.find(wanted, place + len(wanted))
