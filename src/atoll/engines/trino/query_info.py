"""Reads what a Trino or Presto coordinator tells of queries at /v1/query. Pure.

The shapes are those of Trino 476. A field that the server does not have is None; what cannot be
read is a ValueError.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from atoll.engines.operators import Node, kind_of, listed, reading
from atoll.schema.operators import Kind, Operator
from atoll.schema.results import EngineWork

PEAK = "peakTotalMemoryReservation"
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)([a-zA-Z]+)", re.ASCII)
# io.airlift.units: DataSize counts in powers of 1024.
_UNITS = {
    **{name: 1024.0**power for power, name in enumerate(("B", "kB", "MB", "GB", "TB", "PB"))},
    "ns": 1e-9,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}
_SENDERS = frozenset({"TaskOutputOperator", "PartitionedOutputOperator"})
_WALLS = ("addInputWall", "getOutputWall", "finishWall")
_DISTRIBUTIONS = {
    "REPLICATED": "broadcast",
    "BROADCAST": "broadcast",
    "PARTITIONED": "partitioned",
    "HASH": "partitioned",
    "SINGLE": "gathered",
}


def works_of(listed: Any) -> dict[str, EngineWork]:
    """The counts of all queries in the answer of /v1/query, by their ids."""
    with reading():
        return {str(one["queryId"]): _work(one["queryStats"]) for one in listed}


def quantity(text: str) -> float:
    """Bytes of '4870054B' or '4.64MB', seconds of '1.66s' or '84.41us'."""
    match = _QUANTITY.fullmatch(text)
    if match is None or match[2] not in _UNITS:
        raise ValueError(f"{text[:40]!r} is no size and no duration")
    return float(match[1]) * _UNITS[match[2]]


def _work(stats: Mapping[str, str]) -> EngineWork:
    def size(name: str) -> int | None:
        return int(quantity(stats[name])) if name in stats else None

    return EngineWork(
        run_s=quantity(stats["totalScheduledTime"]),
        shuffle_bytes=size("internalNetworkInputDataSize"),  # Presto 0.287 does not list it
        spilled_bytes=size("spilledDataSize"),
        read_bytes=size("physicalInputDataSize"),
        peak_bytes=size(PEAK),
        peak_source=PEAK,
    )


def operators_of(info: Any) -> tuple[Operator, ...]:
    """The operators of the answer of /v1/query/ID, stage by stage from the last one on."""
    with reading():
        stages = {stage["plan"]["id"]: stage for stage in _stages(info["outputStage"])}
        runs: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for run in info["queryStats"]["operatorSummaries"]:
            # What a stage sends is part of the exchange that receives it.
            sends = run["operatorType"] in _SENDERS
            runs[f"from {run['stageId']}" if sends else run["planNodeId"]].append(run)
        first = info["outputStage"]["plan"]["id"]
        return listed(_node(json.loads(_plan_of(stages[first])), stages, first, runs))


def _stages(stage: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield stage
    for below in stage["subStages"]:
        yield from _stages(below)


def _plan_of(stage: Mapping[str, Any]) -> str:
    text: str = stage["plan"]["jsonRepresentation"]
    return text


def _node(
    found: Mapping[str, Any],
    stages: Mapping[str, Mapping[str, Any]],
    stage: str,
    runs: Mapping[str, Sequence[Mapping[str, Any]]],
) -> Node:
    name, more = found["name"], found["descriptor"]
    sources = more.get("sourceFragmentIds", "").strip("[]").replace(" ", "").split(",")
    below = [_node(child, stages, stage, runs) for child in found["children"]]
    mine = list(runs.get(found["id"], ()))
    distribution = _DISTRIBUTIONS.get(more.get("distribution", ""), "")
    for source in filter(None, sources):
        below.append(_node(json.loads(_plan_of(stages[source])), stages, source, runs))
        mine += runs.get(f"from {source}", ())
        distribution = _sent(stages[source])
    kind = kind_of(name)
    return Node(
        operator=name,
        kind=Kind.SCAN if "table" in more else kind,
        own_s=sum(quantity(run[part]) for run in mine for part in _WALLS),
        rows=max((run["outputPositions"] for run in mine), default=None),
        below=tuple(below),
        table=more.get("table", "").rpartition(":")[2],
        node=found["id"],
        join=name.removesuffix("Join").lower() if kind is Kind.JOIN else "",
        distribution=distribution,
        tasks=len(stages[stage]["tasks"]) or None,
    )


def _sent(stage: Mapping[str, Any]) -> str:
    """How a stage distributes its rows."""
    handle = stage["plan"]["outputPartitioningScheme"]["partitioning"]["handle"]
    function = str(handle["connectorHandle"].get("function", ""))
    return _DISTRIBUTIONS.get(function, function.lower())
