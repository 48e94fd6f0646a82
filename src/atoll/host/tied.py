"""A program that dies with the process that started it, however that one goes (prctl(2)).

For short helpers that no keeper watches. PR_SET_PDEATHSIG does not reach grandchildren, so it
is not what a deployment rests on.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def tied_argv(program: str, *, by: int = signal.SIGKILL) -> tuple[str, ...]:
    """What to start instead of `program`. It is found on PATH as execvp does.

    `by`: the signal that it then gets. A step of its own, because code between fork and exec is
    not safe beside threads.
    """
    parent = str(os.getpid())
    return (sys.executable, "-P", "-m", "atoll.host.tied", parent, str(int(by)), program)


def main() -> None:
    parent, number, *argv = sys.argv[1:]
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
    if os.getppid() != int(parent):
        sys.exit("the process that wanted this is gone")  # before the call above took hold
    try:
        os.execvp(argv[0], argv)
    except OSError as fault:
        sys.exit(f"{argv[0]}: cannot be run ({fault.strerror})")


if __name__ == "__main__":
    main()
