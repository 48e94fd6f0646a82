"""Two tables for a join: unique keys on the smaller side, uniform foreign keys on the other.

They are those of Fogli, Pietzuch and Makreshanski, "Towards NUMA-Aware Distributed Query Engines",
V-C: 65 and 125 million rows of a 4-byte key and a 4-byte payload at scale factor 1. Every foreign
key has a partner. Rows are computed from their number, so the bytes are the same every time, and
are written as they are computed, in a process of its own with a memory limit.

    python -m atoll.suites.join_data SCALE_FACTOR FOLDER
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from atoll.engines.api import Column, Progress
from atoll.host.api import Host
from atoll.schema.size import MIB
from atoll.suites import reference
from atoll.suites.base import DataSet, TableSchema
from atoll.suites.cached import Source, check_scale_factor, ensure, exactly
from atoll.suites.generating import generate, run_generator

SMALL, LARGE = "join_small", "join_large"
_ROWS = {SMALL: 65_000_000, LARGE: 125_000_000}  # at scale factor 1
_COLUMNS = (Column("join_key", "integer"), Column("payload", "integer"))
SCHEMAS: Mapping[str, TableSchema] = {
    SMALL: TableSchema(_COLUMNS, ("join_key",)),
    LARGE: TableSchema(_COLUMNS, (), (("join_key",),)),
}
_MOST_SCALE_FACTOR = 33.0  # from here on a key does not fit into 4 bytes
_BYTES_A_ROW = 9  # of Parquet: random numbers cannot be compressed
_MEMORY_LIMIT = "1GB"
_STRIDE = 2_654_435_761  # prime

# The final mix of xxHash32: every bit of a number of 32 bits changes half the bits of the result.
_MIX = """
create macro m32(x, factor) as (x * factor) & 4294967295::ubigint;
create macro mix1(x) as m32(xor(x, x >> 15), 2246822519::ubigint);
create macro mix2(x) as m32(xor(x, x >> 13), 3266489917::ubigint);
create macro mix(x) as xor(mix2(mix1(x)), mix2(mix1(x)) >> 16);
"""


def row_group_rows(scale_factor: float) -> int:
    """Small row groups for small data, so that every worker gets a part of the smaller table."""
    return 20_480 if scale_factor < 0.1 else 122_880


def rows_at(scale_factor: float) -> dict[str, int]:
    """The rows of each table."""
    return {table: round(rows * scale_factor) for table, rows in _ROWS.items()}


def ensure_data(scale_factor: float, *, host: Host, progress: Progress) -> DataSet:
    """The verified data set, which is generated if it is missing or damaged.

    Raises UsageError (no such scale factor), DownloadFailed (the generator failed), and as
    `atoll.store.once.make_once`.
    """
    check_scale_factor(scale_factor, most=_MOST_SCALE_FACTOR)
    source = Source(
        suite="join",
        title="the join",
        scale_factor=scale_factor,
        schemas=SCHEMAS,
        needed_bytes=_bytes_at(scale_factor),
        make=partial(_generate, scale_factor),
        generator="atoll join 1",
        row_group_rows=row_group_rows(scale_factor),
    )
    return ensure(source, host=host, progress=progress)


def generator_argv(scale_factor: float, folder: Path) -> list[str]:
    """The command that writes `folder`/TABLE.parquet."""
    return [sys.executable, "-m", __name__, exactly(scale_factor), str(folder)]


def _generate(scale_factor: float, folder: Path, host: Host, progress: Progress) -> None:
    generate(
        generator_argv(scale_factor, folder),
        folder,
        what=f"making the data of the join at scale factor {scale_factor:g}",
        by="DuckDB",
        expected_bytes=_bytes_at(scale_factor),
        host=host,
        progress=progress,
    )


def _bytes_at(scale_factor: float) -> int:
    return MIB + _BYTES_A_ROW * sum(rows_at(scale_factor).values())


# ---- in the process that generates ---------------------------------------------------------------


def write_tables(scale_factor: float, folder: Path) -> None:
    """Raises DuckDB's errors."""
    rows = rows_at(scale_factor)
    # A step that has no divisor in common with the number of keys meets every key once.
    step = next(n for n in range(_STRIDE, 2 * _STRIDE) if math.gcd(n, rows[SMALL]) == 1)
    keys = {
        SMALL: f"(i * {step % rows[SMALL]}::ubigint) % {rows[SMALL]}",
        LARGE: f"(mix(i) * {rows[SMALL]}::ubigint) >> 32",
    }
    limits = {"memory_limit": _MEMORY_LIMIT, "temp_directory": ""}
    with reference.opened(":memory:", limits) as connection:
        connection.execute(_MIX)
        for table, key in keys.items():
            path = str(folder / f"{table}.parquet").replace("'", "''")
            connection.execute(
                f"copy (select ({key})::integer as join_key, "
                "(mix(xor(i, 2779096485::ubigint)) >> 1)::integer as payload "
                f"from (select range::ubigint as i from range({rows[table]}))) to '{path}' "
                f"(format parquet, row_group_size {row_group_rows(scale_factor)})"
            )


if __name__ == "__main__":
    sys.exit(run_generator(write_tables))
