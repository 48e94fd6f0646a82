"""Reads what a Trino or Presto coordinator tells of queries at /v1/query. Pure.

The shapes are those of Trino 476 and Presto 0.287. A field that the server does not have is None;
what cannot be read is a ValueError.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from atoll.engines.graphs import Execution, graph_of
from atoll.engines.operators import Node, kept_bytes, kind_of, listed, reading
from atoll.schema.operator_graph import OperatorGraph, Source
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
_BUILDS = re.compile("Build|DynamicFilterSource")
_EARLY = re.compile("PARTIAL|STREAMING")  # steps of an aggregation
_CPUS = ("addInputCpu", "getOutputCpu", "finishCpu")
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
        return listed(_root(info))


def graph(document: bytes, *, engine: str) -> OperatorGraph:
    """See `atoll.engines.api.ProfiledEngine`. The document is the answer of /v1/query/ID."""
    with reading():
        info = json.loads(document)
        if (state := info.get("state", "FINISHED")) != "FINISHED":
            raise ValueError(f"the query is {state}, not FINISHED")
        execution = Execution(
            engine=engine,
            seconds=quantity(info["queryStats"]["executionTime"]),
            duty=(Source.MEASURED, "CPU time of addInput, getOutput and finish"),
            gives=(Source.MEASURED, "outputDataSize"),
            memory=(Source.ESTIMATED, "input of scans, and 2 x what is kept or exchanged"),
            notes=("without the CPU time of planning, scheduling and garbage collection",),
        )
        return graph_of(_root(info), execution)


def _root(info: Any) -> Node:
    stages = {stage["plan"]["id"]: stage for stage in _stages(info["outputStage"])}
    runs: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for run in info["queryStats"]["operatorSummaries"]:
        # What a stage sends is part of the exchange that receives it.
        sends = run["operatorType"] in _SENDERS
        runs[f"from {run['stageId']}" if sends else run["planNodeId"]].append(run)
    first = info["outputStage"]["plan"]["id"]
    return _node(json.loads(_plan_of(stages[first])), stages, first, runs)


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
    kind = Kind.SCAN if table else kind_of(name)
    step = f"{name} {found.get('descriptor', {}).get('type', '')}"
    gives_early = kind is Kind.AGGREGATE and _EARLY.search(step) is not None
    blocking = kind in (Kind.AGGREGATE, Kind.SORT, Kind.WINDOW) and not gives_early
    gives = _most_bytes(mine, "outputDataSize")
    kept = gives if kind is Kind.EXCHANGE else kept_bytes(kind, gives, below, blocking=blocking)
    read = _most_bytes(mine, "inputDataSize") if kind is Kind.SCAN else 0.0
    if kind is Kind.SCAN and read is not None and gives is not None:
        read = max(read, gives)  # some connectors do not count their input
    return Node(
        operator=name,
        kind=kind,
        own_s=_sum_s(mine, _WALLS),
        rows=max((run["outputPositions"] for run in mine), default=None),
        below=tuple(below),
        table=table,
        node=found["id"],
        join=name.removesuffix("Join").lower() if kind is Kind.JOIN else "",
        distribution=distribution,
        tasks=len(_tasks(stages[stage])) or None,
        cpu_s=_sum_s(mine, _CPUS) if all(_CPUS[0] in run for run in mine) else None,
        gives_bytes=gives,
        memory_bytes=None if kept is None or read is None else read + 2 * kept,
        blocking=blocking,
        parallel=any(run.get("totalDrivers", 1) > 1 for run in mine),
    )


def _sum_s(runs: Iterable[Mapping[str, Any]], parts: Iterable[str]) -> float:
    return sum(quantity(run[part]) for run in runs for part in parts)


def _most_bytes(runs: Iterable[Mapping[str, Any]], what: str) -> float | None:
    """Of the runs that a plan node consists of, without the build side of a join. None: the
    document has no sizes, or the node never ran."""
    return max(
        (
            quantity(run[what])
            for run in runs
            if what in run and not _BUILDS.search(run["operatorType"])
        ),
        default=None,
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
