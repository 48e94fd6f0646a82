"""JCC-H's tables in the cache (`atoll.suites.cached`), made by DuckDB from the queries of
`atoll.suites.jcch_tables`.

A process of its own writes them, which ends with this one, also by kill -9. It writes the same
bytes for the same scale factor, whatever the number of threads.

    python -m atoll.suites.jcch_data SCALE_FACTOR FOLDER
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from atoll.engines.api import Progress
from atoll.host.api import Host
from atoll.schema.size import MIB
from atoll.suites import reference
from atoll.suites.base import DataSet
from atoll.suites.cached import Source, check_scale_factor, ensure, exactly, package_version
from atoll.suites.generating import generate, run_generator
from atoll.suites.jcch_shape import LARGEST_SCALE_FACTOR, Shape
from atoll.suites.jcch_sql import SAMPLE, sample_tables
from atoll.suites.jcch_tables import tables
from atoll.suites.tpch_schema import SCHEMAS

TABLES = tuple(SCHEMAS)
# Of what JCC-H leaves open, Atoll's choices; another version of them makes other data.
_VERSION = 1
_BYTES_PER_SCALE_FACTOR = 280 * MIB  # Parquet with snappy, measured at 1


def row_group_rows(scale_factor: float) -> int:
    """DuckDB's own size from scale factor 1 on. Below, small row groups, so that every worker gets
    a part of lineitem: at SF 0.1, 30 of them."""
    return 20_480 if scale_factor < 1 else 122_880


def ensure_data(scale_factor: float, *, host: Host, progress: Progress) -> DataSet:
    """The verified data set, which is generated if it is missing or damaged.

    Raises UsageError (no such scale factor), DownloadFailed (the generator failed), and as
    `atoll.store.once.make_once`.
    """
    check_scale_factor(scale_factor, most=LARGEST_SCALE_FACTOR)
    source = Source(
        suite="jcch",
        title="JCC-H",
        scale_factor=scale_factor,
        schemas=SCHEMAS,
        needed_bytes=int(_BYTES_PER_SCALE_FACTOR * scale_factor),
        make=partial(_generate, scale_factor),
        generator=f"atoll.suites.jcch {_VERSION}, {package_version('duckdb')}",
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
        what=f"making JCC-H data at scale factor {scale_factor:g}",
        by="its generator",
        expected_bytes=_BYTES_PER_SCALE_FACTOR * scale_factor,
        host=host,
        progress=progress,
    )


# ---- in the process that generates ---------------------------------------------------------------


def write_tables(scale_factor: float, folder: Path, *, threads: int = 1) -> None:
    """`threads`: DuckDB's for each table. It counts the places of a table in one thread, and so
    makes the table in one; more would only wait, which takes CPU time. Raises DuckDB's errors."""
    config = {
        # A join with a sample keeps the order of rows only as it is written.
        "disabled_optimizers": "join_order,build_side_probe_side",
        "threads": threads,
    }
    # Comments are kept as they are: a dictionary of them would cost time and save nothing.
    options = (
        f"format parquet, row_group_size {row_group_rows(scale_factor)}, "
        "dictionary_size_limit 8192, write_bloom_filter false"
    )
    with reference.with_extension("tpch", config=config) as connection:
        for statement in (SAMPLE, *sample_tables()):
            connection.execute(statement)
        queries = tables(Shape(scale_factor))

        def write(table: str, query: str) -> None:
            path = str(folder / f"{table}.parquet").replace("'", "''")
            with connection.cursor() as cursor:
                cursor.execute(f"copy ({query}) to '{path}' ({options})")

        # The first table, lineitem, takes longer than all others together.
        with ThreadPoolExecutor(2) as writers:
            for written in [writers.submit(write, *one) for one in queries.items()]:
                written.result()


if __name__ == "__main__":
    sys.exit(run_generator(write_tables))
