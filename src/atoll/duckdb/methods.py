"""Lists the methods of DuckDB's Python types that may run tasks in the calling thread.

The kinds are those of native/python/duckdb_types.hpp. Methods not listed here are DuckDB's own,
unwrapped: they build values, read properties, or must not wait (`interrupt`).

`fetchone` of a connection is deliberately left alone: it costs 0.4 us per row, less than binding
the thread does. When a row is the first of a new chunk its caller works unbound, next to bound
workers. The first row of a relation runs the query, bound; later rows are as a connection's.
"""

from __future__ import annotations

from typing import Any

_CONNECTION = {
    "query": ("execute", "executemany", "sql", "query"),
    "fetch": (
        *("arrow", "df", "fetch_arrow_table", "fetch_df", "fetch_df_chunk", "fetch_record_batch"),
        *("fetchall", "fetchdf", "fetchmany", "fetchnumpy", "pl", "tf", "to_arrow_reader"),
        *("to_arrow_table", "torch"),
    ),
    "other": (
        *("append", "begin", "checkpoint", "commit", "from_arrow", "from_csv_auto", "from_df"),
        *("from_parquet", "from_query", "read_csv", "read_json", "read_parquet", "rollback"),
        *("table", "table_function", "values", "view"),
    ),
}

# All other methods of a relation return relations or run one of those.
_RELATION = {
    "relation": (
        *("arrow", "create", "df", "fetch_arrow_reader", "fetch_arrow_table"),
        *("fetch_record_batch", "fetchall", "fetchdf", "fetchnumpy", "insert_into", "pl", "show"),
        *("tf", "to_arrow_reader", "to_arrow_table", "to_csv", "to_df", "to_parquet", "to_table"),
        *("torch", "write_csv", "write_parquet", "__repr__", "__str__", "__arrow_c_stream__"),
        "__len__",
    ),
    "other": ("__getattr__", "__getitem__"),
    "execute": ("execute",),
    "next": ("fetch_df_chunk", "fetchmany"),
    "row": ("fetchone",),
}
_NOT_OF_A_RELATION = {"alias", "close", "set_alias", "sql_query"}


def connection_methods(kind: type) -> list[tuple[str, str]]:
    """The methods of DuckDB's connections to wrap, with their kinds; only those that exist."""
    return [
        (name, what) for what, names in _CONNECTION.items() for name in names if hasattr(kind, name)
    ]


def relation_methods(kind: type) -> list[tuple[str, str]]:
    """The same for relations."""
    named = {name: what for what, names in _RELATION.items() for name in names}
    present = [(name, what) for name, what in named.items() if hasattr(kind, name)]
    rest = [
        name
        for name, value in vars(kind).items()
        if not name.startswith("_")
        and name not in named
        and name not in _NOT_OF_A_RELATION
        and _is_method(value)
    ]
    return present + [(name, "other") for name in rest]


def _is_method(value: Any) -> bool:
    return callable(value) and not isinstance(value, property | type)
