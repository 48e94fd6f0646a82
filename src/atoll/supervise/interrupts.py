"""Ctrl-C, SIGTERM and SIGHUP in the process that owns a deployment.

Correctness does not depend on these handlers: whenever the owner ends, its end of the control
socket closes, and the supervisor ends everything. The handlers only make the owner wait for that,
and give it the right exit code.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from atoll.errors import CheckFailed

_ENDS = (signal.SIGTERM, signal.SIGHUP)
_INTERRUPTS = (signal.SIGINT, *_ENDS)


@contextmanager
def terminate_is_interrupt() -> Iterator[None]:
    """Make SIGTERM and SIGHUP raise KeyboardInterrupt as SIGINT does, so that all clean up. One
    that is ignored (nohup) stays so."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    previous = {number: signal.getsignal(number) for number in _ENDS}
    for number, handler in previous.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def shielded() -> Iterator[None]:
    """Delay Ctrl-C, SIGTERM and SIGHUP until the clean-up is done.

    A delayed signal is raised afterwards, unless the command ends anyway: after a first Ctrl-C,
    after a failed check, or if the clean-up itself fails.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread gets signals
        return
    ends_anyway = isinstance(sys.exception(), KeyboardInterrupt | CheckFailed)
    came: list[int] = []
    previous = [
        (number, signal.signal(number, lambda number, _: came.append(number)))
        for number in _INTERRUPTS
    ]
    try:
        yield
    finally:
        for number, handler in previous:
            signal.signal(number, handler)
    if not ends_anyway:
        for missed in dict.fromkeys(came):
            signal.raise_signal(missed)
