"""STREAM: processes that start together, each division once, levels by each thread's share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.probing.places import core_cpus, data_caches
from atoll.probing.requests import MoveAnswer
from atoll.probing.streams import (
    SIZES,
    Pace,
    common_share,
    measure_stream,
    moved_gbs,
    parts,
    summed_samples,
)
from atoll.probing.working_set import reaches, sits_in
from atoll.schema.profile import CacheCurve, CacheLevel, Kind, Mode, StreamRun
from tests.parts.machines import milan, plain
from tests.parts.probing import World
from tests.parts.probing_machines import with_caches


def stream(world: World, mode: Mode = Mode.QUICK) -> tuple[tuple[StreamRun, ...], list[str]]:
    with world.run([Kind.STREAM], mode) as run, run.measuring(Kind.STREAM):
        chiplets = (chiplet.pus for chiplet in world.machine.chiplets)
        run.chiplets = tuple(chiplets)
        found = measure_stream(run)
    assert all(probe.closed for probe in world.probes)
    return found, [notice.code for notice in (*run.left_out, *run.notices)]


def answer(gbs: list[float], begin_ns: int, end_ns: int, moved_bytes: int) -> MoveAnswer:
    return MoveAnswer(
        gbs=tuple(gbs),
        begin_ns=begin_ns,
        end_ns=end_ns,
        moved_bytes=moved_bytes,
        verified=True,
    )


def test_one_process_one_per_node_chiplet_and_core() -> None:
    found, codes = stream(World(milan(2, 2, 2)))
    assert {(run.per, run.processes) for run in found} == {
        ("machine", 1),
        ("node", 2),
        ("chiplet", 4),
        ("core", 8),
    }
    assert {run.working_set_bytes for run in found} == set(SIZES[Mode.QUICK])
    assert all(run.threads == 8 for run in found)
    assert codes == []
    # 10 GB/s a thread, whoever has the process.
    assert all(run.bandwidth_gbs.value == pytest.approx(80, rel=0.01) for run in found)


def test_processes_begin_together_and_share_the_working_set() -> None:
    world = World(milan(1, 2, 2))
    stream(world)
    together = [each for each in world.asked("move") if each["start_ns"] is not None]
    starts = {each["start_ns"] for each in together}
    per_start = [[each for each in together if each["start_ns"] == start] for start in starts]
    assert {len(each) for each in per_start} == {2, 4}
    assert all(sum(one["bytes"] for one in each) in SIZES[Mode.QUICK] for each in per_start)


def test_what_coincides_is_measured_once_and_said() -> None:
    found, codes = stream(World(plain(2)))
    assert {run.per for run in found} == {"machine", "core"}
    assert sorted(codes) == ["no-chiplets", "same-division"]


def test_full_mode_has_all_kernels_and_powers_of_two() -> None:
    found, _ = stream(World(plain(8)), Mode.FULL)
    assert {run.kernel.value for run in found} == {"copy", "scale", "add", "triad"}
    assert {(run.per, run.processes) for run in found if run.per == "n"} == {("n", 2), ("n", 4)}


def test_memory_is_a_limit() -> None:
    world = World(plain(2), files={"/proc/meminfo": "MemAvailable: 65536 kB\n"})
    found, codes = stream(world)
    assert max(run.working_set_bytes for run in found) == 24_000_000
    assert "memory" in codes


def test_what_is_wrong_or_did_not_run_together_is_no_figure() -> None:
    world = World(plain(2), script=lambda each: {"verified": False} if each["do"] == "move" else {})
    found, codes = stream(world)
    assert found == () and "unverified" in codes
    turn = iter(range(1_000_000))
    apart = World(
        plain(2),
        script=lambda each: (
            {"begin_ns": (at := 1000 * next(turn)), "end_ns": at + 1000}
            if each["do"] == "move"
            else {}
        ),
    )
    found, codes = stream(apart)
    assert {run.per for run in found} == {"machine"} and "not-together" in codes


def test_time_is_kept_on_a_slow_machine() -> None:
    world = World(milan(2, 2, 2), slowness=6)
    _, codes = stream(world)
    assert "no-time" in codes
    assert world.host.now_s < 40


def test_a_probe_that_dies_ends_its_division_alone() -> None:
    world = World(
        plain(4),
        script=lambda each: "die" if each["do"] == "move" and len(each["cpus"]) == 1 else {},
    )
    found, codes = stream(world)
    assert {run.per for run in found} == {"machine"} and "died" in codes


def test_the_sum_over_processes() -> None:
    both = [answer([10.0] * 12, 0, 100, 1000), answer([5.0] * 24, 10, 110, 500)]
    assert moved_gbs(both) == pytest.approx(15)
    assert common_share(both) == pytest.approx(0.9)
    assert summed_samples(both) == pytest.approx([15.0] * 12)
    assert summed_samples([answer([4.0], 0, 1, 1), both[0]]) == pytest.approx([14.0])


def test_the_pace_is_that_of_the_worst() -> None:
    pace = Pace()
    at_rest_s = pace.seconds(1e9, 0.1)
    pace.took(1e6, 0.1, 0.1 + 10 * (pace.seconds(1e6, 0.0)))
    assert pace.seconds(1e9, 0.1) == pytest.approx(10 * (at_rest_s - 0.1) + 0.1)


@given(st.integers(1, 200), st.data())
def test_parts_are_all_the_cores_as_even_as_can_be(cores: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, cores))
    found = parts(tuple(range(cores)), count)
    assert [cpu for part in found for cpu in part] == list(range(cores))
    assert max(map(len, found)) - min(map(len, found)) <= 1


def test_the_level_is_that_of_each_threads_share() -> None:
    machine = with_caches(milan(1, 2, 4))
    reach = reaches(machine, machine.pus, ())
    every_core = [(cpu,) for cpu in machine.pus]
    assert sits_in(reach, every_core, 8 << 20) == "L3"  # a quarter of 32 MiB
    assert sits_in(reach, every_core, (8 << 20) + 1) == "L3 and memory"
    assert sits_in(reach, every_core, (16 << 20) + 1) == "memory"
    assert sits_in(reach, [(0,), (4,)], 32 << 20) == "L3"  # alone on its chiplet


def test_a_mute_system_is_told_by_the_curve() -> None:
    machine = plain(2).model_copy(update={"caches": ()})
    assert sits_in(reaches(machine, machine.pus, ()), [(0, 1)], 1.0) == "memory"
    levels = (
        CacheLevel(level=1, capacity_bytes=32768, latency_ns=1, sysfs_bytes=None),
        CacheLevel(level=2, capacity_bytes=1 << 20, latency_ns=9, sysfs_bytes=None),
    )
    curve = CacheCurve(cpu=0, huge_pages=True, points=(), levels=levels, memory_latency_ns=None)
    reach = reaches(machine, machine.pus, [curve])
    assert sits_in(reach, [(0, 1)], 32768) == "L1"
    assert sits_in(reach, [(0, 1)], 1 << 19) == "L2"
    assert sits_in(reach, [(0, 1)], 1 << 20) == "L2 and memory"
    assert sits_in(reach, [(0, 1)], (1 << 20) + 1) == "memory"


def test_what_is_past_a_crowded_cache_alone_is_not_the_memorys() -> None:
    machine = with_caches(milan(1, 1, 4))
    sizes = [cache.size_bytes for cache in data_caches(machine, 0)]
    levels = tuple(
        CacheLevel(level=n + 1, capacity_bytes=size, latency_ns=n + 1, sysfs_bytes=None)
        for n, size in enumerate([*sizes[:-1], sizes[-1] // 4])  # neighbours have the rest of L3
    )
    curve = CacheCurve(cpu=0, huge_pages=True, points=(), levels=levels, memory_latency_ns=None)
    reach = reaches(machine, machine.pus, [curve])
    assert sits_in(reach, [(0,)], sizes[-1] // 4) == "L3"
    assert sits_in(reach, [(0,)], sizes[-1]) == "L3 and memory"
    assert sits_in(reach, [(0,)], sizes[-1] + 1) == "memory"


def test_one_thread_a_core() -> None:
    world = World(plain(4, smt=2))
    with world.run([Kind.STREAM]) as run:
        assert len(core_cpus(run)) == 4
