"""Reads PostgreSQL's EXPLAIN (ANALYZE, FORMAT JSON), of PostgreSQL 15. Pure.

A node's time is per loop and includes those below it. Workers of a parallel plan are loops too, so
time x loops is the time of all processes. Only a Gather waits for processes that run at one time.

A CTE and an InitPlan hang below the top node of their query, but run inside the nodes that use
them: its scans, and those whose expressions name its result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from atoll.engines.graphs import Execution, graph_of
from atoll.engines.operators import Node, counted, kept_bytes, kind_of, listed, reading
from atoll.schema.operator_graph import OperatorGraph, Source
from atoll.schema.operators import Kind, QueryProfile

_BLOCK_BYTES = 8192  # BLCKSZ, of all packages
_BLOCKS = (
    *("Shared Hit Blocks", "Shared Read Blocks", "Local Hit Blocks", "Local Read Blocks"),
    *("Temp Read Blocks", "Temp Written Blocks"),
)
_KEEPING_STRATEGIES = ("Hashed", "Mixed", "Plain")  # of an aggregate; 'Sorted' gives as it goes
PEAK = "Peak Memory Usage and Sort Space Used of all nodes together"


def profile_of(explained: Any) -> QueryProfile:
    """Raises ValueError if that is no plan."""
    with reading():
        root = explained[0]["Plan"]
        return QueryProfile(
            operators=listed(_root(explained)),
            peak_bytes=sum(_memory_kib(root)) * 1024,
            peak_source=PEAK,
        )


def graph(document: bytes) -> OperatorGraph:
    """See `atoll.engines.api.ProfiledEngine`. The document is that of EXPLAIN (ANALYZE, BUFFERS,
    FORMAT JSON)."""
    with reading():
        explained = json.loads(document)
        if "Shared Hit Blocks" not in explained[0]["Plan"]:
            raise ValueError("no BUFFERS; use EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)")
        execution = Execution(
            engine="postgresql",
            seconds=explained[0]["Execution Time"] / 1000,
            duty=(Source.ESTIMATED, "time in the node alone x loops: wall time, waits included"),
            gives=(Source.ESTIMATED, "rows x width"),
            memory=(Source.ESTIMATED, "buffers x 8 KiB, and 2 x what is kept"),
            notes=("without planning and the client; EXPLAIN ANALYZE itself slows nodes down",),
        )
        return graph_of(_root(explained), execution)


# 'CTE totals', '$0' of 'InitPlan 1 (returns $0)', and from PostgreSQL 17 on 'InitPlan 1'.
_RESULT = re.compile(r"^CTE .+|\$\d+|^InitPlan \d+$")
_USE = re.compile(r"\$\d+|\bInitPlan \d+")

_Outside = Mapping[str, list[float]]  # result -> [what of its plan is in no node's sum yet]


@dataclass(frozen=True, slots=True)
class _Measure:
    """Something that is summed over a node and those below it."""

    whole: Callable[[Mapping[str, Any]], float]
    awaited: Callable[[Mapping[str, Any]], float]  # of a node below a Gather: what of it is here


def _whole_ms(found: Mapping[str, Any]) -> float:
    return counted(found["Actual Total Time"]) * counted(found["Actual Loops"])


def _blocks(found: Mapping[str, Any]) -> float:
    return float(sum(counted(found.get(name, 0)) for name in _BLOCKS))


_TIME = _Measure(_whole_ms, lambda below: float(below["Actual Total Time"]))
_BUFFERS = _Measure(_blocks, _blocks)


def _own(found: Mapping[str, Any], measure: _Measure) -> dict[int, float]:
    """What each node has of it alone, by `id` of the node."""
    own: dict[int, float] = {}
    _add_own(found, {}, measure, own)
    return own


def _add_own(
    found: Mapping[str, Any], outside: _Outside, measure: _Measure, own: dict[int, float]
) -> None:
    inside, mine = 0.0, list[list[float]]()
    waits = kind_of(found["Node Type"]) is Kind.EXCHANGE
    for child in found.get("Plans", ()):
        if child.get("Parent Relationship") == "InitPlan":
            mine.append([measure.whole(child)])
            names = _RESULT.findall(child["Subplan Name"])
            outside = {**outside, **dict.fromkeys(names, mine[-1])}
        else:
            inside += measure.awaited(child) if waits else measure.whole(child)
    # Less than 0: a node stopped before one below it did.
    left_here = max(0.0, measure.whole(found) - inside)
    for result in _uses(found):
        left = outside.get(result, [0.0])
        taken = min(left[0], left_here)
        left[0] -= taken
        left_here -= taken
    for child in found.get("Plans", ()):
        _add_own(child, outside, measure, own)
    # A plan whose result no expression names, as one that is only shown, ran here.
    own[id(found)] = left_here - min(sum(left for (left,) in mine), left_here)


def _root(explained: Any) -> Node:
    root = explained[0]["Plan"]
    return _node(root, _own(root, _TIME), _own(root, _BUFFERS), shared=False)


def _node(
    found: Mapping[str, Any], ms: Mapping[int, float], blocks: Mapping[int, float], *, shared: bool
) -> Node:
    """`shared`: several processes run it, each a part."""
    name = found["Node Type"]
    kind = kind_of(name)
    rows = found["Actual Rows"] * found["Actual Loops"]
    gives = rows * found["Plan Width"] if "Plan Width" in found else None
    processes = found["Workers Launched"] + 1 if "Workers Launched" in found else None
    below = tuple(
        _node(child, ms, blocks, shared=shared or processes is not None)
        for child in found.get("Plans", ())
    )
    blocking = name in ("Sort", "Hash") or found.get("Strategy") in _KEEPING_STRATEGIES
    kept = kept_bytes(Kind.OTHER if kind is Kind.JOIN else kind, gives, below, blocking=blocking)
    return Node(
        operator=name,
        kind=kind,
        own_s=ms[id(found)] / 1000,
        rows=round(rows),
        below=below,
        table=found.get("Relation Name", ""),
        join=found.get("Join Type", "").lower(),
        tasks=processes,
        gives_bytes=gives,
        memory_bytes=None if kept is None else blocks[id(found)] * _BLOCK_BYTES + 2 * kept,
        blocking=blocking,
        parallel=shared,
    )


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
