"""Calls into client libraries, which may hang whatever time limit they were given.

A call runs in a thread of its own. If it does not return in time, the caller gets an error and the
thread stays behind; its wait ends when the server is ended.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from atoll.engines.api import Client
from atoll.engines.calls import foreign_faults
from atoll.errors import AtollError, EngineFailed

# How much later than its limit a client may return, so that it can close its connection.
SLACK_S = 10.0
_CLOSE_S = 5.0

_T = TypeVar("_T")


def within(
    limit_s: float,
    what: str,
    call: Callable[[], _T],
    *,
    undo: Callable[[_T], None] = lambda _: None,
) -> _T:
    """Returns or raises what `call` does. Raises EngineFailed naming `what` if the call takes
    SLACK_S longer than `limit_s`, which is the limit that the call has itself. A result that comes
    too late is passed to `undo`, in the thread of the call."""
    answers: queue.SimpleQueue[tuple[_T] | BaseException] = queue.SimpleQueue()
    given_up = threading.Event()

    def ask() -> None:
        try:
            with foreign_faults():
                answers.put((call(),))
        except BaseException as fault:  # the waiting thread raises it
            answers.put(fault)
        # Either the waiting thread takes the answer, or this one.
        if given_up.is_set():
            with contextlib.suppress(queue.Empty, AtollError, OSError):
                late = answers.get_nowait()
                if not isinstance(late, BaseException):
                    undo(late[0])

    threading.Thread(target=ask, daemon=True).start()
    try:
        answer = answers.get(timeout=limit_s + SLACK_S)
    except queue.Empty:
        given_up.set()
        try:
            answer = answers.get_nowait()  # it came at the last instant
        except queue.Empty:
            raise EngineFailed(
                f"{what} hangs: no answer {SLACK_S:g} s after its limit of {limit_s:g} s"
            ) from None
    if isinstance(answer, BaseException):
        raise answer
    return answer[0]


def close_all(clients: Iterable[Client]) -> None:
    """Close all clients in parallel; one that hangs is left behind."""

    def close(client: Client) -> None:
        with contextlib.suppress(AtollError, OSError), foreign_faults():  # the server may be gone
            client.close()

    threads = [threading.Thread(target=close, args=(client,), daemon=True) for client in clients]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + _CLOSE_S
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
