"""What clients of servers share: the Python package that they need, connections to all endpoints,
and rows with the types of `QueryResult`."""

from __future__ import annotations

import datetime
import importlib
from collections.abc import Callable, Sequence
from typing import Any

from atoll.engines.api import Client, Column
from atoll.engines.sql.types import Kind, kind_of
from atoll.errors import ClientMissing, EngineFailed
from atoll.schema.text import first_line


def require_client(package: str, module: str, *, engine: str) -> None:
    """Raises ClientMissing if `module`, an extra of Atoll's, cannot be imported. Call it once the
    engine was found: else a user who has the engine would install another one."""
    try:
        importlib.import_module(module)
    except ImportError as fault:
        raise ClientMissing(
            f"{package} cannot be used in this Python ({first_line(str(fault))}); "
            f"install it with: pip install 'atoll[{engine}]'"
        ) from None


def connect_each(endpoints: Sequence[str], connect: Callable[[str], Client]) -> list[Client]:
    """A client for each endpoint, in order. If one cannot connect, closes those before it."""
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
    """The rows with the types of `QueryResult`. Values of other types, such as timestamps, become
    text."""
    # Most texts are str already, and to rebuild 10,000 rows would cost milliseconds.
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
