"""Reads MariaDB's ANALYZE FORMAT=JSON, of MariaDB 10.11. Pure.

The document has no tree of operators: a block lists its tables in the order in which they are
joined, each with the time inside the storage engine and the other time, which is that of the join.
Sorts and materialised subqueries are objects around or inside. Unknown objects are looked through.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from atoll.engines.operators import Node, listed
from atoll.schema.operators import Kind, Operator


def operators_of(analyzed: Mapping[str, Any]) -> tuple[Operator, ...]:
    """Raises ValueError if that is no plan."""
    try:
        block = analyzed["query_block"]
        top = Node("query_block", Kind.OTHER, None, None, tuple(_below(block)))
        # What no operator tells of: grouping, above all.
        own_ms = block["r_total_time_ms"] - 1000 * sum(one.own_s or 0 for one in listed(top))
        return listed(replace(top, own_s=max(0.0, own_ms) / 1000))
    except (KeyError, TypeError, AttributeError) as fault:
        raise ValueError(f"{type(fault).__name__}: {fault}") from None


def _below(found: Any) -> Iterator[Node]:
    """The topmost operators inside an object or a list."""
    if isinstance(found, list):
        for one in found:
            yield from _below(one)
    if not isinstance(found, Mapping):
        return
    for name, inner in found.items():
        if name == "nested_loop":
            yield reduce(_joined, inner[1:], _alone(inner[0]))
        elif name == "table":
            yield _alone({name: inner})
        elif name == "filesort":
            yield Node(
                operator=name,
                kind=Kind.SORT,
                own_s=inner.get("r_total_time_ms", 0.0) / 1000,
                rows=round(inner.get("r_output_rows", 0)),
                below=tuple(_below(inner)),
            )
        else:
            yield from _below(inner)


def _joined(outer: Node, element: Mapping[str, Any]) -> Node:
    """The join of what came before with the next table."""
    inner = _element(element)
    ((name, how),) = element.items()
    table = how.get("table", how)
    names = (how.get("join_type"), table.get("access_type"))
    parts = [how] if how is table else [how, table]
    other_ms = sum(one.get("r_other_time_ms", 0.0) for one in parts)
    return Node(
        operator=" ".join(filter(None, ("nested loop" if how is table else name, *names))),
        kind=Kind.JOIN,
        own_s=(other_ms + how.get("r_unpack_time_ms", 0.0)) / 1000,
        rows=None,
        below=(outer, inner),
    )


def _alone(element: Mapping[str, Any]) -> Node:
    """A table that is joined with nothing yet: the other time is that of filtering it."""
    ((_, how),) = element.items()
    node = _element(element)
    other_ms = how.get("table", how).get("r_other_time_ms", 0.0)
    return replace(node, own_s=(node.own_s or 0) + other_ms / 1000)


def _element(element: Mapping[str, Any]) -> Node:
    """A table of a list, without its other time."""
    ((_, how),) = element.items()
    table = how.get("table", how)
    below: Sequence[Node] = tuple(_below(table))
    name = table["table_name"]
    inside_s = sum(_whole_s(node) for node in below)
    return Node(
        operator=f"table access {table.get('access_type', '')}".strip(),
        kind=Kind.SCAN,
        own_s=max(0.0, table.get("r_table_time_ms", 0.0) / 1000 - inside_s),
        rows=round(table.get("r_rows", 0) * table.get("r_loops", 0)),
        below=tuple(below),
        table="" if name.startswith("<") else name,
    )


def _whole_s(node: Node) -> float:
    return (node.own_s or 0) + sum(map(_whole_s, node.below))
