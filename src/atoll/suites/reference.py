"""DuckDB and its extensions tpch and tpcds, in this process: texts, answers, the reference.

Atoll contains none of the benchmarks' texts; it reads texts and answers from the extensions when it
needs them. An extension must belong to the installed version of DuckDB.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from atoll.errors import EngineFailed
from atoll.store.paths import cache_dir

if TYPE_CHECKING:
    import duckdb

REMEDY = "install it with: pip install 'atoll[duckdb]'"


@functools.cache
def query_texts(extension: str) -> dict[str, str]:
    """'q1', 'q2', ... of 'tpch' or 'tpcds', without the closing semicolon."""
    with with_extension(extension) as connection:
        rows = connection.execute(
            f"select query_nr, query from {extension}_queries() order by 1"
        ).fetchall()
    return {f"q{number}": text.strip().rstrip(";") for number, text in rows}


@functools.cache
def published_answers(
    scale_factor: float | None,
) -> dict[str, tuple[tuple[str, ...], list[Any]]]:
    """TPC-H: query -> (column names, rows of text); empty for a scale factor without published
    answers."""
    with with_extension("tpch") as connection:
        rows = connection.execute(
            "select query_nr, answer from tpch_answers() where scale_factor = ?", [scale_factor]
        ).fetchall()
    answers: dict[str, tuple[tuple[str, ...], list[Any]]] = {}
    for number, text in rows:
        header, *lines = text.removesuffix("\n").split("\n")
        answers[f"q{number}"] = (
            tuple(header.split("|")),
            [tuple(line.split("|")) for line in lines],
        )
    return answers


def run(sql: str, files: Mapping[str, Path]) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """DuckDB's answer on these Parquet files: (column names, rows)."""
    with opened(":memory:", {}) as connection:
        for table, path in files.items():
            connection.read_parquet(str(path)).create_view(table)
        connection.execute(sql)
        return tuple(column[0] for column in connection.description), connection.fetchall()


def opened(database: str, config: Mapping[str, Any]) -> duckdb.DuckDBPyConnection:
    """A connection that does not spill into the current folder, nor pins threads."""
    if importlib.util.find_spec("duckdb") is None:
        raise EngineFailed(f"DuckDB is not installed in this Python; {REMEDY}")
    import duckdb

    spill = str(cache_dir("scratch", "reference"))
    return duckdb.connect(
        database, config={"pin_threads": "off", "temp_directory": spill, **config}
    )


def with_extension(
    name: str, database: str = ":memory:", config: Mapping[str, Any] | None = None
) -> duckdb.DuckDBPyConnection:
    """A connection that has the extension. Raises EngineFailed if it is not installed."""
    connection = opened(database, config or {})
    version = importlib.metadata.version("duckdb")
    spec = importlib.util.find_spec(f"duckdb_extension_{name}")
    if spec is None or not spec.submodule_search_locations:
        raise EngineFailed(f"DuckDB's {name} extension is not installed; {REMEDY}")
    extension = Path(
        spec.submodule_search_locations[0], "extensions", f"v{version}", f"{name}.duckdb_extension"
    )
    if not extension.exists():
        raise EngineFailed(
            f"DuckDB's {name} extension is not the one of DuckDB {version}; {REMEDY}"
        )
    connection.load_extension(str(extension))
    return connection
