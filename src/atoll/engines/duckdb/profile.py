"""Reads DuckDB's profile of a query (JSON of `get_profiling_information`, DuckDB 1.5.5). Pure."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from atoll.engines.operators import Node, kind_of, listed, reading
from atoll.schema.operators import Kind, Operator


def operators_of(profile: Mapping[str, Any]) -> tuple[Operator, ...]:
    """The operators of a whole profile. Raises ValueError for anything else."""
    with reading():
        (root,) = profile["children"]
        return listed(_node(root))


def _node(found: Mapping[str, Any]) -> Node:
    name, more = str(found["operator_name"]).strip(), found["extra_info"]
    is_scan = found["operator_type"] == "TABLE_SCAN"
    return Node(
        operator=name,
        kind=Kind.SCAN if is_scan else kind_of(name),
        own_s=found["operator_timing"],
        rows=found["operator_cardinality"],
        below=tuple(map(_node, found["children"])),
        table=_table(more) if is_scan else "",
        join=str(more.get("Join Type", "")).lower(),
    )


def _table(more: Mapping[str, Any]) -> str:
    """'lineitem' of the table memory.main.lineitem, or of the file .../lineitem.parquet."""
    if "Table" in more:
        return str(more["Table"]).rpartition(".")[2]
    files = more.get("Filename(s)", "")
    first = files[0] if isinstance(files, list) and files else str(files).partition(",")[0]
    return os.path.basename(str(first)).partition(".")[0]
