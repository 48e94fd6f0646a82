"""DuckDB's tpch extension, in this process: query texts, published answers, the reference.

Atoll contains none of TPC-H's texts; it reads texts and answers from the extension when it needs
them. The extension must belong to the installed version of DuckDB.
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
def query_texts() -> dict[str, str]:
    """'q1' to 'q22', without the closing semicolon."""
    rows = (
        _with_extension()
        .execute("select query_nr, query from tpch_queries() order by 1")
        .fetchall()
    )
    return {f"q{number}": text.strip().rstrip(";") for number, text in rows}


@functools.cache
def published_answers(scale_factor: float) -> dict[str, tuple[tuple[str, ...], list[Any]]]:
    """Query -> (column names, rows of text); empty for a scale factor without published answers."""
    rows = (
        _with_extension()
        .execute(
            "select query_nr, answer from tpch_answers() where scale_factor = ?", [scale_factor]
        )
        .fetchall()
    )
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
    connection = _open()
    for table, path in files.items():
        connection.read_parquet(str(path)).create_view(table)
    connection.execute(sql)
    return tuple(column[0] for column in connection.description), connection.fetchall()


def _open() -> duckdb.DuckDBPyConnection:
    if importlib.util.find_spec("duckdb") is None:
        raise EngineFailed(f"DuckDB is not installed in this Python; {REMEDY}")
    import duckdb

    # Otherwise DuckDB would spill into the current folder.
    spill = str(cache_dir("scratch", "reference"))
    return duckdb.connect(":memory:", config={"pin_threads": "off", "temp_directory": spill})


def _with_extension() -> duckdb.DuckDBPyConnection:
    connection = _open()
    version = importlib.metadata.version("duckdb")
    spec = importlib.util.find_spec("duckdb_extension_tpch")
    if spec is None or not spec.submodule_search_locations:
        raise EngineFailed(f"DuckDB's tpch extension is not installed; {REMEDY}")
    extension = Path(
        spec.submodule_search_locations[0], "extensions", f"v{version}", "tpch.duckdb_extension"
    )
    if not extension.exists():
        raise EngineFailed(f"DuckDB's tpch extension is not the one of DuckDB {version}; {REMEDY}")
    connection.load_extension(str(extension))
    return connection
