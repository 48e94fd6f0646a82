"""The end of a query: a time limit, and what a client raises when a query has no result."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import ClassVar

from atoll.errors import EngineFailed, ServerGone


def hang_up(descriptor: int) -> None:
    """Shut a connection's socket down and leave it open: ends any wait of another thread on it."""
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as line:
        line.shutdown(socket.SHUT_RDWR)


class OverTime(TimeoutError):
    """'no answer within 2 s'."""


class TimeLimit:
    """Limits the time of a query. When the time is over, it calls `cancel` and shuts the
    connection's socket down. That ends any wait on the socket, even if the server does not answer.

    On exit it raises OverTime if the time is over, even if an answer came: a server may send the
    rows that it has as the result of a query that it gives up. Only an interruption (Ctrl-C) passes
    unchanged. The caller must close the connection afterwards.
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
                return  # the answer came at the last moment
            self._is_over = True
            # While `cancel` runs, another thread may close the descriptor, and its number may
            # become another connection's. So this thread uses a duplicate.
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
        # On a busy machine the timer's thread may be late.
        is_over = self._is_over or time.monotonic() >= self._ends
        if is_over and (kind is None or issubclass(kind, Exception)):
            raise OverTime(f"no answer within {self._seconds:g} s") from None


class QueryEnd(ABC):
    """The base of a client of one connection. A query without a result ends in one of five ways:

    - refused: the server answered with an error. Only then does the client stay open.
    - late: the limit passed. The query is cancelled.
    - gone: the server is lost. Raises ServerGone.
    - closed: another thread closed the client.
    - interrupted, by Ctrl-C or a bug: the fault passes unchanged. The query is cancelled, because a
      later answer could not be told from the answer to this one.
    """

    server: ClassVar[str]  # 'SQL host'
    where: str  # 'localhost:5432'

    @property
    @abstractmethod
    def is_closed(self) -> bool: ...

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def explain(self, fault: Exception) -> EngineFailed | None:
        """`gone(...)` if the server is lost, EngineFailed if it refused the query, None for a
        bug."""

    def cancel(self) -> None:
        """Cancel the query. By default the server does so when the client hangs up."""
        self.close()

    @contextlib.contextmanager
    def asking(self, timeout_s: float) -> Iterator[None]:
        """Around a query: raises what `execute` promises, with the driver's fault as its cause. A
        query that raises TimeoutError is late."""
        try:
            yield
        except BaseException as fault:
            end = self._end(fault, timeout_s)
            if end is None:
                raise
            raise end from fault

    def _end(self, fault: BaseException, timeout_s: float) -> EngineFailed | None:
        end: EngineFailed | None = None
        if isinstance(fault, Exception):
            if self.is_closed:
                end = self.closed()
            elif isinstance(fault, TimeoutError):
                end = EngineFailed(f"no answer within {timeout_s:g} s; the query was cancelled")
            else:
                end = self.explain(fault)
                if end is not None and not isinstance(end, ServerGone):
                    return end
        if end is None:
            self.cancel()
        self.close()
        return end

    def closed(self) -> EngineFailed:
        return EngineFailed(f"the connection to {self.where} was closed")

    def gone(self, reason: str) -> ServerGone:
        return ServerGone(f"the {self.server} at {self.where} is gone ({reason}); see its log")
