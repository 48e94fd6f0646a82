"""A client of one SQL host over its UNIX socket, for `Engine.connect` to return.

Every fault is an EngineFailed of one line. After a query past its limit or a lost host the client
closes its connection, which cancels the query there, and stays closed.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Sequence
from typing import Any

from atoll.engines.api import Client, QueryResult
from atoll.engines.sql.connections import connect_each
from atoll.engines.sql.endings import QueryEnd
from atoll.engines.sql.protocol import (
    MAX_LINE_BYTES,
    decode,
    decode_profile,
    decode_result,
    decode_scheduler,
    decode_work,
    encode,
)
from atoll.errors import EngineFailed
from atoll.schema.operators import QueryProfile
from atoll.schema.results import EngineWork, SchedulerState


class SocketClient(QueryEnd):
    """A `ScheduledClient`, `CountingClient` and `ProfilingClient` of atoll.engines.api. Not for use
    by several threads at once."""

    server = "SQL host"

    def __init__(self, path: str, *, timeout_s: float) -> None:
        self.where = path
        self._socket: socket.socket | None = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout_s)
        try:
            self._socket.connect(path)
        except OSError as fault:
            self.close()
            raise EngineFailed(
                f"no SQL host answers at {path} ({fault.strerror or fault}); "
                "see 'atoll ps' for what is running"
            ) from None

    def execute(self, sql: str, *, timeout_s: float) -> QueryResult:
        return decode_result(self._ask({"do": "execute", "sql": sql}, timeout_s))

    def instances(self, *, timeout_s: float) -> int:
        return int(self._ask({"do": "instances"}, timeout_s)["instances"])

    def scheduler(self, *, timeout_s: float) -> SchedulerState:
        """The state of Atoll's scheduler. Raises EngineFailed if the engine has its own."""
        return decode_scheduler(self._ask({"do": "scheduler"}, timeout_s))

    def work(self, *, timeout_s: float) -> dict[str, EngineWork]:
        """See `atoll.engines.api.CountingClient`."""
        return decode_work(self._ask({"do": "work"}, timeout_s))

    def profile(self, sql: str, *, timeout_s: float) -> QueryProfile | None:
        """See `atoll.engines.api.ProfilingClient`."""
        return decode_profile(self._ask({"do": "profile", "sql": sql}, timeout_s))

    def close(self) -> None:
        link, self._socket = self._socket, None
        if link is None:
            return
        with contextlib.suppress(OSError):
            link.shutdown(socket.SHUT_RDWR)  # another thread may be waiting for its answer
        link.close()

    def _ask(self, message: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        link = self._socket
        if link is None:
            raise self.closed()
        with self.asking(timeout_s):
            line = self._exchange(link, encode(message), time.monotonic() + timeout_s)
        return decode(line)

    @property
    def is_closed(self) -> bool:
        return self._socket is None

    def explain(self, fault: Exception) -> EngineFailed | None:
        """See `QueryEnd`. The SQL host cancels the query of a client that hangs up."""
        return self.gone(fault.strerror or str(fault)) if isinstance(fault, OSError) else None

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
                    f"the SQL host at {self.where} sent more than "
                    f"{MAX_LINE_BYTES >> 20} MiB; ask for fewer rows"
                )
            parts.append(part)
        return b"".join(parts)


def connect_all(sockets: Sequence[str], *, timeout_s: float) -> list[Client]:
    """A client for each socket, in order. If one cannot connect, closes those before it."""
    return connect_each(sockets, lambda path: SocketClient(path, timeout_s=timeout_s))
