"""Core to core: every pair with both homes, one at a time, disturbed pairs marked, time kept."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.probing.budget import PAIR_MOST_S, budget, rounds
from atoll.probing.pairs import measure_bandwidth, measure_latency
from atoll.schema.profile import Kind, Mode
from tests.parts.machines import milan, plain
from tests.parts.probing import Fields, World


def epyc_latency(a: int, b: int, home: int) -> float:
    """Two sockets of 8 cores in chiplets of 4; across chiplets it is the home that matters."""
    if a // 4 == b // 4:
        return 23.0
    if a // 8 != b // 8:
        return 197.0
    return 107.0 if home < 8 else 200.0


def test_latency_of_a_dual_socket_with_the_line_homed_on_both_sides() -> None:
    world = World(milan(2, 2, 4), latency=epyc_latency)
    with world.run([Kind.LATENCY]) as run, run.measuring(Kind.LATENCY):
        cas, store = measure_latency(run)
    assert cas is not None and store is not None
    assert cas.pus == tuple(range(16))
    for matrix in (cas, store):
        values = matrix.array()
        for a, b in itertools.permutations(range(16), 2):
            assert values[a, b] == pytest.approx(epyc_latency(a, b, home=a))
        assert all(matrix.values[i][i] is None for i in range(16))
        assert matrix.unsettled == ()
        assert matrix.samples == 12
        assert matrix.pair_ms <= 3.0
    homes = {
        (request["op"], request["cpus"][request["home"]], *sorted(request["cpus"]))
        for request in world.asked("ping")
    }
    assert len(homes) == len(world.asked("ping")) == 2 * 16 * 15
    assert not run.left_out


def test_no_pair_is_sampled_for_longer_than_3_ms() -> None:
    world = World(plain(2))
    with world.run() as run:
        with run.measuring(Kind.LATENCY):
            measure_latency(run)
        with run.measuring(Kind.BANDWIDTH):
            measure_bandwidth(run)
    asked = world.asked("ping") + world.asked("pipe")
    assert asked and all(request["budget_ns"] <= 3_000_000 for request in asked)


def test_one_cpu_has_no_pairs_and_says_so() -> None:
    world = World(plain(1))
    with world.run([Kind.LATENCY, Kind.BANDWIDTH]) as run:
        with run.measuring(Kind.LATENCY):
            assert measure_latency(run) == (None, None)
        with run.measuring(Kind.BANDWIDTH):
            assert measure_bandwidth(run) is None
    assert [notice.code for notice in run.left_out] == ["one-cpu", "one-cpu"]
    assert not world.asked("ping")


@pytest.mark.parametrize(
    "threads",
    [
        [{"tid": 1, "cpu": 0, "seen": [0, 1], "involuntary": 0}],
        [{"tid": 1, "cpu": 0, "seen": [0, 0], "involuntary": 9}],
    ],
)
def test_a_disturbed_pair_is_marked_and_not_smoothed(threads: list[Fields]) -> None:
    def script(request: Fields) -> Fields:
        hit = request["do"] == "ping" and request["op"] == "cas" and request["home"] == 1
        return {"threads": threads} if hit else {}

    world = World(plain(2), script=script)
    with world.run([Kind.LATENCY]) as run, run.measuring(Kind.LATENCY):
        cas, store = measure_latency(run)
    assert cas is not None and store is not None
    assert cas.unsettled == ((1, 0),)
    assert cas.values[1][0] == pytest.approx(50.0)
    assert store.unsettled == ()
    watch = run.watches[0]
    assert watch.misplaced_threads or watch.involuntary_switches


def test_pages_on_another_node_than_the_home_are_told() -> None:
    def script(request: Fields) -> Fields:
        return {"pages": {"0": 1}} if request["do"] == "ping" else {}

    world = World(plain(1, nodes=2), script=script)
    with world.run([Kind.LATENCY]) as run, run.measuring(Kind.LATENCY):
        cas, _ = measure_latency(run)
    assert cas is not None and cas.unsettled == ((1, 0),)
    assert run.watches[0].misplaced_pages > 0


def test_what_did_not_settle_is_measured_again_and_then_stands() -> None:
    shaky = iter(range(100))

    def script(request: Fields) -> Fields:
        # The first two measurements of all scatter, whichever pair they are of.
        if request["do"] == "ping" and next(shaky) < 2:
            return {"one_way_ns": [10.0, 90.0] * 6}
        return {}

    world = World(plain(2), script=script)
    with world.run([Kind.LATENCY]) as run, run.measuring(Kind.LATENCY):
        cas, _ = measure_latency(run)
    assert cas is not None and cas.unsettled == ()
    assert cas.values[0][1] == cas.values[1][0] == pytest.approx(50.0)
    assert len(world.asked("ping")) == 4 + 2


def test_what_never_settles_ends_and_is_marked() -> None:
    def script(request: Fields) -> Fields:
        return {"one_way_ns": [10.0, 90.0] * 6} if request["do"] == "ping" else {}

    world = World(plain(2), script=script)
    with world.run([Kind.LATENCY]) as run, run.measuring(Kind.LATENCY):
        cas, _ = measure_latency(run)
    assert cas is not None and cas.unsettled == ((0, 1), (1, 0))
    assert cas.spreads[0][1] == pytest.approx(0.8)
    assert len(world.asked("ping")) == 4 * 6


def test_a_slow_machine_keeps_to_the_time_and_says_what_is_missing() -> None:
    world = World(milan(2, 8, 8), slowness=40.0)
    with world.run([Kind.LATENCY]) as run:
        with run.measuring(Kind.LATENCY):
            cas, store = measure_latency(run)
        took = world.host.monotonic()
    assert took <= 24.0 + 1.5
    assert cas is not None and store is None
    assert sum(value is not None for row in cas.values for value in row) > 0
    # Every PU has been paired about as often.
    counts = [sum(value is not None for value in row) for row in cas.values]
    assert max(counts) - min(counts) <= 2
    assert [notice.code for notice in run.left_out] == ["no-time", "fewer-pus"]
    assert not run.notices


def test_a_probe_that_hangs_is_killed_and_the_others_go_on() -> None:
    def script(request: Fields) -> Fields | str:
        bad = request["do"] == "ping" and (request["op"], request["home"]) == ("cas", 0)
        return "hang" if bad else {}

    world = World(plain(2), script=script)
    with world.run([Kind.LATENCY]) as run, run.measuring(Kind.LATENCY):
        cas, store = measure_latency(run)
    assert cas is not None and cas.values[0][1] is None
    assert cas.values[1][0] == pytest.approx(50.0)
    assert store is not None
    assert [notice.code for notice in run.left_out] == ["hung"]
    assert "core latency, compare-and-swap 0-1: ping: no answer within" in run.left_out[0].message
    assert len(world.probes) == 2 and all(probe.closed for probe in world.probes)


def test_a_probe_that_dies_again_and_again_is_given_up() -> None:
    world = World(plain(4), script=lambda request: "die" if request["do"] == "ping" else {})
    with world.run([Kind.LATENCY]) as run, run.measuring(Kind.LATENCY):
        assert measure_latency(run) == (None, None)
    assert [notice.code for notice in run.left_out] == ["died", "died", "died", "gave-up"]
    assert "SIGKILL" in run.left_out[0].message and "a word of the probe" in run.left_out[0].message
    assert len(world.asked("ping")) == 3


# -- what is measured on large machines ------------------------------------------------------------


def test_quick_mode_pairs_one_pu_a_core_and_some_siblings_where_there_are_many() -> None:
    machine = milan(2, 4, 8, smt=2)
    plan = budget(Mode.QUICK, list(Kind), machine, machine.pus).pairs[Kind.LATENCY]
    assert plan.seconds(Kind.LATENCY) <= 4.0 + 0.01
    siblings = [core for core in machine.cores if set(core.pus) <= set(plan.pus)]
    assert {core.package for core in siblings} == {0, 1}
    assert len(plan.pus) < 64
    # Evenly: each chiplet has some.
    assert all(set(chiplet.pus) & set(plan.pus) for chiplet in machine.chiplets)


def test_full_mode_pairs_all_and_takes_its_time() -> None:
    machine = milan(2, 8, 8, smt=2)
    full = budget(Mode.FULL, list(Kind), machine, machine.pus)
    assert full.pairs[Kind.LATENCY].pus == machine.pus
    assert full.pairs[Kind.LATENCY].each_s == pytest.approx(0.001)
    assert full.total_s > 280
    assert full.share_s(Kind.LATENCY, elapsed_s=0) >= full.pairs[Kind.LATENCY].seconds(Kind.LATENCY)


@given(
    st.sampled_from(Mode),
    st.integers(1, 4),
    st.integers(1, 12),
    st.integers(1, 8),
    st.integers(1, 2),
    st.sets(st.sampled_from(Kind), min_size=1),
)
def test_any_machine_has_a_plan(
    mode: Mode, packages: int, chiplets: int, cores: int, smt: int, kinds: set[Kind]
) -> None:
    machine = milan(packages, chiplets, cores, smt=smt)
    plan = budget(mode, list(kinds), machine, machine.pus)
    assert plan.kinds == tuple(kind for kind in Kind if kind in kinds)
    assert sum(plan.share_s(kind, elapsed_s=0) for kind in plan.kinds[:1]) <= plan.total_s + 1e-9
    chosen = {pairs.pus for pairs in plan.pairs.values()}
    assert all(set(pus) <= set(machine.pus) and len(pus) >= 2 for pus in chosen)
    assert all(0 < pairs.each_s <= PAIR_MOST_S for pairs in plan.pairs.values())
    if mode is Mode.QUICK:
        assert plan.total_s == 24.0
        for kind, pairs in plan.pairs.items():
            assert pairs.seconds(kind) <= plan.share_s(kind, elapsed_s=0) + 24.0
    assert plan.estimate_s <= plan.total_s + 2


@given(st.lists(st.integers(0, 500), min_size=2, max_size=40, unique=True))
def test_rounds_hold_every_pair_once(pus: list[int]) -> None:
    found = list(rounds(pus))
    assert sorted(found) == sorted(itertools.combinations(sorted(pus), 2))
    a_round = len(pus) // 2
    for begin in range(0, len(found), a_round):
        members = [pu for pair in found[begin : begin + a_round] for pu in pair]
        assert len(members) == len(set(members))
