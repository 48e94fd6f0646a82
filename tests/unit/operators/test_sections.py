"""The runtime's code sections as operators."""

from __future__ import annotations

import pytest

from atoll.errors import UsageError
from atoll.operators.sections import graph_of
from atoll.schema.base import parse
from atoll.schema.operator_graph import Source
from atoll.schema.runtime_profile import RuntimeProfile, Section
from tests.parts.faults import fails
from tests.parts.paths import DATA

SAMPLE = parse(RuntimeProfile, (DATA / "runtime-profile.json").read_text(), where="sample")


def profile(
    *by_worker: list[tuple[str, float, float, int | None]], **more: object
) -> RuntimeProfile:
    """By worker: sections with their seconds, the sampled ones, and lines from memory then."""
    first = SAMPLE.workers[0]
    section = first.sections[0]
    workers = [
        first.model_copy(
            update={
                "sections": tuple(
                    Section.model_validate(
                        {
                            **section.model_dump(),
                            "name": name,
                            "seconds": seconds,
                            "fills_s": sampled_s,
                            "fills": {
                                **section.fills.model_dump(),
                                "memory_local": lines,
                                "memory_remote": lines,
                            },
                        }
                    )
                    for name, seconds, sampled_s, lines in sections
                )
            }
        )
        for sections in by_worker
    ]
    changed = {"workers": tuple(workers), "seconds": 10.0, **more}
    return SAMPLE.model_copy(update=changed)


def test_sections_of_all_workers_are_one_operator() -> None:
    graph = graph_of(
        profile(
            [("probe", 4.0, 1.0, 1_000_000)],
            [("build", 1.0, 0.0, 0), ("probe", 8.0, 2.0, 2_000_000)],
        ),
        where="p.json",
    )
    build, probe = graph.operators
    assert (build.id, build.parallel) == ("build", False)
    assert (probe.id, probe.parallel) == ("probe", True)
    assert build.activity is not None
    assert probe.activity is not None
    assert probe.activity.duty.value == pytest.approx(1.2)
    assert build.activity.memory_gbs is None, "nothing was sampled there"
    # 6 million lines in 3 s; the section ran for 12 of 10 s.
    assert probe.activity.memory_gbs is not None
    assert probe.activity.memory_gbs.value == pytest.approx(6e6 * 64 / 1e9 / 3 * 1.2)
    assert probe.activity.memory_gbs.source is Source.MEASURED
    assert "25 %" in probe.activity.memory_gbs.how
    assert (graph.rate, graph.edges) == (None, ())
    assert any("edges" in note for note in graph.notes)


def test_simulated_fills_are_not_measured() -> None:
    (one,) = graph_of(profile([("a", 1.0, 1.0, 5)], fills_source="simulated"), where="p").operators
    assert one.activity is not None
    assert one.activity.memory_gbs is not None
    assert one.activity.memory_gbs.source is Source.ESTIMATED
    assert "simulated" in one.activity.memory_gbs.how


def test_what_a_cpu_does_not_count_is_not_known() -> None:
    (one,) = graph_of(profile([("a", 1.0, 1.0, None)]), where="p").operators
    assert one.activity is not None
    assert one.activity.memory_gbs is None


def test_the_sample_of_the_runtime_is_a_graph() -> None:
    assert [one.id for one in graph_of(SAMPLE, where="p").operators] == [
        *('build "side"', "probe phase")
    ]


def test_without_sections_there_is_no_operator() -> None:
    with fails(UsageError, where="p.json"):
        graph_of(profile([]), where="p.json")


@pytest.mark.parametrize(("seconds", "sampled_s"), [(1e-300, 0.0), (10.0, 1e-300)])
def test_times_that_no_clock_measures_are_refused(seconds: float, sampled_s: float) -> None:
    with fails(UsageError, where="p.json"):
        graph_of(profile([("a", 1.0, sampled_s, 5)], seconds=seconds), where="p.json")
