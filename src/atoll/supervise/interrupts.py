"""Ctrl-C and SIGTERM in the process that owns a deployment.

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

_INTERRUPTS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def terminate_is_interrupt() -> Iterator[None]:
    """Make SIGTERM raise KeyboardInterrupt as SIGINT does, so that both clean up."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


@contextmanager
def shielded() -> Iterator[None]:
    """Delay Ctrl-C and SIGTERM until the clean-up is done.

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
