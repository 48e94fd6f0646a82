"""A client of one SQL host over its UNIX socket; what `Engine.connect` gives.

Promises: every fault is an EngineFailed of one line; after a query past its limit, or a lost
host, the connection is closed (which cancels the query there) and stays so.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any

from atoll.engines.api import Client, QueryResult
from atoll.engines.sql.protocol import (
    MAX_LINE_BYTES,
    decode,
    decode_result,
    decode_scheduler,
    decode_work,
    encode,
)
from atoll.errors import EngineFailed, ServerGone
from atoll.schema.results import EngineWork, SchedulerState


class SocketClient:
    """A `HostedClient`, `ScheduledClient` and `CountingClient` of atoll.engines.api. Not for use
    by several threads at once."""

    def __init__(self, path: str, *, timeout_s: float) -> None:
        self._path = path
        self._socket: socket.socket | None = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout_s)
        try:
            self._socket.connect(path)
        except OSError as fault:
            self.close()
            raise EngineFailed(
                f"no SQL host answers at {path} ({fault.strerror or fault}); "
                "see 'atoll ps' for what is up"
            ) from None

    def execute(self, sql: str, *, timeout_s: float) -> QueryResult:
        return self.ask(sql, timeout_s=timeout_s)()

    def ask(self, sql: str, *, timeout_s: float) -> Callable[[], QueryResult]:
        """See `atoll.engines.api.HostedClient`."""
        told = self._ask({"do": "execute", "sql": sql}, timeout_s)
        return lambda: decode_result(told, self._ask({"do": "values"}, timeout_s))

    def instances(self, *, timeout_s: float) -> int:
        return int(self._ask({"do": "instances"}, timeout_s)["instances"])

    def scheduler(self, *, timeout_s: float) -> SchedulerState:
        """What Atoll's scheduler did. Raises EngineFailed too if the engine schedules itself."""
        return decode_scheduler(self._ask({"do": "scheduler"}, timeout_s))

    def work(self, *, timeout_s: float) -> dict[str, EngineWork]:
        """See `atoll.engines.api.CountingClient`."""
        return decode_work(self._ask({"do": "work"}, timeout_s))

    def close(self) -> None:
        link, self._socket = self._socket, None
        if link is None:
            return
        with contextlib.suppress(OSError):
            link.shutdown(socket.SHUT_RDWR)  # another thread may wait for its answer
        link.close()

    def _ask(self, message: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        link = self._socket
        if link is None:
            raise self._was_closed()
        try:
            line = self._exchange(link, encode(message), time.monotonic() + timeout_s)
        except TimeoutError:
            self.close()
            raise EngineFailed(
                f"no answer within {timeout_s:g} s; the query was cancelled"
            ) from None
        except OSError as fault:
            if self._socket is None:
                raise self._was_closed() from None
            self.close()
            raise ServerGone(
                f"the SQL host at {self._path} is gone ({fault.strerror or fault}); see its log"
            ) from None
        except BaseException:
            # Interrupted in the middle of an answer: the next one could not be told from it.
            self.close()
            raise
        return decode(line)

    def _was_closed(self) -> EngineFailed:
        return EngineFailed(f"the connection to {self._path} was closed")

    def _exchange(self, link: socket.socket, request: bytes, deadline: float) -> bytes:
        link.settimeout(max(0.0, deadline - time.monotonic()) or 1e-3)
        link.sendall(request)
        parts: list[bytes] = []
        size = 0
        while not parts or not parts[-1].endswith(b"\n"):
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise TimeoutError
            link.settimeout(left_s)
            part = link.recv(1 << 16)
            size += len(part)
            if not part:
                raise ConnectionError("it hung up")
            if size > MAX_LINE_BYTES:
                raise EngineFailed(
                    f"the SQL host at {self._path} answers with more than "
                    f"{MAX_LINE_BYTES >> 20} MiB; ask for fewer rows"
                )
            parts.append(part)
        return b"".join(parts)


def connect_all(sockets: Sequence[str], *, timeout_s: float) -> list[Client]:
    """A client for each socket, in order; none stays open if one cannot be reached."""
    clients: list[Client] = []
    try:
        clients.extend(SocketClient(path, timeout_s=timeout_s) for path in sockets)
    except EngineFailed:
        for client in clients:
            client.close()
        raise
    return clients
