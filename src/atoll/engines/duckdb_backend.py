"""DuckDB inside the SQL host: one database in memory, views over Parquet, a cursor per query."""

from __future__ import annotations

from typing import Any

import duckdb

from atoll.engines.base import Column


class DuckDBBackend:
    """See `atoll.engines.sqlhost.Backend`. `config` is what DuckDB is told at open."""

    def __init__(self, config: dict[str, Any]) -> None:
        # At open and not by SET: DuckDB starts (and pins) its threads when it opens.
        self._database = duckdb.connect(":memory:", config=config)
        self._running: dict[str, duckdb.DuckDBPyConnection] = {}

    def run(self, sql: str, ticket: str) -> tuple[list[Column], list[tuple[Any, ...]]]:
        with self._database.cursor() as cursor:
            self._running[ticket] = cursor
            try:
                cursor.execute(sql)
                columns = [Column(name, str(kind).lower()) for name, kind, *_ in cursor.description]
                return columns, cursor.fetchall()
            finally:
                del self._running[ticket]

    def cancel(self, ticket: str) -> None:
        cursor = self._running.get(ticket)
        if cursor is not None:
            cursor.interrupt()

    def instances(self) -> int:
        self._database.cursor().execute("select 1").fetchall()
        return 1

    def check(self) -> None:
        pass  # nothing of it can be lost without the process

    def close(self) -> None:
        self._database.close()
