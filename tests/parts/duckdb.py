"""For the tests of DuckDB on Atoll's workers: places, answers, the kernel's view."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from atoll.duckdb.opening import open_database
from atoll.duckdb.scheduler import Scheduler
from atoll.engines.api import Column, QueryResult
from atoll.suites.base import Answer
from atoll.suites.ordering import ordering_of

WORKERS = 8
EIGHT_CHIPLETS = "node:2 chiplet:4 core:2"
# One that ends only when it is interrupted.
ENDLESS = "select count(*) from range(1000000) a, range(10000000) b where a.range * b.range % 7 = 3"


def connect(path: str | Path = ":memory:", **options: Any) -> duckdb.DuckDBPyConnection:
    """Eight workers over eight made-up chiplets."""
    return open_database(
        path,
        **{
            "policy": "adaptive",
            "workers": WORKERS,
            "plan": None,
            "fallback": False,
            "read_only": False,
            "config": {},
            "places": EIGHT_CHIPLETS,
            **options,
        },
    )


def scheduler(connection: duckdb.DuckDBPyConnection) -> Scheduler:
    found = connection.atoll  # type: ignore[attr-defined]  # not in DuckDB's stubs
    assert isinstance(found, Scheduler)
    return found


def result_of(connection: duckdb.DuckDBPyConnection) -> QueryResult:
    """Of the query that was executed last."""
    columns = tuple(Column(name, str(kind).lower()) for name, kind, *_ in connection.description)
    return QueryResult(columns, connection.fetchall(), engine_seconds=0.0)


def answer_of(plain: duckdb.DuckDBPyConnection, sql: str) -> Answer:
    """What plain DuckDB says, in the order that the query asks for."""
    result = result_of(plain.execute(sql))
    order, _ = ordering_of(sql, [column.name for column in result.columns])
    return Answer(result.rows, order)


def kernel_threads() -> dict[int, tuple[str, tuple[int, ...]]]:
    """The threads of this process, by number: name and mask."""
    found = {}
    for entry in Path("/proc/self/task").iterdir():
        try:
            name = (entry / "comm").read_text().strip()
            found[int(entry.name)] = (name, tuple(sorted(os.sched_getaffinity(int(entry.name)))))
        except (FileNotFoundError, ProcessLookupError):
            continue  # has just ended
    return found


def wait_for(condition: Callable[[], object]) -> None:
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it has not come to pass within a minute")


@contextmanager
def endless_query(connection: duckdb.DuckDBPyConnection) -> Iterator[threading.Thread]:
    """Runs one in another thread until the block is left; it must end by the interrupt."""
    ends: list[object] = []

    def run() -> None:
        try:
            ends.append(connection.execute(ENDLESS).fetchall())
        except duckdb.Error as error:
            ends.append(type(error))

    thread = threading.Thread(target=run)
    thread.start()
    number = thread.native_id
    wait_for(lambda: any(seat.tid == number for seat in scheduler(connection).threads()))
    try:
        yield thread
    finally:
        # One that comes before DuckDB has begun is forgotten.
        while thread.is_alive():
            connection.interrupt()
            thread.join(0.01)
    assert ends == [duckdb.InterruptException]
