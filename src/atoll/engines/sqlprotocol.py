"""The line protocol between `sqlclient` and `sqlhost`: one JSON object a line, each way. Pure.

    {"do": "execute", "sql": "select 1"}
    {"ok": true, "columns": [["1", "integer"]], "rows": [[1]], "seconds": 0.001}
    {"do": "instances"}
    {"ok": true, "instances": 2}
    {"do": "scheduler"}
    {"ok": true, "scheduler": {"policy": "adaptive", ...}}   a `SchedulerState`
    {"ok": false, "error": "one line"}

A client sends its next request only after it has the answer to the last. Hanging up while a
query runs cancels the query.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from atoll.engines.base import Column, QueryResult
from atoll.engines.sqltypes import from_json, kind_of, to_json
from atoll.errors import EngineFailed
from atoll.schema.results import SchedulerState

# A query text or a result above this is a mistake, not a query of a suite.
MAX_LINE_BYTES = 1 << 28


def encode(message: dict[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def encode_result(
    columns: Sequence[Column], rows: Iterable[Sequence[Any]], seconds: float
) -> bytes:
    kinds = [kind_of(column.type) for column in columns]
    return encode(
        {
            "ok": True,
            "columns": [[column.name, column.type] for column in columns],
            "rows": [
                [to_json(value, kind) for value, kind in zip(row, kinds, strict=True)]
                for row in rows
            ],
            "seconds": seconds,
        }
    )


def encode_scheduler(state: SchedulerState) -> bytes:
    return encode({"ok": True, "scheduler": state.model_dump(mode="json")})


def encode_error(fault: BaseException | str) -> bytes:
    """The fault as one line of at most 500 characters."""
    line = " ".join(str(fault).split()) or type(fault).__name__
    return encode({"ok": False, "error": line if len(line) <= 500 else line[:499] + "…"})


def decode(line: bytes) -> dict[str, Any]:
    """A message. Raises EngineFailed if it is none, or if it carries the other side's error."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        raise EngineFailed("the SQL host sent what is no answer; see the driver's log") from None
    if not isinstance(message, dict):
        raise EngineFailed("the SQL host sent what is no answer; see the driver's log")
    if message.get("ok") is False:
        raise EngineFailed(str(message.get("error", "the query failed")))
    return message


def decode_result(message: dict[str, Any]) -> QueryResult:
    """The result in a decoded message. Raises EngineFailed if it has none."""
    try:
        columns = tuple(Column(str(name), str(kind)) for name, kind in message["columns"])
        kinds = [kind_of(column.type) for column in columns]
        rows = [
            tuple(from_json(value, kind) for value, kind in zip(row, kinds, strict=True))
            for row in message["rows"]
        ]
        return QueryResult(columns, rows, float(message["seconds"]))
    except (KeyError, TypeError, ValueError, ArithmeticError) as fault:
        raise EngineFailed(f"the SQL host sent a result that cannot be read ({fault})") from None


def decode_scheduler(message: dict[str, Any]) -> SchedulerState:
    """The scheduler's state in a decoded message. Raises EngineFailed if it has none."""
    try:
        return SchedulerState.model_validate(message["scheduler"])
    except (KeyError, ValueError) as fault:
        line = " ".join(str(fault).split())
        raise EngineFailed(
            f"the SQL host sent no state of a scheduler that can be read ({line:.200})"
        ) from None
