"""What each axis does: references, series, points; and what is no surprise to its user."""

from __future__ import annotations

import pytest

from atoll.bench.analysis import summarise
from atoll.bench.outcome import require_speed
from atoll.errors import CheckFailed
from atoll.report.bench import verdicts
from atoll.schema.results import CellName
from atoll.schema.summary import AxisSeries, BenchSummary
from tests.parts.bench import results
from tests.parts.bench_grid import CORES, MEASURED, grid, measured


def series(summary: BenchSummary, axis: str) -> tuple[AxisSeries, ...]:
    return next(one.series for one in summary.axes if one.name == axis)


def points(one: AxisSeries) -> list[tuple[str, str, float]]:
    return [
        (point.value, point.label, round(point.speedup.value, 2) if point.speedup else 1.0)
        for point in one.points
    ]


def test_cores_are_a_curve_over_the_fewest() -> None:
    (one,) = series(summarise(MEASURED), "cores")
    assert one.reference == f"{CORES}1"
    assert points(one) == [
        ("1", f"{CORES}1", 1.0),
        ("2", f"{CORES}2", 2.0),
        ("4", "spark/wim", 3.6),
    ]
    assert [point.x for point in one.points] == [1, 2, 4]
    assert one.points[1].speedup is not None and one.points[1].speedup.verdict == "faster"


def test_other_axes_are_over_their_default() -> None:
    summary = summarise(MEASURED)
    (memory,) = series(summary, "memory")
    assert points(memory) == [
        ("default", "spark/wim", 1.0),
        ("bind", "spark/wim/memory=bind", 2.0),
        ("interleave", "spark/wim/memory=interleave", 0.8),
    ]
    (instances,) = series(summary, "n")
    assert points(instances) == [
        ("wim", "spark/wim", 1.0),
        ("2", "spark/n=2", 1.25),
        ("4", "spark/n=4", 2.0),
    ]
    (malloc,) = series(summary, "malloc")
    assert [point.value for point in malloc.points] == ["system", "jemalloc"]
    assert malloc.reference == "spark/wim", "which coincides with malloc=system"


def test_a_product_has_a_series_for_each_value_of_the_others() -> None:
    crossed = grid("policy=wim,wic", "cores=2,4", product=True)
    seconds = {"spark/wic/cores=2": 1.0, "spark/wic/cores=4": 0.25, f"{CORES}2": 2.0}
    found = series(summarise(measured(crossed, seconds)), "cores")
    assert [(one.others, points(one)) for one in found] == [
        ({}, [("2", f"{CORES}2", 1.0), ("4", "spark/wim", 2.0)]),
        ({"policy": "wic"}, [("2", "spark/wic/cores=2", 1.0), ("4", "spark/wic/cores=4", 4.0)]),
    ]


def test_the_reference_of_policies_is_wim_wherever_it_stands() -> None:
    given = grid("policy=wic,wim", "malloc=system,jemalloc", product=True)
    found = series(summarise(measured(given, {})), "policy")
    assert [one.reference for one in found] == ["spark/wim", "spark/wim/malloc=jemalloc"]


def test_instances_without_a_policy_are_wicp() -> None:
    found = measured(grid("policy=wicp,spmwin", "n=2"), {})
    entrants = tuple(  # as an earlier version named it
        one.model_copy(update={"cells": (CellName(label=one.label, values={"n": "2"}),)})
        if one.label == "spark/wicp/n=2"
        else one
        for one in found.header.entrants
    )
    head = found.header.model_copy(update={"entrants": entrants})
    (one,) = series(summarise(results(list(found.lines), head)), "policy")
    assert [point.value for point in one.points] == ["wicp", "spmwin"]


def test_streams_are_compared_by_throughput() -> None:
    """Queries take 4 times as long each, and 8 run at once: twice the throughput."""
    found = summarise(measured(grid("streams=1,8"), {"spark/wim/streams=8": 4.0}))
    (one,) = series(found, "streams")
    assert points(one) == [("1", "spark/wim", 1.0), ("8", "spark/wim/streams=8", 2.0)]
    rates = [point.queries_per_s for point in one.points]
    assert rates[0] and rates[1] == pytest.approx(2 * rates[0])
    assert one.points[1].p50_s and one.points[0].p50_s
    assert one.points[1].p50_s > 3 * one.points[0].p50_s
    other = found.entrants[1]
    by_query = {speedup.query: speedup for speedup in other.speedups}
    assert by_query["throughput"].value == pytest.approx(2.0) and "pass" not in by_query
    assert by_query["geomean"].value == pytest.approx(0.25), "of a query's time"
    require_speed(found, 1.05)
    assert verdicts.verdicts(found)[0].startswith(
        "spark/wim/streams=8 is faster than spark/wim: 2.00× as many queries per second ("
    )
    slow = summarise(measured(grid("streams=1,8"), {"spark/wim/streams=8": 16.0}))
    with pytest.raises(CheckFailed, match=r"takes, by queries per second, 2\.00 times as long"):
        require_speed(slow, 1.05)


def test_equal_streams_are_compared_by_their_passes() -> None:
    crossed = grid("streams=2,8", "policy=wim,wic", product=True)
    found = summarise(measured(crossed, {"spark/wic/streams=8": 0.5}))
    wic = next(one for one in found.entrants if one.label == "spark/wic/streams=8")
    assert wic.baseline == "spark/wim/streams=8"
    assert {one.query for one in wic.speedups} == {"geomean", "q1", "q6", "pass"}


def test_knobs_and_schedulers_have_their_present_value_as_default() -> None:
    (knob,) = series(summarise(measured(grid("knob:swappiness=10,20"), {})), "knob:swappiness")
    assert [point.value for point in knob.points] == ["60", "10", "20"]
    assert knob.reference == "spark/wim"


def test_without_axes_there_are_none() -> None:
    assert summarise(results()).axes == ()


@pytest.mark.parametrize("words", ["differ in more than placement", "are the same deployment"])
def test_what_an_axis_changes_is_no_warning(words: str) -> None:
    given = grid("cores=1,4", "malloc=system,jemalloc", "streams=2,4", "knob:swappiness=10,60")
    summary = summarise(measured(given, {}))
    assert not [one.message for one in summary.warnings if words in one.message]


def test_a_difference_that_no_axis_explains_is_a_warning() -> None:
    found = measured(grid("malloc=system,jemalloc"), {})
    base, other = found.header.entrants
    assert other.plan is not None
    smaller = other.plan.model_copy(update={"total_heap_bytes": 1 << 20})
    entrants = (base, other.model_copy(update={"plan": smaller}))
    summary = summarise(
        results(list(found.lines), found.header.model_copy(update={"entrants": entrants}))
    )
    assert "not-comparable" in {one.code for one in summary.warnings}
