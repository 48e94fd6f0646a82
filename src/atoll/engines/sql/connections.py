"""What clients of servers share: the Python package that they need, a limit that holds, and rows as
`QueryResult` wants them."""

from __future__ import annotations

import contextlib
import datetime
import importlib
import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from atoll.engines.api import Client, Column
from atoll.engines.sql.types import Kind, kind_of
from atoll.errors import ClientMissing, EngineFailed


def require_client(package: str, module: str, *, engine: str) -> None:
    """Raises ClientMissing if `module`, an extra of Atoll's, cannot be imported. Call it once the
    engine was found: else a user who has the engine would install another one."""
    try:
        importlib.import_module(module)
    except ImportError as fault:
        raise ClientMissing(
            f"{package} cannot be used in this Python ({str(fault).splitlines()[0]}); "
            f"install it with: pip install 'atoll[{engine}]'"
        ) from None


def hang_up(descriptor: int) -> None:
    """Shut a connection's socket down and leave it open: ends any wait of another thread on it."""
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as line:
        line.shutdown(socket.SHUT_RDWR)


class OverTime(TimeoutError):
    """'no answer within 2 s'."""


class TimeLimit:
    """Around a query: once the time is over, `cancel` is called and the connection's socket shut
    down, which ends any wait on it, also for a server that answers nothing any more.

    Its end raises OverTime once the time is over, also where an answer came: of a query that it
    gives up, a server may send what it has as if that were all. Only an interruption goes through
    as it is. The connection is to be closed then.
    """

    def __init__(self, descriptor: int, seconds: float, cancel: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._seconds = seconds
        self._cancel = cancel
        self._ends = 0.0
        self._is_over = False
        self._lock = threading.Lock()
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def _end(self) -> None:
        with self._lock:
            if self._timer.finished.is_set():
                return  # the answer came at the last instant
            self._is_over = True
            # By a descriptor of its own: while `cancel` lasts, another thread may close that one,
            # and its number become another connection's.
            with (
                contextlib.suppress(OSError),
                socket.socket(fileno=os.dup(self._descriptor)) as line,
            ):
                try:
                    self._cancel()
                finally:
                    line.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> None:
        self._ends = time.monotonic() + self._seconds
        self._timer.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._lock:
            self._timer.cancel()
        # On a busy machine a thread may come too late to its own limit.
        is_over = self._is_over or time.monotonic() >= self._ends
        if is_over and (kind is None or issubclass(kind, Exception)):
            raise OverTime(f"no answer within {self._seconds:g} s") from None


def connect_each(endpoints: Sequence[str], connect: Callable[[str], Client]) -> list[Client]:
    """A client for each endpoint, in order; none stays open if one cannot be reached."""
    clients: list[Client] = []
    try:
        for endpoint in endpoints:
            clients.append(connect(endpoint))  # noqa: PERF401 - those before are closed
    except EngineFailed:
        for client in clients:
            client.close()
        raise
    return clients


def plain_rows(columns: Sequence[Column], rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Only types that `QueryResult` allows: what is none of them, as a timestamp, becomes text."""
    # Most texts are str already, and 10,000 rows made anew would cost milliseconds.
    odd = {
        place
        for place, column in enumerate(columns)
        if kind_of(column.type) is Kind.TEXT
        and not {type(row[place]) for row in rows} <= {str, type(None)}
    }
    if not odd:
        return rows
    return [
        tuple(_as_text(value) if place in odd else value for place, value in enumerate(row))
        for row in rows
    ]


def _as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value.isoformat() if isinstance(value, datetime.date) else str(value)
