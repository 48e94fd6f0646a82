"""The run: it keeps its time, reports faults in one line, and ends its processes."""

from __future__ import annotations

import json
import math
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.errors import ProbeMissing
from atoll.host.local import LocalHost
from atoll.probing.budget import GRACE_S, TOTAL_S, budget
from atoll.probing.errors import ProbeDied, ProbeFault, ProbeHung, ProbeRefused
from atoll.probing.probe import Probe
from atoll.probing.requests import Chase, Churn, Move, Sampling
from atoll.probing.settle import figure, median_ranks
from atoll.schema.profile import Kind, Mode
from tests.parts.faults import fails
from tests.parts.machines import plain
from tests.parts.probing import Fields, World

GIB = 1 << 30
CHASE = Chase(cpu=0, node=0, bytes=4096, huge=True, budget_s=0.05)
SAMPLING = Sampling(settle=0.02, samples=9)


# -- figures -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "ranks"),
    # Conover, table A3, p = 0.5: the ranks of the 95 % interval of the median.
    [(5, None), (6, (0, 5)), (8, (0, 7)), (9, (1, 7)), (12, (2, 9)), (20, (5, 14))],
)
def test_ranks_of_the_interval(count: int, ranks: tuple[int, int] | None) -> None:
    assert median_ranks(count) == ranks


@given(st.integers(6, 3000))
def test_the_ranks_cover_95_percent_and_no_more_than_they_must(count: int) -> None:
    found = median_ranks(count)
    assert found is not None
    low, high = found
    assert 0 <= low < high == count - 1 - low
    if count < 400:
        outside = 2 * sum(math.comb(count, k) for k in range(low + 1)) / 2**count
        assert outside <= 0.05
        next_in = 2 * sum(math.comb(count, k) for k in range(low + 3)) / 2**count
        assert next_in > 0.05


@given(st.lists(st.floats(0.1, 1e9), min_size=1, max_size=60))
def test_a_figure_holds_its_median(samples: list[float]) -> None:
    found = figure(samples, settle=0.02)
    assert found.low <= found.value <= found.high
    assert found.value == pytest.approx(statistics.median(samples))
    assert found.samples == len(samples)
    assert not found.settled or (found.samples >= 6 and found.spread <= 0.02)


def test_what_somebody_disturbed_is_not_settled() -> None:
    assert figure([1.0] * 9, settle=0.02).settled
    assert not figure([1.0] * 9, settle=0.02, disturbed=True).settled
    assert not figure([1.0] * 5, settle=0.02).settled  # there is no interval yet


# -- time --------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("greed", [0.2, 1.0, 1.3])
def test_the_shares_hold_the_total_whatever_the_kinds_take(mode: Mode, greed: float) -> None:
    plan = budget(mode, list(Kind), plain(2), (0, 1))
    elapsed = 0.5
    for kind in plan.kinds:
        elapsed += min(
            greed * plan.share_s(kind, elapsed_s=elapsed),
            plan.share_s(kind, elapsed_s=elapsed) + plan.grace_s,
        )
    assert elapsed <= TOTAL_S[mode] + GRACE_S[mode]


@pytest.mark.parametrize("mode", Mode)
def test_a_machine_on_which_everything_hangs_ends_in_time(mode: Mode) -> None:
    world = World(plain(2), script=lambda request: "hang" if request["do"] == "chase" else {})
    with world.run(mode=mode) as run:
        for kind in run.budget.kinds:
            with run.measuring(kind):
                while not run.out_of_time("a chase"):
                    with pytest.raises(ProbeHung):
                        run.ask(CHASE)
        assert run.elapsed_s() <= {Mode.QUICK: 27, Mode.FULL: 290}[mode]
    assert all(probe.closed for probe in world.probes)


def test_a_request_gets_no_more_time_than_is_left() -> None:
    world = World(plain(2))
    with world.run([Kind.CACHE]) as run, run.measuring(Kind.CACHE):
        world.host.now_s += run.seconds_left() - 0.01
        run.ask(CHASE)
        asked = world.asked("chase")[0]
        assert asked["budget_ns"] == pytest.approx(10e6, rel=0.01)
        assert (asked["settle"], asked["samples"]) == (0.02, 400)
        world.host.now_s += 1
        assert run.attempt(CHASE, "the cache curve past 1 GiB") is None
    assert run.left_out[0].code == "no-time"
    assert run.left_out[0].message == "cache: no time left for the cache curve past 1 GiB"


def test_an_emulated_cpu_is_sampled_a_few_times_only() -> None:
    tcg = {"hypervisor": "TCGTCGTCGTCG"}
    world = World(plain(2), script=lambda request: tcg if request["do"] == "hello" else {})
    with world.run([Kind.CACHE]) as run, run.measuring(Kind.CACHE):
        run.ask(CHASE)
    assert run.emulated
    assert world.asked("chase")[0]["samples"] == 8


