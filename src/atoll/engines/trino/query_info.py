"""Reads what a Trino or Presto coordinator tells of queries at /v1/query. Pure.

The shapes are those of Trino 476 and Presto 0.287. A field that the server does not have is None;
what cannot be read is a ValueError.
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
_PRESTO_TABLE = re.compile(r"\btableName=(\w+)")
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
    name, table, how, sources = _trinos(found) if "descriptor" in found else _prestos(found)
    below = [_node(child, stages, stage, runs) for child in found["children"]]
    mine = list(runs.get(found["id"], ()))
    distribution = _DISTRIBUTIONS.get(how, "")
    for source in sources:
        below.append(_node(json.loads(_plan_of(stages[source])), stages, source, runs))
        mine += runs.get(f"from {source}", ())
        distribution = _sent(stages[source])
    kind = kind_of(name)
    return Node(
        operator=name,
        kind=Kind.SCAN if table else kind,
        own_s=sum(quantity(run[part]) for run in mine for part in _WALLS),
        rows=max((run["outputPositions"] for run in mine), default=None),
        below=tuple(below),
        table=table,
        node=found["id"],
        join=name.removesuffix("Join").lower() if kind is Kind.JOIN else "",
        distribution=distribution,
        tasks=len(_tasks(stages[stage])) or None,
    )


def _trinos(found: Mapping[str, Any]) -> tuple[str, str, str, list[str]]:
    """Name, table, how it distributes, and the stages that it reads."""
    more = found["descriptor"]
    sources = more.get("sourceFragmentIds", "").strip("[]").replace(" ", "").split(",")
    table = more.get("table", "").rpartition(":")[2]
    return found["name"], table, more.get("distribution", ""), [one for one in sources if one]


def _prestos(found: Mapping[str, Any]) -> tuple[str, str, str, list[str]]:
    """The same of 'Aggregate(FINAL)[n_name]', of "[table = TableHandle {... tableName=nation ...".
    A join says 'Distribution: REPLICATED' in its details, a local exchange '[HASH][...] (...)'."""
    name, said = found["name"].partition("[")[0], found["identifier"]
    table = _PRESTO_TABLE.search(said) if "Scan" in name else None
    how = said.strip("[").partition("]")[0] if name == "LocalExchange" else ""
    for line in found["details"].splitlines():
        how = line.removeprefix("Distribution: ") if line.startswith("Distribution: ") else how
    return name, table[1] if table else "", how, found["remoteSources"]


def _tasks(stage: Mapping[str, Any]) -> Sequence[Any]:
    found: Sequence[Any] = (stage.get("latestAttemptExecutionInfo") or stage)["tasks"]
    return found


def _sent(stage: Mapping[str, Any]) -> str:
    """How a stage distributes its rows."""
    plan = stage["plan"]
    scheme = plan.get("outputPartitioningScheme") or plan["partitioningScheme"]
    handle = scheme["partitioning"]["handle"]
    function = str(handle["connectorHandle"].get("function", ""))
    return _DISTRIBUTIONS.get(function, function.lower())
