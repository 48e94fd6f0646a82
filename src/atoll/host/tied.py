"""A program that dies with the process that started it, however that one ends (prctl(2)).

It is for short helpers that no keeper watches. PR_SET_PDEATHSIG does not reach grandchildren, so
deployments do not depend on it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def tied_argv(program: str, *, by: int = signal.SIGKILL) -> tuple[str, ...]:
    """The command that runs `program`, found on the PATH as execvp does, tied to this process.

    `by`: the signal that the program gets when this process ends. It is a program of its own,
    because code between fork and exec is not safe in a process with threads.
    """
    parent = str(os.getpid())
    return (sys.executable, "-P", "-m", "atoll.host.tied", parent, str(int(by)), program)


def main() -> None:
    parent, number, *argv = sys.argv[1:]
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
    if os.getppid() != int(parent):
        sys.exit("the process that started this is gone")  # it ended before the call above
    try:
        os.execvp(argv[0], argv)
    except OSError as fault:
        sys.exit(f"{argv[0]}: cannot be run ({fault.strerror})")


if __name__ == "__main__":
    main()
