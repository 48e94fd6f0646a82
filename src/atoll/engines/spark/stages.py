"""Reads from Spark's event log what each stage used, as a graph of operators. Pure.

A stage is what Spark itself makes of neighbouring operators: one pipeline, whose tasks run it from
a shuffle (or a table) to the next. So a stage's CPU time is that of the unit that could be placed.

A stage that finds its shuffle's files there is skipped, and has another number in each job. The
first RDD of its list is the same then, so by that the stages of all jobs belong together. (Events
of org.apache.spark.util.JsonProtocol, Spark 4.3.0.)
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from atoll.engines.graphs import Execution
from atoll.engines.operators import reading
from atoll.engines.spark.events import number
from atoll.schema.operator_graph import Edge, GraphOperator, OperatorGraph, Source
from atoll.schema.text import one_line


@dataclass(slots=True)
class _Stage:
    cpu_ns: int = 0
    tasks: int = 0
    moved_bytes: int = 0  # read from files and shuffles, and written to a shuffle
    written_bytes: int = 0  # to its shuffle


@dataclass(slots=True)
class _Log:
    rdds: dict[int, int] = field(default_factory=dict)  # stage -> the RDD that identifies it
    parents: dict[int, tuple[int, ...]] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    ran: dict[int, _Stage] = field(default_factory=dict)
    began_ms: dict[int, int] = field(default_factory=dict)  # of jobs that run
    jobs_ms: list[tuple[int, int]] = field(default_factory=list)


def graph(document: bytes) -> OperatorGraph:
    """See `atoll.engines.api.ProfiledEngine`. All jobs of the log together are one execution; its
    time is that in which any of them ran."""
    log = _Log()
    for place, line in enumerate(document.splitlines(), start=1):
        try:
            with reading():
                _add(log, json.loads(line))
        except ValueError as fault:
            hint = "" if line.startswith(b"{") else "; set spark.eventLog.compress to false"
            raise ValueError(f"line {place}: {fault}{hint}") from None
    if not log.ran:
        raise ValueError("no task of any job ended")
    with reading():
        return _graph(log)


def _graph(log: _Log) -> OperatorGraph:
    execution = Execution(
        engine="spark",
        seconds=sum(end - begin for begin, end in _united(log.jobs_ms)) / 1000,
        duty=(Source.MEASURED, "executorCpuTime and executorDeserializeCpuTime of all tasks"),
        gives=(Source.MEASURED, "shuffle bytes written"),
        memory=(Source.ESTIMATED, "bytes read from files, and shuffle bytes read and written"),
        notes=(
            "an operator is a stage; what goes through the driver (broadcasts, results) has no "
            "edge",
            "without the CPU time of the driver and of garbage collection",
        ),
    )
    _ = execution.rate  # before anything is divided by it
    by_rdd = {log.rdds[stage]: stage for stage in log.ran if stage in log.rdds}
    gives = execution.figure(execution.gives)
    edges = {
        (giver, taker): gives(log.ran[giver].written_bytes)
        for taker in log.ran
        for parent in log.parents.get(taker, ())
        if (giver := by_rdd.get(log.rdds.get(parent, -1))) is not None
    }
    takers = {giver for giver, _ in edges}
    return execution.graph(
        (
            GraphOperator(
                id=str(stage),
                name=log.names.get(stage, ""),
                blocking=stage in takers,  # the stages after it wait for its last task
                parallel=found.tasks > 1,
                activity=execution.activity(found.cpu_ns / 1e9, found.moved_bytes),
            )
            for stage, found in sorted(log.ran.items())
        ),
        (
            Edge(giver=str(giver), taker=str(taker), bytes_per_s=carried)
            for (giver, taker), carried in sorted(edges.items(), key=lambda edge: edge[0])
        ),
    )


def _add(log: _Log, event: Mapping[str, Any]) -> None:
    match event["Event"]:
        case "SparkListenerJobStart":
            log.began_ms[number(event["Job ID"])] = number(event["Submission Time"])
            for info in event["Stage Infos"]:
                _add_stage(log, info)
        case "SparkListenerJobEnd":
            begin = log.began_ms.pop(number(event["Job ID"]))
            log.jobs_ms.append((begin, number(event["Completion Time"])))
        case "SparkListenerTaskEnd" if event.get("Task Metrics") is not None:
            metrics = event["Task Metrics"]
            stage = log.ran.setdefault(number(event["Stage ID"]), _Stage())
            read, written = metrics["Shuffle Read Metrics"], metrics["Shuffle Write Metrics"]
            written_bytes = number(written["Shuffle Bytes Written"])
            stage.tasks += 1
            stage.cpu_ns += number(metrics["Executor CPU Time"])
            stage.cpu_ns += number(metrics["Executor Deserialize CPU Time"])
            stage.written_bytes += written_bytes
            stage.moved_bytes += (
                number(metrics["Input Metrics"]["Bytes Read"])
                + number(read["Remote Bytes Read"])
                + number(read["Local Bytes Read"])
                + written_bytes
            )


def _add_stage(log: _Log, info: Mapping[str, Any]) -> None:
    stage, rdds = number(info["Stage ID"]), info["RDD Info"]
    log.parents[stage] = tuple(number(parent) for parent in info["Parent IDs"])
    if rdds:
        log.rdds[stage] = number(rdds[0]["RDD ID"])
    # In the order of the data, as Spark's web pages show them: 'WholeStageCodegen (1), Exchange'.
    scopes = (json.loads(rdd["Scope"])["name"] for rdd in reversed(rdds) if "Scope" in rdd)
    log.names[stage] = one_line(", ".join(dict.fromkeys(scopes)) or info["Stage Name"])


def _united(spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The spans without overlaps."""
    end_before = 0
    for begin, end in sorted(spans):
        if end > end_before:
            yield max(begin, end_before), end
            end_before = end
