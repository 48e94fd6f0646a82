"""Reads MariaDB's ANALYZE FORMAT=JSON, of MariaDB 10.11. Pure.

The document has no tree of operators: a block lists its tables in the order in which they are
joined, each with the time inside the storage engine and the other time, which is that of the join.
Sorts and materialised subqueries are objects around or inside. Unknown objects are looked through.
A figure of a part that never ran is null. A plan without tables, as of an impossible condition, has
a message in their place.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from atoll.engines.graphs import Execution, graph_of
from atoll.engines.operators import Node, counted, listed, reading
from atoll.schema.operator_graph import OperatorGraph, Source
from atoll.schema.operators import Kind, Operator


def operators_of(analyzed: Mapping[str, Any]) -> tuple[Operator, ...]:
    """Raises ValueError if that is no plan."""
    with reading():
        return listed(_root(analyzed["query_block"]))


def graph(document: bytes) -> OperatorGraph:
    """See `atoll.engines.api.ProfiledEngine`."""
    with reading():
        block = json.loads(document)["query_block"]
        execution = Execution(
            engine="mariadb",
            seconds=_total_s(block),
            duty=(Source.ESTIMATED, "r_table_time_ms, r_other_time_ms: wall time, waits included"),
            notes=("MariaDB counts no bytes", "without the time of the client"),
        )
        return graph_of(_root(block), execution)


def _root(block: Any) -> Node:
    if len(block) == 0:
        raise ValueError("query_block: it is empty")
    top = Node("query_block", Kind.OTHER, None, None, tuple(_below(block)))
    # What no operator tells of: grouping, above all.
    own_s = _total_s(block) - sum(one.own_s or 0 for one in listed(top))
    return replace(top, own_s=max(0.0, own_s))


def _total_s(found: Any) -> float:
    """The time of a block. One that only unites others has none, so theirs is summed."""
    if isinstance(found, list):
        return sum(map(_total_s, found))
    if not isinstance(found, Mapping):
        return 0.0
    if "r_total_time_ms" in found:
        return _s(found, "r_total_time_ms")
    return sum(map(_total_s, found.values()))


def _below(found: Any) -> Iterator[Node]:
    """The topmost operators inside an object or a list."""
    if isinstance(found, list):
        for one in found:
            yield from _below(one)
    if not isinstance(found, Mapping):
        return
    for name, inner in found.items():
        if name == "nested_loop":
            first, *others = _elements(inner)
            yield reduce(_joined, others, _alone(first[1]))
        elif name == "table" and "table_name" in inner:
            yield _alone(inner)
        elif name == "filesort":
            below = tuple(_below(inner))
            yield _sort(inner, below, _s(inner, "r_total_time_ms"))
        else:
            yield from _below(inner)


def _elements(nested_loop: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(how it is read or joined, its description). Those whose duplicates a semi-join removes are
    a list inside the list."""
    for element in nested_loop:
        ((name, how),) = element.items()
        if isinstance(how, list):
            yield from _elements(how)
        else:
            yield name, how


def _joined(outer: Node, element: tuple[str, Mapping[str, Any]]) -> Node:
    """The join of what came before with the next table."""
    name, how = element
    table = how.get("table", how)
    names = (how.get("join_type"), table.get("access_type"))
    parts = [how] if how is table else [how, table]
    return Node(
        operator=" ".join(filter(None, ("nested loop" if how is table else name, *names))),
        kind=Kind.JOIN,
        own_s=sum(_s(one, "r_other_time_ms") for one in parts) + _s(how, "r_unpack_time_ms"),
        rows=None,
        below=(outer, _element(how)),
    )


def _alone(how: Mapping[str, Any]) -> Node:
    """A table that is joined with nothing yet: the other time is that of filtering it."""
    node = _element(how)
    return replace(node, own_s=(node.own_s or 0) + _s(how.get("table", how), "r_other_time_ms"))


def _sort(found: Mapping[str, Any], below: tuple[Node, ...], own_s: float) -> Node:
    rows = round(found.get("r_output_rows") or 0)
    return Node("filesort", Kind.SORT, max(0.0, own_s), rows, below)


def _element(how: Mapping[str, Any]) -> Node:
    """A table of a list, without its other time."""
    if sort := how.get(
        "filesort"
    ):  # 'read_sorted_file': the sort's time includes reading the table
        below = tuple(_below(sort))
        return _sort(sort, below, _s(sort, "r_total_time_ms") - sum(map(_whole_s, below)))
    table = how.get("table", how)
    below = tuple(_below(table))
    name = table["table_name"]
    return Node(
        operator=f"table access {table.get('access_type', '')}".strip(),
        kind=Kind.SCAN,
        own_s=max(0.0, _s(table, "r_table_time_ms") - sum(map(_whole_s, below))),
        rows=round((table.get("r_rows") or 0) * (table.get("r_loops") or 0)),
        below=below,
        table="" if name.startswith("<") else name,
    )


def _whole_s(node: Node) -> float:
    return (node.own_s or 0) + sum(map(_whole_s, node.below))


def _s(found: Mapping[str, Any], name: str) -> float:
    """Seconds; 0 of what did not run."""
    return counted(found.get(name) or 0.0) / 1000
