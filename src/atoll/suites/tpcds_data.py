"""TPC-DS's tables, made by DuckDB's tpcds extension and kept in the cache (`atoll.suites.cached`).

The extension generates into a database on the disk, in a process of its own with a memory limit;
COPY then writes the Parquet files. That process is killed when this one ends, also by kill -9. It
writes the same bytes for the same scale factor, whatever the number of threads.

    python -m atoll.suites.tpcds_data SCALE_FACTOR FOLDER
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from atoll.engines.api import Column, Progress
from atoll.host.api import Host
from atoll.schema.size import MIB
from atoll.suites import reference
from atoll.suites.base import DataSet, TableSchema
from atoll.suites.cached import Source, check_scale_factor, ensure, exactly, package_version
from atoll.suites.generating import generate, run_generator

TABLES = (
    *("call_center", "catalog_page", "catalog_returns", "catalog_sales", "customer"),
    *("customer_address", "customer_demographics", "date_dim", "household_demographics"),
    *("income_band", "inventory", "item", "promotion", "reason", "ship_mode", "store"),
    *("store_returns", "store_sales", "time_dim", "warehouse", "web_page", "web_returns"),
    *("web_sales", "web_site"),
)
_EXTENSION = "tpcds"
_DATABASE = "generated.duckdb"
# Measured at 0.1 and 1: the Parquet files, and the database that they are copied from.
_PARQUET_BYTES_PER_SCALE_FACTOR = 370 * MIB
_DATABASE_BYTES_PER_SCALE_FACTOR = 380 * MIB
# The dimensions that do not scale (2 million demographics, dates, times).
_FIXED_BYTES = 32 * MIB
_LEAST_SCALE_FACTOR = 0.01  # at 0.001 the extension does not come to an end
_MEMORY_LIMIT = "2GB"

# The foreign keys by which queries select and join large tables, besides the primary keys. Each
# gets an index in servers, as in TPC-H.
_INDEXED = {
    "store_sales": ("ss_sold_date_sk", "ss_customer_sk"),
    "store_returns": ("sr_returned_date_sk", "sr_customer_sk"),
    "catalog_sales": ("cs_sold_date_sk", "cs_bill_customer_sk"),
    "catalog_returns": ("cr_returned_date_sk", "cr_returning_customer_sk"),
    "web_sales": ("ws_sold_date_sk", "ws_bill_customer_sk"),
    "web_returns": ("wr_returned_date_sk", "wr_returning_customer_sk"),
    "inventory": ("inv_item_sk",),
    "customer": ("c_current_addr_sk", "c_current_cdemo_sk"),
}


def row_group_rows(scale_factor: float) -> int:
    """DuckDB's own size from scale factor 1 on. Below, small row groups, so that every worker gets
    a part of store_sales: at SF 0.1 it has 15 of them, and of DuckDB's own size 3."""
    return 20_480 if scale_factor < 1 else 122_880


@functools.cache
def schemas() -> Mapping[str, TableSchema]:
    """The tables with their primary keys, as the extension creates them."""
    with reference.with_extension(_EXTENSION) as connection:
        connection.execute("call dsdgen(sf = 0, keys = true)")
        columns = connection.execute(
            "select table_name, column_name, lower(data_type) from duckdb_columns() "
            "where not internal order by table_name, column_index"
        ).fetchall()
        keys = connection.execute(
            "select table_name, constraint_column_names from duckdb_constraints() "
            "where constraint_type = 'PRIMARY KEY' order by table_name"
        ).fetchall()
    return {
        table: TableSchema(
            tuple(Column(name, kind) for owner, name, kind in columns if owner == table),
            tuple(key),
            tuple((column,) for column in _INDEXED.get(table, ())),
        )
        for table, key in keys
    }


def ensure_data(scale_factor: float, *, host: Host, progress: Progress) -> DataSet:
    """The verified data set, which is generated if it is missing or damaged.

    Raises UsageError (no such scale factor), EngineFailed (no extension), DownloadFailed (it
    failed), and as `atoll.store.once.make_once`.
    """
    check_scale_factor(scale_factor, least=_LEAST_SCALE_FACTOR)
    source = Source(
        suite="tpcds",
        title="TPC-DS",
        scale_factor=scale_factor,
        schemas=schemas(),
        needed_bytes=_generated_bytes(scale_factor),
        make=partial(_generate, scale_factor),
        generator=package_version("duckdb-extension-tpcds"),
        row_group_rows=row_group_rows(scale_factor),
    )
    return ensure(source, host=host, progress=progress)


def generator_argv(scale_factor: float, folder: Path) -> list[str]:
    """The command that writes `folder`/TABLE.parquet."""
    return [sys.executable, "-m", __name__, exactly(scale_factor), str(folder)]


def _generate(scale_factor: float, folder: Path, host: Host, progress: Progress) -> None:
    what = f"making TPC-DS data at scale factor {scale_factor:g}"
    generate(
        generator_argv(scale_factor, folder),
        folder,
        what=what,
        by="DuckDB's tpcds extension",
        expected_bytes=_generated_bytes(scale_factor),
        host=host,
        progress=progress,
    )


def _generated_bytes(scale_factor: float) -> int:
    """Of the database and the Parquet files, which are on the disk at the same time."""
    each = _PARQUET_BYTES_PER_SCALE_FACTOR + _DATABASE_BYTES_PER_SCALE_FACTOR
    return _FIXED_BYTES + int(each * scale_factor)


# ---- in the process that generates ---------------------------------------------------------------


def write_tables(scale_factor: float, folder: Path) -> None:
    """Raises DuckDB's errors."""
    database = folder / _DATABASE
    limits = {"memory_limit": _MEMORY_LIMIT, "temp_directory": str(folder / "spill")}
    with reference.with_extension(_EXTENSION, str(database), limits) as connection:
        connection.execute(f"call dsdgen(sf = {exactly(scale_factor)})")
        for table in TABLES:
            path = str(folder / f"{table}.parquet").replace("'", "''")
            connection.execute(
                f"copy {table} to '{path}' "
                f"(format parquet, row_group_size {row_group_rows(scale_factor)})"
            )
    for left in folder.glob(f"{_DATABASE}*"):
        left.unlink()
    with contextlib.suppress(FileNotFoundError):
        (folder / "spill").rmdir()


if __name__ == "__main__":
    sys.exit(run_generator(write_tables))
