"""Reads PostgreSQL's EXPLAIN (ANALYZE, FORMAT JSON), of PostgreSQL 15. Pure.

A node's time is per loop and includes those below it. Workers of a parallel plan are loops too, so
time x loops is the time of all processes. Only a Gather waits for processes that run at one time.

A CTE and an InitPlan hang below the top node of their query, but run inside the nodes that use
them: its scans, and those whose expressions name its result.
"""

from __future__ import annotations

import re
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
            operators=listed(_node(root, {})),
            peak_bytes=sum(_memory_kib(root)) * 1024,
            peak_source=PEAK,
        )


# 'CTE totals', '$0' of 'InitPlan 1 (returns $0)', and from PostgreSQL 17 on 'InitPlan 1'.
_RESULT = re.compile(r"^CTE .+|\$\d+|^InitPlan \d+$")
_USE = re.compile(r"\$\d+|\bInitPlan \d+")

_Outside = Mapping[str, list[float]]  # result -> [ms of its plan that are in no node's time yet]


def _node(found: Mapping[str, Any], outside: _Outside) -> Node:
    name, below = found["Node Type"], found.get("Plans", ())
    kind = kind_of(name)
    inside_ms, mine = 0.0, list[list[float]]()
    for child in below:
        if child.get("Parent Relationship") == "InitPlan":
            mine.append([_whole_ms(child)])
            names = _RESULT.findall(child["Subplan Name"])
            outside = {**outside, **dict.fromkeys(names, mine[-1])}
        else:
            inside_ms += child["Actual Total Time"] if kind is Kind.EXCHANGE else _whole_ms(child)
    # Less than 0: a node stopped before one below it did.
    own_ms = max(0.0, _whole_ms(found) - inside_ms)
    for result in _uses(found):
        left = outside.get(result, [0.0])
        taken_ms = min(left[0], own_ms)
        left[0] -= taken_ms
        own_ms -= taken_ms
    nodes = tuple(_node(child, outside) for child in below)
    # A plan whose result no expression names, as one that is only shown, ran here.
    own_ms -= min(sum(left for (left,) in mine), own_ms)
    return Node(
        operator=name,
        kind=kind,
        own_s=own_ms / 1000,
        rows=round(found["Actual Rows"] * found["Actual Loops"]),
        below=nodes,
        table=found.get("Relation Name", ""),
        join=found.get("Join Type", "").lower(),
        tasks=found["Workers Launched"] + 1 if "Workers Launched" in found else None,
    )


def _whole_ms(found: Mapping[str, Any]) -> float:
    whole: float = found["Actual Total Time"] * found["Actual Loops"]
    return whole


def _uses(found: Mapping[str, Any]) -> Iterator[str]:
    """The results that a node itself takes from other plans."""
    if found["Node Type"] == "CTE Scan":
        yield f"CTE {found['CTE Name']}"
    for name, text in found.items():
        if name not in ("Plans", "Workers", "Subplan Name"):
            yield from _USE.findall(str(text))


def _memory_kib(found: Mapping[str, Any]) -> Iterator[int]:
    """Of hash tables and sorts, in workers too."""
    for one in (found, *found.get("Workers", ())):
        yield one.get("Peak Memory Usage", 0)
        if one.get("Sort Space Type") == "Memory":
            yield one["Sort Space Used"]
    for child in found.get("Plans", ()):
        yield from _memory_kib(child)
