"""The line protocol between `sql.client` and `sql.host`: one JSON object per line, each way. Pure.

    {"do": "execute", "sql": "select 1"}
    {"ok": true, "columns": [["1", "integer"]], "rows": 1, "values": [[1]],        by column
     "began": 12.5, "seconds": 0.001, "ticket": "atoll-0-1"}
    {"do": "instances"}
    {"ok": true, "instances": 2}
    {"do": "work"}
    {"ok": true, "work": {"atoll-0-1": {"tasks": 4, ...}}}   an `EngineWork` by query ticket
    {"do": "profile", "sql": "select 1"}
    {"ok": true, "profile": {"operators": [...]}}            a `QueryProfile`, or null
    {"do": "scheduler"}
    {"ok": true, "scheduler": {"policy": "adaptive", ...}}   a `SchedulerState`
    {"ok": false, "error": "one line"}

A client sends a request only after it has the answer to the one before. Hanging up cancels a
running query. The host times a query, as the engine's own client would: to encode, send and decode
10,000 rows takes longer than many queries, and the way there and back half a millisecond.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

from atoll.engines.api import Column, QueryResult
from atoll.engines.sql.types import column_from_json, column_to_json, kind_of
from atoll.errors import EngineFailed
from atoll.schema.operators import QueryProfile
from atoll.schema.results import EngineWork, SchedulerState
from atoll.schema.text import one_line

# A larger query or result is a mistake. No suite has one.
MAX_LINE_BYTES = 1 << 28


def encode(message: dict[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def encode_result(
    columns: Sequence[Column],
    rows: Sequence[Sequence[Any]],
    *,
    began_s: float,
    seconds: float,
    ticket: str,
) -> bytes:
    kinds = [kind_of(column.type) for column in columns]
    by_column = zip(*rows, strict=True) if rows else [()] * len(kinds)
    return encode(
        {
            "ok": True,
            "columns": [[column.name, column.type] for column in columns],
            "rows": len(rows),
            "values": [
                column_to_json(values, kind) for values, kind in zip(by_column, kinds, strict=True)
            ],
            "began": began_s,
            "seconds": seconds,
            "ticket": ticket,
        }
    )


def encode_error(fault: BaseException | str) -> bytes:
    """The fault as one line of at most 500 characters."""
    line = one_line(str(fault)) or type(fault).__name__
    return encode({"ok": False, "error": line if len(line) <= 500 else line[:499] + "…"})


def decode(line: bytes) -> dict[str, Any]:
    """A message. Raises EngineFailed for a malformed one, and for one that reports an error."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        raise EngineFailed("the SQL host sent a malformed reply; see the driver's log") from None
    if not isinstance(message, dict):
        raise EngineFailed("the SQL host sent a malformed reply; see the driver's log")
    if message.get("ok") is False:
        raise EngineFailed(str(message.get("error", "the query failed")))
    return message


@contextlib.contextmanager
def _reading(part: str) -> Iterator[None]:
    """Raises EngineFailed if the message does not contain this part."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, ValueError, ArithmeticError) as fault:
        why = one_line(str(fault))[:200]
        raise EngineFailed(f"the SQL host sent {part} ({why})") from None


def decode_result(message: dict[str, Any]) -> QueryResult:
    with _reading("an unreadable result"):
        columns = tuple(Column(str(name), str(kind)) for name, kind in message["columns"])
        kinds = [kind_of(column.type) for column in columns]
        by_column = [
            column_from_json(found, kind)
            for found, kind in zip(message["values"], kinds, strict=True)
        ]
        rows = list(zip(*by_column, strict=True))
        if columns and len(rows) != message["rows"]:
            raise ValueError(f"{len(rows)} of {message['rows']} rows")
        return QueryResult(
            columns,
            rows,
            float(message["seconds"]),
            str(message["ticket"]),
            float(message["began"]),
        )


def decode_scheduler(message: dict[str, Any]) -> SchedulerState:
    with _reading("an unreadable scheduler state"):
        return SchedulerState.model_validate(message["scheduler"])


def decode_profile(message: dict[str, Any]) -> QueryProfile | None:
    with _reading("an unreadable profile"):
        found = message["profile"]
        return None if found is None else QueryProfile.model_validate(found)


def decode_work(message: dict[str, Any]) -> dict[str, EngineWork]:
    with _reading("unreadable query statistics"):
        return {str(key): EngineWork.model_validate(one) for key, one in message["work"].items()}
