"""Where programs are; Atoll's own next to this interpreter, where pip puts them, or on the PATH."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProgramFiles:
    """The paths of a program and of what it loads."""

    program: str
    libraries: tuple[str, ...] = ()  # those that it loads while it runs
    folders: str = ""  # of its other libraries, as its LD_LIBRARY_PATH has them


def find_program(name: str) -> str | None:
    """The path of the program; None if it is not installed."""
    beside = os.path.join(os.path.dirname(sys.executable), name)
    return beside if os.access(beside, os.X_OK) else shutil.which(name)


def other_rights(program: str) -> str:
    """Whose rights the program gets that this user lacks ('': nobody's): the dynamic linker ignores
    LD_PRELOAD and LD_LIBRARY_PATH then (ld.so(8), secure-execution mode)."""
    try:
        info, attributes = os.stat(program), os.listxattr(program)
    except OSError:
        return ""
    if info.st_mode & stat.S_ISUID and info.st_uid != os.getuid():
        return "another user's rights (setuid)"
    if info.st_mode & stat.S_ISGID and info.st_gid != os.getgid():
        return "another group's rights (setgid)"
    if "security.capability" in attributes and os.getuid():
        return "capabilities of its own"
    return ""
