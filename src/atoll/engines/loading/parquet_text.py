"""Turns a Parquet file into lines of CSV for servers that load text; DuckDB writes into a pipe.

NULL is the bare word NULL, and a text of that word is quoted. Some servers have an option for this;
others need no escape character to be set.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from atoll.engines.api import Table
from atoll.errors import EngineFailed
from atoll.schema.text import first_line

if TYPE_CHECKING:
    import duckdb


@dataclass(slots=True)
class Lines:
    """The reading end of the pipe. Call `check` at its end, before anything is committed."""

    descriptor: int
    _writer: threading.Thread
    _faults: list[str] = field(default_factory=list)

    def check(self) -> None:
        """Raises EngineFailed if the lines ended too early."""
        self._writer.join()
        if self._faults:
            raise EngineFailed(self._faults[0])


@contextlib.contextmanager
def lines_of(table: Table) -> Iterator[Lines]:
    reading, writing = os.pipe()
    faults: list[str] = []
    columns = ", ".join(f'"{column.name}"' for column in table.columns)
    sql = (
        f"copy (select {columns} from {_scan(table)}) to '/dev/fd/{writing}' "
        "(format csv, header false, null 'NULL', use_tmp_file false)"
    )

    def write() -> None:
        try:
            with _duckdb() as connection:
                connection.execute(sql)
        except Exception as fault:  # DuckDB's own; `check` raises it
            faults.append(f"{table.path}: cannot be read ({first_line(str(fault))})")
        finally:
            os.close(writing)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield Lines(reading, writer, faults)
    finally:
        os.close(reading)  # a writer then gets EPIPE
        writer.join()


def rows_of(table: Table) -> int:
    with _duckdb() as connection:
        return int(_one(connection, f"select count(*) from {_scan(table)}")[0])


def longest_texts(table: Table) -> dict[str, int]:
    """Text column -> characters of its longest text."""
    texts = [column.name for column in table.columns if column.type == "varchar"]
    if not texts:
        return {}
    wanted = ", ".join(f'coalesce(max(length("{name}")), 0)' for name in texts)
    with _duckdb() as connection:
        return dict(
            zip(texts, _one(connection, f"select {wanted} from {_scan(table)}"), strict=True)
        )


def _scan(table: Table) -> str:
    quoted = table.path.replace("'", "''")
    return f"read_parquet('{quoted}')"


def _one(connection: duckdb.DuckDBPyConnection, sql: str) -> tuple[int, ...]:
    row = connection.execute(sql).fetchone()
    assert row is not None  # an aggregate has one
    return row


def _duckdb() -> duckdb.DuckDBPyConnection:
    try:
        import duckdb
    except ImportError:
        raise EngineFailed(
            "DuckDB, which reads the Parquet files, is not installed in this Python; "
            "install it with: pip install 'atoll[duckdb]'"
        ) from None
    return duckdb.connect(":memory:", config={"pin_threads": "off", "temp_directory": ""})
