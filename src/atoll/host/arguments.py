"""Removes a secret from the command line of this process, as ps(1) and /proc/PID/cmdline show it.

Every user of the machine can see a password on a command line. So Atoll overwrites it where the
kernel reads it, in the memory of this process. Until then it is visible for a moment, so the
environment is the better place for it.
"""

from __future__ import annotations

import ctypes
import os

_ARG_START, _ARG_END = 47, 48  # of proc(5)'s stat, counted from 0


def hide(secret: str) -> None:
    """Overwrite every occurrence of the secret with x; does nothing without /proc."""
    try:
        with open("/proc/self/stat", "rb") as source:
            # The name in parentheses may contain blanks.
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
