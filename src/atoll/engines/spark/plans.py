"""Reads from Spark's event log how a query was executed: its last plan with its metrics. Pure.

The events are those of Spark 4.3.0 (org.apache.spark.sql.execution.ui). A plan's metrics are
accumulators, to which tasks add. Spark times few operators one by one: what a compiled stage
took beyond the operators in it that are timed is the time of `WholeStageCodegen`, and the others
have none. The time in which an aggregation is built includes that of what feeds it.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from atoll.engines.operators import Node, kind_of, listed, reading, tables_of
from atoll.schema.operators import Kind, Operator

_SQL = "org.apache.spark.sql.execution.ui."
_SECONDS = {"timing": 1e-3, "nsTiming": 1e-9}
_WHOLE = ("duration", "time in aggregation build")  # with what is below in the compiled stage
# Waits for other tasks, whose time is their own.
_WAITS = ("time to collect", "remote reqs duration", "remote merged reqs duration")
_JOIN = re.compile(r", (Inner|Cross|LeftOuter|RightOuter|FullOuter|LeftSemi|LeftAnti|Existence)")
_DISTRIBUTED = {
    "BroadcastHashJoin": "broadcast",
    "BroadcastNestedLoopJoin": "broadcast",
    "BroadcastExchange": "broadcast",
    "SortMergeJoin": "partitioned",
    "ShuffledHashJoin": "partitioned",
}
# They only stand for what is below them.
_WRAPPERS = (
    *("InputAdapter", "AdaptiveSparkPlan", "AQEShuffleRead"),
    *("ShuffleQueryStage", "BroadcastQueryStage", "ResultQueryStage"),
)
_SENT = (
    ("hashpartitioning", "partitioned"),
    ("rangepartitioning", "by range"),
    ("SinglePartition", "gathered"),
)


@dataclass(slots=True)
class _Log:
    """By execution: the last plan. By accumulator: its sum, and the tasks that added to it."""

    plans: dict[int, dict[str, Any]] = field(default_factory=dict)
    sums: Counter[int] = field(default_factory=Counter)
    tasks: Counter[int] = field(default_factory=Counter)


def operators_of(lines: Iterable[bytes]) -> tuple[Operator, ...]:
    """The operators of the last query in these whole lines of a log. Raises ValueError."""
    log = _Log()
    with reading():
        for line in lines:
            _add(log, json.loads(line))
        if not log.plans:
            raise ValueError("there is no plan")
        return listed(_only(_nodes(log.plans[max(log.plans)], log)))


def _add(log: _Log, event: Mapping[str, Any]) -> None:
    name = event["Event"].removeprefix(_SQL)
    if name in ("SparkListenerSQLExecutionStart", "SparkListenerSQLAdaptiveExecutionUpdate"):
        log.plans[event["executionId"]] = event["sparkPlanInfo"]
    elif name == "SparkListenerDriverAccumUpdates":
        for number, value in event["accumUpdates"]:
            log.sums[number] += max(0, int(value))
    elif name == "SparkListenerTaskEnd":
        for one in event["Task Info"]["Accumulables"]:
            if one.get("Metadata") == "sql" and one.get("Update") is not None:
                log.sums[one["ID"]] += max(0, int(one["Update"]))  # -1: not set
                log.tasks[one["ID"]] += 1


def _only(nodes: Iterable[Node]) -> Node:
    (node,) = nodes
    return node


def _nodes(plan: Mapping[str, Any], log: _Log) -> Iterator[Node]:
    name: str = plan["nodeName"]
    below = tuple(node for child in plan["children"] for node in _nodes(child, log))
    if name.startswith(_WRAPPERS):
        yield from below
        return
    if name == "ReusedExchange":  # what is below it ran once, elsewhere in the plan
        others = tuple(table for node in below for table in tables_of(node))
        yield Node(name, Kind.EXCHANGE, None, None, others=others)
        return
    seconds = {
        one["name"]: log.sums[one["accumulatorId"]] * _SECONDS[one["metricType"]]
        for one in plan["metrics"]
        if one["metricType"] in _SECONDS and one["name"] not in _WAITS
    }
    ids = {one["name"]: one["accumulatorId"] for one in plan["metrics"]}
    operator = name.split(" ")[0] if name.startswith(("Scan ", "WholeStage")) else name
    kind = kind_of(operator)
    is_whole = not seconds.keys().isdisjoint(_WHOLE)
    timed_s = sum(seconds.values()) - (_timed_s(below) if is_whole else 0.0)
    join = _JOIN.search(plan["simpleString"]) if kind is Kind.JOIN else None
    yield Node(
        operator=operator,
        kind=kind,
        own_s=max(0.0, timed_s) if seconds else None,
        rows=log.sums[ids["number of output rows"]] if "number of output rows" in ids else None,
        below=below,
        table=_table(plan) if kind is Kind.SCAN else "",
        join=join[1].lower() if join else "",
        distribution=_DISTRIBUTED.get(operator) or (_sent(plan) if kind is Kind.EXCHANGE else ""),
        tasks=max((log.tasks[number] for number in ids.values()), default=0) or None,
    )


def _timed_s(nodes: Iterable[Node]) -> float:
    """Of the operators of the same compiled stage, which ends at exchanges."""
    return sum(
        (node.own_s or 0) + _timed_s(node.below)
        for node in nodes
        if node.kind is not Kind.EXCHANGE and node.operator != "WholeStageCodegen"
    )


def _sent(plan: Mapping[str, Any]) -> str:
    return next((how for word, how in _SENT if word in plan["simpleString"]), "")


def _table(plan: Mapping[str, Any]) -> str:
    """The name of the folder that is read."""
    place = re.search(r"\[([^\],]+)", plan.get("metadata", {}).get("Location", ""))
    return os.path.basename(place[1].rstrip("/")).partition(".")[0] if place else ""
