"""When the activity of operators has drifted, with the clock as data."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.engines.placeable import OperatorThread
from atoll.errors import AtollError, EngineFailed, ServerGone, UsageError
from atoll.operators.drift import Sample, drifted, renewed, thread_changes
from atoll.operators.watch import watch
from atoll.schema.operator_graph import OperatorGraph
from atoll.schema.placement import Placement
from tests.parts.operators import graph as drawn
from tests.parts.operators import operator
from tests.parts.placed import PID, Program, ProgramHost, graph, placement

PLANNED = 0.4
PLAN = graph({"a": PLANNED})


def samples(values: Sequence[float], each_s: float = 10.0, start_s: float = 0.0) -> list[Sample]:
    return [
        Sample(start_s + k * each_s, start_s + (k + 1) * each_s, graph({"a": value}))
        for k, value in enumerate(values)
    ]


def is_off(value: float) -> bool:
    return abs(value - PLANNED) > 0.2 * PLANNED


@given(st.lists(st.floats(0, 2), max_size=30), st.floats(0, 1e9))
def test_what_has_not_been_off_for_a_minute_has_not_drifted(
    values: list[float], start_s: float
) -> None:
    found = drifted(PLAN, samples(values, start_s=float(int(start_s))))
    last = values[-6:]
    all_off = len(last) == 6 and (
        all(value > PLANNED and is_off(value) for value in last)
        or all(value < PLANNED and is_off(value) for value in last)
    )
    assert bool(found) is all_off


@given(st.lists(st.floats(0.81, 1.19), min_size=1, max_size=60))
def test_within_20_percent_nothing_drifts_however_long(factors: list[float]) -> None:
    assert not drifted(PLAN, samples([PLANNED * factor for factor in factors]))


@given(st.floats(1.25, 4), st.integers(1, 30), st.integers(1, 30))
def test_a_drift_is_found_after_a_minute_of_windows_of_any_length(
    factor: float, each_s: int, calm: int
) -> None:
    windows = -(-60 // each_s)
    values = [PLANNED] * calm + [PLANNED * factor] * windows
    assert not drifted(PLAN, samples(values[:-1], each_s))
    (found,) = drifted(PLAN, samples(values, each_s))
    assert (found.operator, found.figure, found.planned) == ("a", "duty", PLANNED)
    assert found.now == pytest.approx(PLANNED * factor)
    assert found.for_s == windows * each_s


def test_little_of_a_core_is_noise() -> None:
    tiny = graph({"a": 0.002})
    assert not drifted(tiny, samples([0.004] * 10))
    assert drifted(tiny, samples([0.02] * 10))


def test_an_operator_that_is_not_seen_has_not_drifted() -> None:
    seen = [Sample(k * 10, k * 10 + 10, graph({"b": 1.0})) for k in range(9)]
    assert not drifted(PLAN, seen)
    assert not drifted(PLAN, [])


def test_the_new_graph_has_means() -> None:
    new = renewed(PLAN, samples([0.6, 0.8]))
    assert new.operators[0].activity is not None
    assert new.operators[0].activity.duty.value == pytest.approx(0.7)
    assert new.seconds == 20


def test_threads_that_end_come_again_or_move_are_reported() -> None:
    a, b, c = (OperatorThread((name,), 1, k) for k, name in enumerate("abc", start=1))
    b_again = OperatorThread(("b",), 1, 9)
    seats = dict.fromkeys((a, b_again), frozenset({2}))
    said = thread_changes([a, b, c], [a, b_again], {a: frozenset({3}), b_again: frozenset()}, seats)
    assert [line.split(":")[0] for line in said] == ["c", "b", "a"]
    assert thread_changes([a], [a], {a: frozenset({2})}, seats) == []


class Drifting(Program):
    """Its operator a uses more after 30 s, and its thread b is moved."""

    def profile(self, seconds: float) -> OperatorGraph:
        self.host.sleep(seconds)
        if self.host.now_s > 30:
            self.host.masks[PID + 2] = frozenset({0, 1})
        return graph({"a": 0.4 if self.host.now_s <= 30 else 0.6, "b": 0.1})


def test_watch_offers_a_new_plan_and_changes_nothing() -> None:
    host = ProgramHost(["a", "b"])
    program, old = Drifting(host), placement({"a": 0, "b": 0})
    program.place(old)
    planned, said = graph({"a": 0.4, "b": 0.1}), list[str]()
    asked: list[OperatorGraph] = []

    def plan(found: OperatorGraph) -> Placement:
        asked.append(found)
        return placement({"a": 0, "b": 1})

    offer = watch(host, program, old, planned, plan, said.append)
    assert offer is not None
    assert host.now_s == 90
    assert offer.placement == placement({"a": 0, "b": 1})
    assert [one.operator for one in offer.drifts] == ["a"]
    assert asked[0].operators[0].activity == offer.graph.operators[0].activity
    assert program.placed == [old]
    assert len(said) == 1  # once, not with each sample


def test_watch_reports_an_operator_that_the_placement_lacks_and_looks_at_the_rest() -> None:
    host = ProgramHost(["a", "b"])
    program, old = Drifting(host), placement({"a": 0, "b": 0})
    program.place(old)
    host.begin_thread(PID + 3, "psql")
    said = list[str]()
    planned = graph({"a": 0.4, "b": 0.1})
    watch(host, program, old, planned, lambda found: old, said.append, for_s=50)
    assert [line.split(":")[0] for line in said] == ["psql", "b"]


@pytest.mark.parametrize(
    ("planned_gbs", "seen_gbs", "lines"), [(1, None, 1), (1, 1, 0), (None, 1, 0)]
)
def test_watch_says_if_no_sample_has_the_planned_bandwidth(
    planned_gbs: float | None, seen_gbs: float | None, lines: int
) -> None:
    def made(gbs: float | None) -> OperatorGraph:
        return drawn([operator("a", 0.1, **({"memory_gbs": gbs} if gbs else {}))])

    class Seen(Program):
        def profile(self, seconds: float) -> OperatorGraph:
            self.host.sleep(seconds)
            return made(seen_gbs)

    host, said = ProgramHost(["a"]), list[str]()
    program, old = Seen(host), placement({"a": 0})
    program.place(old)
    watch(host, program, old, made(planned_gbs), lambda found: old, said.append, for_s=50)
    assert [line.split(":")[0] for line in said] == ["GB/s"] * lines


@pytest.mark.parametrize("kind", [UsageError, EngineFailed])
def test_watch_goes_on_when_a_program_has_paused(kind: type[AtollError]) -> None:
    """The minute of drift begins again after the pause, from 60 s to 80 s."""
    host, said = ProgramHost(["a", "b"]), list[str]()

    class Pausing(Drifting):
        def profile(self, seconds: float) -> OperatorGraph:
            if 60 <= host.now_s < 80:
                raise kind("it restarts")
            return super().profile(seconds)

    program, old = Pausing(host), placement({"a": 0, "b": 0})
    program.place(old)
    planned = graph({"a": 0.4, "b": 0.1})
    assert watch(host, program, old, planned, lambda found: old, said.append) is not None
    assert host.now_s == 140
    assert said.count("it restarts") == 1


def test_watch_ends_with_its_server() -> None:
    host = ProgramHost(["a"])

    class Gone(Program):
        def profile(self, seconds: float) -> OperatorGraph:
            raise ServerGone("no answer")

    with pytest.raises(ServerGone):
        watch(host, Gone(host), placement({"a": 0}), PLAN, lambda found: placement({}), print)


def test_watch_says_that_nothing_drifted_and_why_there_is_no_plan() -> None:
    host = ProgramHost(["a", "b"])
    program, old = Drifting(host), placement({"a": 0, "b": 0})
    program.place(old)

    def refuse(_: OperatorGraph) -> Placement:
        raise UsageError("too few cores")

    planned = graph({"a": 0.4, "b": 0.1})
    assert watch(host, program, old, planned, refuse, lambda line: None, for_s=50) is None
    offer = watch(host, program, old, planned, refuse, lambda line: None)
    assert offer is not None
    assert offer.placement is None
    assert offer.why_none == "too few cores"
