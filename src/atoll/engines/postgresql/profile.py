"""Reads PostgreSQL's EXPLAIN (ANALYZE, FORMAT JSON), of PostgreSQL 15. Pure.

A node's time is per loop and includes those below it. Workers of a parallel plan are loops too, so
time x loops is the time of all processes. Only a Gather waits for processes that run at one time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from atoll.engines.operators import Node, kind_of, listed, reading
from atoll.schema.operators import Kind, QueryProfile

PEAK = "Peak Memory Usage and Sort Space Used of all nodes together"


def profile_of(explained: Any) -> QueryProfile:
    """Raises ValueError if that is no plan."""
    with reading():
        root = explained[0]["Plan"]
        return QueryProfile(
            operators=listed(_node(root)),
            peak_bytes=sum(_memory_kib(root)) * 1024,
            peak_source=PEAK,
        )


def _node(found: Mapping[str, Any]) -> Node:
    name, loops, below = found["Node Type"], found["Actual Loops"], found.get("Plans", ())
    kind = kind_of(name)
    together = kind is Kind.EXCHANGE
    inside_ms = sum(
        child["Actual Total Time"] * (1 if together else child["Actual Loops"]) for child in below
    )
    return Node(
        operator=name,
        kind=kind,
        # Less than 0: a node stopped before one below it did.
        own_s=max(0.0, found["Actual Total Time"] * loops - inside_ms) / 1000,
        rows=round(found["Actual Rows"] * loops),
        below=tuple(map(_node, below)),
        table=found.get("Relation Name", ""),
        join=found.get("Join Type", "").lower(),
        tasks=found["Workers Launched"] + 1 if "Workers Launched" in found else None,
    )


def _memory_kib(found: Mapping[str, Any]) -> Iterator[int]:
    """Of hash tables and sorts, in workers too."""
    for one in (found, *found.get("Workers", ())):
        yield one.get("Peak Memory Usage", 0)
        if one.get("Sort Space Type") == "Memory":
            yield one["Sort Space Used"]
    for child in found.get("Plans", ()):
        yield from _memory_kib(child)
