"""DuckDB inside the SQL host: a database in memory, views over Parquet files, a cursor per query.

With `DuckDBBackend` DuckDB's own threads run the tasks, with `AtollBackend` Atoll's scheduler.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import duckdb

from atoll.engines.api import Column
from atoll.engines.duckdb.engine import IDLE_THREAD, TASK_THREAD
from atoll.engines.duckdb.profile import operators_of
from atoll.host.thread_name import name_thread
from atoll.schema.operators import QueryProfile
from atoll.schema.results import EngineWork, SchedulerState

if TYPE_CHECKING:
    from atoll.duckdb import Scheduler

_PEAK = "system_peak_buffer_memory"
# Everything, which slows queries down by 1.5 to 4 % (1.5.5, TPC-H at scale factor 1).
_PROFILE = "set enable_profiling = 'no_output'"
# Only what DuckDB counts of a whole query. Setting it and reading it takes 0.15 ms.
_COUNT = (
    f"{_PROFILE}; set custom_profiling_settings = "
    f"""'{{"{_PEAK.upper()}": "true", "SYSTEM_PEAK_TEMP_DIR_SIZE": "true"}}'"""
)


class DuckDBBackend:
    """See `CountingBackend`, `PreparingBackend` and `ProfilingBackend` of atoll.engines.sql.host.
    DuckDB opens its database with `config`."""

    def __init__(self, config: dict[str, Any]) -> None:
        # Not later by SET: DuckDB starts and pins its threads when it opens the database.
        self._database = self._open(config)
        self._running: dict[str, duckdb.DuckDBPyConnection] = {}
        self._counted: dict[str, str] = {}  # JSON, by ticket

    def _open(self, config: dict[str, Any]) -> duckdb.DuckDBPyConnection:
        """DuckDB's threads inherit the name of the thread that starts them. By that name a thread
        may be bound to one CPU, and so would be the threads that it starts later, which run no
        tasks: so it is one that ends here."""
        with ThreadPoolExecutor(1, initializer=name_thread, initargs=(TASK_THREAD,)) as opener:
            return opener.submit(duckdb.connect, ":memory:", config=config).result()

    @contextmanager
    def around(self, ticket: str) -> Iterator[None]:
        with self._query(_COUNT, ticket) as cursor:
            yield
            self._counted[ticket] = cursor.get_profiling_information(format="json")

    def run(self, sql: str, ticket: str) -> tuple[list[Column], list[tuple[Any, ...]]]:
        cursor = self._running[ticket]
        rows = cursor.execute(sql).fetchall()
        return [Column(name, str(kind).lower()) for name, kind, *_ in cursor.description], rows

    def profile(self, sql: str, ticket: str) -> QueryProfile:
        with self._query(_PROFILE, ticket) as cursor:
            cursor.execute(sql).fetchall()
            found = json.loads(cursor.get_profiling_information(format="json"))
        return QueryProfile(operators=operators_of(found))

    @contextmanager
    def _query(self, profiling: str, ticket: str) -> Iterator[duckdb.DuckDBPyConnection]:
        """The cursor of that query, in a thread that runs tasks."""
        with self._database.cursor() as cursor:
            # Past Atoll's scheduler, which would take it for a query to steer by.
            duckdb.DuckDBPyConnection.execute(cursor, profiling)
            self._running[ticket] = cursor
            name_thread(TASK_THREAD)
            try:
                yield cursor
            finally:
                name_thread(IDLE_THREAD)
                del self._running[ticket]

    def work(self) -> dict[str, EngineWork]:
        """DuckDB's peak is of the whole database, so of all queries that ran at the time."""
        counted, self._counted = self._counted, {}
        read = {ticket: json.loads(text) for ticket, text in counted.items()}
        # DuckDB has nothing to tell of a statement that is no query.
        return {ticket: _work(one) for ticket, one in read.items() if _PEAK in one}

    def cancel(self, ticket: str) -> None:
        cursor = self._running.get(ticket)
        if cursor is not None:
            cursor.interrupt()

    def instances(self) -> int:
        self._database.cursor().execute("select 1").fetchall()
        return 1

    def check(self) -> None:
        pass  # DuckDB is lost only together with this process

    def close(self) -> None:
        self._database.close()


class AtollBackend(DuckDBBackend):
    """See `atoll.engines.sql.host.ScheduledBackend`. `threads` in `config` counts the workers."""

    def _open(self, config: dict[str, Any]) -> duckdb.DuckDBPyConnection:
        from atoll.duckdb import (
            connect,  # imports a native library, which the other backend does not need
        )

        database = connect(":memory:", policy="adaptive", config=config)
        self._opened_s = time.monotonic()
        self._scheduler: Scheduler = database.atoll  # type: ignore[attr-defined]  # of its own type
        return database

    def scheduler(self) -> SchedulerState:
        spreads = self._scheduler.spreads()
        seconds = time.monotonic() - self._opened_s
        return SchedulerState(
            policy=self._scheduler.policy,
            chiplets=self._scheduler.chiplets,
            # The scheduler's clock starts slightly earlier, inside `connect`.
            seconds=max(seconds, spreads[-1].t_s),
            threads=self._scheduler.threads(),
            spreads=spreads,
        )


def _work(counted: dict[str, Any]) -> EngineWork:
    return EngineWork(
        spilled_bytes=counted["system_peak_temp_dir_size"],
        peak_bytes=counted[_PEAK],
        peak_source=_PEAK,
    )
