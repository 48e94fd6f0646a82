"""Reads DuckDB's profile of a query, JSON of DuckDB 1.5.5: that of `get_profiling_information`, of
`profiling_output`, or of EXPLAIN (ANALYZE, FORMAT JSON). Pure."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from atoll.engines.graphs import Execution, graph_of
from atoll.engines.operators import Node, kept_bytes, kind_of, listed, reading
from atoll.schema.operator_graph import OperatorGraph, Source
from atoll.schema.operators import Kind, Operator

_KEEPS_ALL = (Kind.AGGREGATE, Kind.SORT, Kind.WINDOW)


def operators_of(profile: Mapping[str, Any]) -> tuple[Operator, ...]:
    """The operators of a whole profile. Raises ValueError for anything else."""
    with reading():
        return listed(_root(profile))


def graph(document: bytes) -> OperatorGraph:
    """See `atoll.engines.api.ProfiledEngine`."""
    with reading():
        profile = json.loads(document)
        execution = Execution(
            engine="duckdb",
            seconds=profile["latency"],
            duty=(Source.MEASURED, "operator_timing: wall time summed over threads, not CPU time"),
            gives=(Source.MEASURED, "result_set_size"),
            memory=(Source.ESTIMATED, "rows scanned x their width, and 2 x what is kept"),
            notes=("without the time between operators: planning, scheduling, the client",),
        )
        return graph_of(_root(profile), execution)


def _root(profile: Mapping[str, Any]) -> Node:
    (top,) = profile["children"]
    if top["operator_name"] == "EXPLAIN_ANALYZE":
        (top,) = top["children"]
    return _node(top)


def _node(found: Mapping[str, Any]) -> Node:
    name, more = str(found["operator_name"]).strip(), found["extra_info"]
    is_scan = found["operator_type"] == "TABLE_SCAN"
    kind = Kind.SCAN if is_scan else kind_of(name)
    below = tuple(map(_node, found["children"]))
    streams = name.startswith("STREAMING")  # on one thread, in the rows' order
    blocking = kind in _KEEPS_ALL and not streams
    gives = found.get("result_set_size")  # not in the profiles of `atoll bench`
    kept = kept_bytes(kind, gives, below, blocking=blocking)
    scanned = _scanned_bytes(found)
    return Node(
        operator=name,
        kind=kind,
        own_s=found["operator_timing"],
        rows=found["operator_cardinality"],
        below=below,
        table=_table(more) if is_scan else "",
        join=str(more.get("Join Type", "")).lower(),
        gives_bytes=gives,
        memory_bytes=None if kept is None or scanned is None else scanned + 2 * kept,
        blocking=blocking,
        parallel=not streams,
    )


def _scanned_bytes(found: Mapping[str, Any]) -> float | None:
    """None: no row is left after filters, or sizes were not profiled, so no width is known."""
    rows = found.get("operator_rows_scanned", 0)
    if "Filename(s)" in found["extra_info"]:
        rows /= 2  # DuckDB 1.5.5 counts the rows of files twice
    if rows == 0:
        return 0.0
    given, size = found["operator_cardinality"], found.get("result_set_size")
    return rows * (size / given) if size is not None and given > 0 else None


def _table(more: Mapping[str, Any]) -> str:
    """'lineitem' of the table memory.main.lineitem, or of the file .../lineitem.parquet."""
    if "Table" in more:
        return str(more["Table"]).rpartition(".")[2]
    files = more.get("Filename(s)", "")
    first = files[0] if isinstance(files, list) and files else str(files).partition(",")[0]
    return os.path.basename(str(first)).partition(".")[0]
