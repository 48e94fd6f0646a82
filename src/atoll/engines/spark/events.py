"""Reads from Spark's event log, JSON lines, what each query took. Pure.

`JobStart` names the query (job group) of its stages, `TaskEnd` what a task of a stage did
(org.apache.spark.util.JsonProtocol of Spark 4.3.0). All other events are skipped. A malformed line
is a ValueError, because sums that lack a task would be wrong without anybody noticing.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from atoll.engines.operators import reading
from atoll.schema.results import EngineWork

PEAK = "Peak Execution Memory of all tasks at one time"
_GROUP = "spark.jobGroup.id"
_MOST = 1 << 63  # more than a Java long can be


class _Task(NamedTuple):
    launched_ms: int
    finished_ms: int
    run_ms: int
    gc_ms: int
    shuffle_bytes: int
    spilled_bytes: int
    read_bytes: int
    peak_bytes: int


@dataclass(slots=True)
class EventLog:
    """An event log that is read while it grows: `add` lines, then `take` each query's sums."""

    _group_of_stage: dict[int, str]
    _tasks: dict[str, list[_Task]]

    def __init__(self) -> None:
        self._group_of_stage = {}
        self._tasks = defaultdict(list)

    def add(self, lines: Iterable[bytes]) -> None:
        """Adds whole lines. Raises ValueError with the number of the first that cannot be read."""
        for number, line in enumerate(lines, start=1):
            try:
                with reading():
                    self._add(json.loads(line))
            except ValueError as fault:
                raise ValueError(f"line {number}: {fault}") from None

    def take(self) -> dict[str, EngineWork]:
        """Job group -> sums over the tasks that ended since the last call."""
        found = {group: _sum(tasks) for group, tasks in self._tasks.items()}
        self._tasks.clear()
        return found

    def _add(self, event: dict[str, Any]) -> None:
        match event["Event"]:
            case "SparkListenerJobStart":
                group = (event.get("Properties") or {}).get(_GROUP)
                if group is not None:
                    stages = event["Stage IDs"]
                    self._group_of_stage.update((number(stage), str(group)) for stage in stages)
            case "SparkListenerTaskEnd":
                group = self._group_of_stage.get(number(event["Stage ID"]))
                # A lost task has no metrics.
                if group is not None and event.get("Task Metrics") is not None:
                    self._tasks[group].append(_task(event["Task Info"], event["Task Metrics"]))


def _task(info: dict[str, Any], metrics: dict[str, Any]) -> _Task:
    return _Task(
        launched_ms=number(info["Launch Time"]),
        finished_ms=number(info["Finish Time"]),
        run_ms=number(metrics["Executor Run Time"]),
        gc_ms=number(metrics["JVM GC Time"]),
        shuffle_bytes=number(metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]),
        spilled_bytes=number(metrics["Disk Bytes Spilled"]),
        read_bytes=number(metrics["Input Metrics"]["Bytes Read"]),
        peak_bytes=number(metrics["Peak Execution Memory"]),
    )


def number(value: Any) -> int:
    """Raises ValueError for anything that Spark does not write as a count."""
    if type(value) is not int or not 0 <= value < _MOST:
        raise ValueError(f"{value!r} is not a count")
    return value


def _sum(tasks: Sequence[_Task]) -> EngineWork:
    return EngineWork(
        tasks=len(tasks),
        run_s=sum(task.run_ms for task in tasks) / 1000,
        gc_s=sum(task.gc_ms for task in tasks) / 1000,
        shuffle_bytes=sum(task.shuffle_bytes for task in tasks),
        spilled_bytes=sum(task.spilled_bytes for task in tasks),
        read_bytes=sum(task.read_bytes for task in tasks),
        peak_bytes=_most_at_once(tasks),
        peak_source=PEAK,
    )


def _most_at_once(tasks: Sequence[_Task]) -> int:
    """In the same millisecond, tasks begin before others end, so that the peak is not too small."""
    changes = sorted(
        change
        for task in tasks
        for change in (
            (task.launched_ms, 0, task.peak_bytes),
            (max(task.launched_ms, task.finished_ms), 1, -task.peak_bytes),
        )
    )
    held = most = 0
    for _, _, change in changes:
        held += change
        most = max(most, held)
    return most
