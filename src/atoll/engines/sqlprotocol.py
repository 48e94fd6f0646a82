"""The line protocol between `sqlclient` and `sqlhost`: one JSON object a line, each way. Pure.

    {"do": "execute", "sql": "select 1"}
    {"ok": true, "columns": [["1", "integer"]], "values": [[1]], "seconds": 0.001,
     "ticket": "atoll-0-1"}                                  values by column
    {"do": "instances"}
    {"ok": true, "instances": 2}
    {"do": "work"}
    {"ok": true, "work": {"atoll-0-1": {"tasks": 4, ...}}}   an `EngineWork` by the query's ticket
    {"do": "scheduler"}
    {"ok": true, "scheduler": {"policy": "adaptive", ...}}   a `SchedulerState`
    {"ok": false, "error": "one line"}

A client sends its next request only after it has the answer to the last. Hanging up while a
query runs cancels the query.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from atoll.engines.base import Column, QueryResult
from atoll.engines.sqltypes import column_from_json, column_to_json, kind_of
from atoll.errors import EngineFailed
from atoll.schema.results import EngineWork, SchedulerState

# A query text or a result above this is a mistake, not a query of a suite.
MAX_LINE_BYTES = 1 << 28


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Rows hold no cycles, but many of them make the garbage collector look at all that this
    process has, again and again: at 10,000 rows that takes longer than the decoding."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:  # else another thread's work, which will switch it on again
            gc.enable()


def encode(message: dict[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode() + b"\n"


@_collector_paused()
def encode_result(
    columns: Sequence[Column], rows: Sequence[Sequence[Any]], seconds: float, ticket: str
) -> bytes:
    kinds = [kind_of(column.type) for column in columns]
    return encode(
        {
            "ok": True,
            "columns": [[column.name, column.type] for column in columns],
            "values": [
                column_to_json(values, kind)
                for values, kind in zip(zip(*rows, strict=True), kinds, strict=True)
            ]
            if rows
            else [[] for _ in kinds],
            "seconds": seconds,
            "ticket": ticket,
        }
    )


def encode_scheduler(state: SchedulerState) -> bytes:
    return encode({"ok": True, "scheduler": state.model_dump(mode="json")})


def encode_work(work: Mapping[str, EngineWork]) -> bytes:
    return encode(
        {"ok": True, "work": {key: one.model_dump(mode="json") for key, one in work.items()}}
    )


def encode_error(fault: BaseException | str) -> bytes:
    """The fault as one line of at most 500 characters."""
    line = " ".join(str(fault).split()) or type(fault).__name__
    return encode({"ok": False, "error": line if len(line) <= 500 else line[:499] + "…"})


@_collector_paused()
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


@_collector_paused()
def decode_result(message: dict[str, Any]) -> QueryResult:
    """The result in a decoded message. Raises EngineFailed if it has none."""
    try:
        columns = tuple(Column(str(name), str(kind)) for name, kind in message["columns"])
        kinds = [kind_of(column.type) for column in columns]
        values = [
            column_from_json(values, kind)
            for values, kind in zip(message["values"], kinds, strict=True)
        ]
        rows = list(zip(*values, strict=True))
        return QueryResult(columns, rows, float(message["seconds"]), str(message["ticket"]))
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


def decode_work(message: dict[str, Any]) -> dict[str, EngineWork]:
    """What the queries took, in a decoded message. Raises EngineFailed if it is not there."""
    try:
        return {str(key): EngineWork.model_validate(one) for key, one in message["work"].items()}
    except (KeyError, AttributeError, ValueError) as fault:
        line = " ".join(str(fault).split())
        raise EngineFailed(
            f"the SQL host sent no account of queries that can be read ({line:.200})"
        ) from None