def test_progress_is_told_but_not_too_often() -> None:
    told: list[tuple[Kind, float, str]] = []
    world = World(plain(2))
    with (
        world.run([Kind.CACHE], progress=lambda *what: told.append(what)) as run,
        run.measuring(Kind.CACHE),
    ):
        for step in range(1000):
            world.host.now_s += 0.001
            run.report(step / 1000, "x")
    assert told[0] == (Kind.CACHE, 0.0, "")
    assert 9 <= len(told) <= 12


# -- faults ------------------------------------------------------------------------------------


def test_a_refusal_is_one_line_and_the_probe_stays() -> None:
    no = {"ok": False, "code": "memory", "error": "4096 bytes cannot\nbe had on node 0"}
    world = World(plain(2), script=lambda request: no if request["do"] == "chase" else {})
    with world.run([Kind.CACHE]) as run, run.measuring(Kind.CACHE):
        with fails(ProbeRefused, request="chase", error="4096 bytes cannot be had on node 0"):
            run.ask(CHASE)
        assert run.attempt(CHASE, "4 kB") is None
    assert [notice.code for notice in run.left_out] == ["memory"]
    assert len(world.probes) == 1


@pytest.mark.parametrize(
    "words",
    [
        "",
        "nonsense",
        "[]",
        '{"ok": 1}',
        '{"ok": true, "load_ns": []}',
        '{"ok": true}',
        "[" * 100_000,
        '{"ok": true, "load_ns": [NaN]}',
        '{"ok": true, "load_ns": [1, -1]}',
        '{"ok": true, "load_ns": [1e300]}',
        '{"ok": false}',
    ],
)
def test_what_is_no_answer_ends_the_probe(words: str) -> None:
    world = World(plain(2), script=lambda request: words if request["do"] == "chase" else {})
    with world.run([Kind.CACHE]) as run, run.measuring(Kind.CACHE):
        with pytest.raises(ProbeDied) as caught:
            run.ask(CHASE)
        assert "\n" not in str(caught.value)
        assert world.probes[0].closed
        world.script = lambda request: {}
        assert run.ask(CHASE).load_ns  # by a new one


@settings(max_examples=50)
@given(
    st.text() | st.recursive(st.none() | st.booleans() | st.integers(), st.lists).map(json.dumps)
)
def test_no_answer_whatever_brings_atoll_down(words: str) -> None:
    world = World(plain(1), script=lambda request: words + " " if request["do"] == "chase" else {})
    with world.run([Kind.CACHE]) as run, run.measuring(Kind.CACHE), pytest.raises(ProbeFault):
        run.ask(CHASE)


def test_no_probe_another_version_and_one_that_dies_at_once_are_told() -> None:
    with fails(ProbeMissing, path="/not/there"):
        Probe(LocalHost(), "/not/there")
    for script, named in (
        ({"version": 2}, {"version": "version 2"}),
        ("die", {"why": "the probe ended (SIGKILL): a word of the probe"}),
        ("hang", {"why": "no answer within 10.0 s; killed the probe"}),
    ):
        world = World(plain(1), script=lambda request, script=script: script)  # type: ignore[misc]
        with fails(ProbeMissing, path="/bin/atoll-probe", **named):
            world.run()
        assert world.probes[0].closed


def test_a_probe_that_does_not_start_again_costs_its_kind_and_no_more() -> None:
    def script(request: Fields) -> Fields | str:
        dead = len(world.probes) > 1 or request["do"] == "chase"
        return "die" if dead else {}

    world = World(plain(2), script=script)
    with world.run([Kind.NODES, Kind.CACHE]) as run:
        with run.measuring(Kind.NODES):
            with pytest.raises(ProbeDied):
                run.ask(CHASE)
            run.ask(CHASE)
        with run.measuring(Kind.CACHE):
            run.attempt(CHASE, "4 kB")
    assert [notice.code for notice in run.left_out] == ["no-probe", "no-probe"]
    assert [watch.kind for watch in run.watches] == [Kind.NODES, Kind.CACHE]


# -- several probes ----------------------------------------------------------------------------


def test_several_probes_with_an_environment_of_their_own() -> None:
    world = World(plain(2))
    move = Move(cpus=(0,), node=None, bytes=4096, op="copy")
    with (
        world.run([Kind.STREAM]) as run,
        run.measuring(Kind.STREAM),
        run.another_probe({"LD_PRELOAD": "/lib/x.so"}) as one,
        run.another_probe() as two,
    ):
        answers = run.together([(one, move), (two, move)])
        assert [answer.gbs for answer in answers] == [answers[0].gbs] * 2
    assert [probe.env.get("LD_PRELOAD") for probe in world.probes] == [None, "/lib/x.so", None]
    assert all(probe.closed for probe in world.probes)


def test_one_of_several_that_hangs_takes_the_others_along() -> None:
    world = World(plain(2), script=lambda request: "hang" if request["do"] == "churn" else {})
    with (
        world.run([Kind.CHURN]) as run,
        run.measuring(Kind.CHURN),
        run.another_probe() as one,
        run.another_probe() as two,
    ):
        with pytest.raises(ProbeHung):
            run.together([(one, Churn(cpus=(0,), operations=9)), (two, CHASE)])
        assert not one.usable and not two.usable
