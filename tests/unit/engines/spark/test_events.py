"""Spark's event log: what a query took, and lines that are not what they should be."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.engines.spark.events import PEAK, EventLog
from atoll.schema.results import EngineWork


def line(event: str, **fields: Any) -> bytes:
    return json.dumps({"Event": event, **fields}).encode()


def job(group: str | None, *stages: int) -> bytes:
    properties = {"spark.jobGroup.id": group} if group else {"spark.app.name": "atoll"}
    return line("SparkListenerJobStart", **{"Stage IDs": stages, "Properties": properties})


def task(
    stage: int, begin: int = 0, end: int = 1000, metrics: dict[str, Any] | None = None
) -> bytes:
    found: dict[str, Any] = {
        "Executor Run Time": end - begin,
        "JVM GC Time": 10,
        "Peak Execution Memory": 100,
        "Disk Bytes Spilled": 3,
        "Input Metrics": {"Bytes Read": 5, "Records Read": 1},
        "Shuffle Write Metrics": {"Shuffle Bytes Written": 7},
        "a field of another version": None,
    }
    info = {"Launch Time": begin, "Finish Time": end}
    return line(
        "SparkListenerTaskEnd",
        **{"Stage ID": stage, "Task Info": info, "Task Metrics": found | (metrics or {})},
    )


def read(*lines: bytes) -> dict[str, EngineWork]:
    log = EventLog()
    log.add(lines)
    return log.take()


def test_tasks_are_summed_by_query() -> None:
    found = read(
        line("SparkListenerLogStart", **{"Spark Version": "4.3.0"}),
        job("a", 1, 2),
        job(None, 3),
        job("b", 4),
        *(task(1), task(2), task(3), task(4)),
    )
    assert set(found) == {"a", "b"}
    assert found["a"] == EngineWork(
        tasks=2,
        run_s=2,
        gc_s=0.02,
        shuffle_bytes=14,
        spilled_bytes=6,
        read_bytes=10,
        peak_bytes=200,
        peak_source=PEAK,
    )
    assert (found["b"].tasks, found["b"].read_bytes) == (1, 5)


def test_a_stage_of_several_jobs_is_the_last_ones() -> None:
    """Jobs of one query name each other's stages; a stage that was run already is skipped."""
    assert set(read(job("a", 1), task(1), job("b", 1, 2), task(2))) == {"a", "b"}


def test_only_tasks_that_overlap_hold_memory_at_once() -> None:
    def peak(*spans: tuple[int, int]) -> int:
        tasks = (task(1, begin, end) for begin, end in spans)
        return read(job("a", 1), *tasks)["a"].peak_bytes or 0

    assert peak((0, 10), (10, 20)) == 200, "the same millisecond may overlap"
    assert peak((0, 10), (11, 20)) == 100
    assert peak((0, 30), (1, 2), (3, 4), (5, 40)) == 200


def test_a_log_is_read_as_it_grows() -> None:
    log = EventLog()
    log.add([job("a", 1), task(1)])
    assert set(log.take()) == {"a"}
    assert log.take() == {}
    log.add([task(1)])  # its job was in the part before
    assert log.take()["a"].tasks == 1


def test_a_lost_task_has_no_metrics() -> None:
    lost = line("SparkListenerTaskEnd", **{"Stage ID": 1, "Task Metrics": None})
    assert read(job("a", 1), lost) == {}


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"{",
        b"[]",
        b"7",
        b'"SparkListenerTaskEnd"',
        b"{}",
        b"\xff",
        b"[" * 100_000,
        line("SparkListenerTaskEnd"),
        line("SparkListenerTaskEnd", **{"Stage ID": 1, "Task Metrics": {}}),
        line("SparkListenerTaskEnd", **{"Stage ID": "1"}),
        line("SparkListenerJobStart", **{"Stage IDs": 1, "Properties": {"spark.jobGroup.id": "a"}}),
        line("SparkListenerJobStart", **{"Stage IDs": [], "Properties": 7}),
        task(1, metrics={"JVM GC Time": -1}),
        task(1, metrics={"JVM GC Time": True}),
        task(1, metrics={"JVM GC Time": 1.5}),
        task(1, metrics={"Peak Execution Memory": 1 << 63}),
        task(1, metrics={"Shuffle Write Metrics": None}),
    ],
)
def test_a_line_that_cannot_be_read_is_named(broken: bytes) -> None:
    with pytest.raises(ValueError, match=r"^line 2: ") as caught:
        read(job("a", 1), broken)
    assert len(str(caught.value)) < 300


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["Event", "Stage ID", "Stage IDs", "Properties", "Task Info", "Task Metrics", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
events = st.builds(
    lambda name, fields: json.dumps(fields | {"Event": name}).encode(),
    st.sampled_from(["SparkListenerJobStart", "SparkListenerTaskEnd", "other"]),
    st.dictionaries(
        st.sampled_from(["Stage ID", "Stage IDs", "Properties", "Task Info", "Task Metrics"]),
        json_values,
    ),
)


@given(st.lists(st.one_of(events, st.binary(max_size=40), st.just(task(1)), st.just(job("a", 1)))))
def test_anything_is_read_or_refused(lines: list[bytes]) -> None:
    try:
        found = read(*lines)
    except ValueError:
        return
    for work in found.values():
        assert work.tasks and work.run_s is not None and work.run_s >= 0


@given(
    st.lists(
        st.tuples(st.integers(0, 100), st.integers(0, 50), st.integers(0, 1 << 40)), min_size=1
    )
)
def test_a_peak_is_between_the_largest_task_and_all_of_them(
    spans: list[tuple[int, int, int]],
) -> None:
    tasks = [
        task(1, begin, begin + length, {"Peak Execution Memory": size})
        for begin, length, size in spans
    ]
    work = read(job("a", 1), *tasks)["a"]
    sizes = [size for *_, size in spans]
    assert work.peak_bytes is not None and max(sizes) <= work.peak_bytes <= sum(sizes)
    assert work.tasks == len(spans)
