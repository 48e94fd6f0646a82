"""Ctrl-C and SIGTERM in the process that owns a deployment.

Correctness does not rest on these handlers: if the owner goes at any instruction, its end
of the control socket closes and the supervisor takes everything down. They only make the
owner wait for that, and let its exit code tell the truth.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from atoll.errors import CheckFailed

_INTERRUPTS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def terminate_is_interrupt() -> Iterator[None]:
    """SIGTERM raises KeyboardInterrupt as SIGINT does, so that both unwind and clean up."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


@contextmanager
def shielded() -> Iterator[None]:
    """Ctrl-C does not break off the cleaning up, and is heeded after it, as the process would have.

    Not a second one, in the cleaning up after a first: who presses twice means the same thing
    twice. Nor beside a fault of the cleaning up, or a failed check, which end the command anyway
    and have more to tell.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals reach the main thread only
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
