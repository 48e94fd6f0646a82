"""The cache curve: its sizes, their order, and the inferred levels."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from atoll.infer.capacities import Capacity
from atoll.probing.caches import matched, measure_caches
from atoll.probing.places import coarse_first, log_spaced
from atoll.schema.profile import CacheCurve, Kind, Mode
from tests.parts.machines import milan, plain
from tests.parts.probing import World
from tests.parts.probing_machines import with_caches

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def curves(world: World, mode: Mode = Mode.QUICK) -> tuple[tuple[CacheCurve, ...], list[str]]:
    with world.run([Kind.CACHE], mode) as run, run.measuring(Kind.CACHE):
        found = measure_caches(run)
    return found, [notice.code for notice in (*run.left_out, *run.notices)]


def test_the_levels_show_without_the_systems_word() -> None:
    (curve,), codes = curves(World(plain(2)))
    assert codes == []
    capacities = [level.capacity_bytes for level in curve.levels]
    for capacity, true in zip(capacities, (48 * KIB, 2 * MIB, 32 * MIB), strict=True):
        assert 0.6 < capacity / true < 1.6
    assert curve.memory_latency_ns is not None and 95 < curve.memory_latency_ns < 105
    sizes = [point.working_set_bytes for point in curve.points]
    assert sizes == sorted(sizes) and sizes[0] == 4 * KIB and sizes[-1] == GIB
    assert all(point.bandwidth_gbs is not None for point in curve.points)


def test_full_mode_is_finer() -> None:
    (quick,), _ = curves(World(plain(2)))
    (full,), _ = curves(World(plain(2)), Mode.FULL)
    assert len(full.points) > 1.8 * len(quick.points)


def test_what_the_system_claims_stands_beside() -> None:
    (curve,), _ = curves(World(with_caches(milan(1, 2, 4))))
    assert [level.sysfs_bytes for level in curve.levels] == [32 * KIB, 512 * KIB, 32 * MIB]
    assert curve.points[-1].working_set_bytes == 4 * 32 * MIB


def test_little_memory_ends_the_curve_and_does_not_make_memory_of_a_cache() -> None:
    world = World(plain(2), files={"/proc/meminfo": "MemAvailable: 16384 kB\n"})
    (curve,), codes = curves(world)
    assert codes == ["memory"]
    assert curve.points[-1].working_set_bytes <= 12 * MIB
    assert curve.memory_latency_ns is None


def test_no_huge_pages_is_said() -> None:
    world = World(plain(2), script=lambda each: {} if each["do"] == "hello" else {"huge": False})
    (curve,), codes = curves(world)
    assert not curve.huge_pages and codes == ["no-huge-pages"]


def test_what_was_read_wrongly_is_no_bandwidth() -> None:
    world = World(plain(2), script=lambda each: {"verified": False} if each["do"] == "move" else {})
    (curve,), codes = curves(world)
    assert all(point.bandwidth_gbs is None for point in curve.points)
    assert set(codes) == {"unverified"}


def test_little_time_makes_a_thin_curve_and_no_short_one() -> None:
    (curve,), codes = curves(World(plain(2), script=lambda each: {"wall_ns": 10**9}))
    assert codes == ["no-time"]
    assert curve.points[0].working_set_bytes == 4 * KIB
    assert curve.points[-1].working_set_bytes == GIB


def test_unequal_claims_go_to_the_level_that_they_are_nearest_to() -> None:
    levels = [Capacity(50_000, 1.0), Capacity(20 * MIB, 60.0)]
    assert matched(levels, [48 * KIB, 2 * MIB, 32 * MIB]) == [48 * KIB, 32 * MIB]
    assert matched(levels, [64 * KIB, 256 * MIB]) == [64 * KIB, 256 * MIB]
    assert matched(levels, []) == [None, None]
    assert matched([], [48 * KIB]) == []


@given(st.integers(0, 300))
def test_coarse_first_is_each_once_with_the_ends_first(count: int) -> None:
    order = list(coarse_first(count))
    assert sorted(order) == list(range(count))
    if count > 1:
        assert order[:2] == [0, count - 1]


@given(st.integers(64, 10_000), st.integers(10_000, GIB), st.integers(1, 5))
def test_sizes_rise_within_their_ends(first: int, last: int, per_octave: int) -> None:
    sizes = log_spaced(first, last, per_octave, multiple=64)
    assert sizes == sorted(set(sizes))
    assert all(first - 64 < size <= last and size % 64 == 0 for size in sizes)
