"""Cache levels inferred from made-up curves: known capacities, slow and sharp steps, noise."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from atoll.infer.capacities import MIN_APART, cache_levels, median_of_three
from tests.parts.faults import fails

KIB, MIB = 1 << 10, 1 << 20
# capacities, latencies of the levels and of memory
MACHINES = {
    "two": ((32 * KIB, 8 * MIB), (1.0, 10.0, 80.0)),
    "zen": ((32 * KIB, 512 * KIB, 32 * MIB), (1.2, 3.6, 12.0, 95.0)),
    "tiles": ((48 * KIB, 2 * MIB, 60 * MIB), (1.6, 5.0, 33.0, 110.0)),
    "four": ((32 * KIB, 256 * KIB, 8 * MIB, 128 * MIB), (1.0, 3.0, 10.0, 30.0, 90.0)),
}
SIZES = [int(size) for size in np.geomspace(4 * KIB, 1024 * MIB, 55)]


def curve(
    name: str, sharpness: float, *, smooth: bool = False, noise: float = 0.0, seed: int = 0
) -> list[float]:
    capacities, latencies = MACHINES[name]
    sizes = np.array(SIZES, float)
    found = np.full(len(sizes), latencies[0])
    for capacity, before, after in zip(capacities, latencies, latencies[1:], strict=False):
        share = capacity / sizes
        miss = 1 / (1 + share**sharpness) if smooth else 1 - np.minimum(1, share) ** sharpness
        found += (after - before) * miss
    return list(found * np.exp(np.random.default_rng(seed).normal(0, noise, len(sizes))))


def agrees(name: str, latencies: list[float]) -> bool:
    found = [level.capacity_bytes for level in cache_levels(SIZES, latencies).levels]
    true = MACHINES[name][0]
    return len(found) == len(true) and all(
        0.5 < got / want < 2 for got, want in zip(found, true, strict=True)
    )


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize(
    ("sharpness", "smooth"), [(1, False), (3, False), (20, False), (3, True), (6, True)]
)
def test_levels_of_a_clean_curve(name: str, sharpness: float, smooth: bool) -> None:
    assert agrees(name, curve(name, sharpness, smooth=smooth))


@pytest.mark.parametrize("name", MACHINES)
def test_levels_under_noise(name: str) -> None:
    shapes = [(1.0, False), (3.0, False), (16.0, False), (6.0, True)]
    outcomes = [
        agrees(name, curve(name, sharpness, smooth=smooth, noise=0.05, seed=seed))
        for (sharpness, smooth), seed in itertools.product(shapes, range(3))
    ]
    assert sum(outcomes) >= len(outcomes) - 1


def test_latencies_of_the_levels_and_of_memory() -> None:
    found = cache_levels(SIZES, curve("zen", 16))
    assert [level.latency_ns for level in found.levels] == pytest.approx([1.2, 3.6, 12], rel=0.1)
    assert found.beyond_ns == pytest.approx(95, rel=0.02)


def test_a_tlb_is_no_cache() -> None:
    """A quarter more past its reach is fitted and not told."""
    sizes = np.array(SIZES, float)
    latencies = np.array(curve("zen", 4)) * (1 + 0.25 * (sizes > 256 * MIB))
    assert agrees("zen", list(latencies))


def test_a_lone_spike_is_no_level() -> None:
    latencies = curve("zen", 4)
    latencies[20] *= 5
    assert agrees("zen", latencies)


def test_a_flat_curve_has_no_level() -> None:
    rng = np.random.default_rng(5)
    latencies = list(90 * np.exp(rng.normal(0, 0.05, len(SIZES))))
    assert cache_levels(SIZES, latencies).levels == ()


def test_levels_that_cannot_be_told_apart_are_one() -> None:
    sizes = np.array(SIZES, float)
    latencies = 2 + 3 * (sizes > 1 * MIB) + 4 * (sizes > 1.5 * MIB)
    assert len(cache_levels(SIZES, list(latencies)).levels) == 1


def test_a_curve_that_ends_at_its_last_step_does_not_say_what_comes_after() -> None:
    sizes = SIZES[:13]
    latencies = [1.0 if size < sizes[-3] else 5.0 for size in sizes]
    assert cache_levels(sizes, latencies).beyond_ns is None


@pytest.mark.parametrize("count", [0, 1, 7])
def test_too_few_points(count: int) -> None:
    assert cache_levels(SIZES[:count], [1.0] * count).levels == ()


def test_curves_that_are_none() -> None:
    with fails(ValueError):
        cache_levels([1, 2], [1.0])
    with fails(ValueError):
        cache_levels([2, 1], [1.0, 1.0])


@settings(max_examples=25)
@given(
    st.lists(
        st.one_of(st.floats(0.1, 500), st.sampled_from([float("nan"), float("inf"), 0.0, -1.0])),
        min_size=0,
        max_size=30,
    )
)
def test_whatever_comes_levels_rise_and_are_apart(latencies: list[float]) -> None:
    found = cache_levels(SIZES[: len(latencies)], latencies)
    capacities = [level.capacity_bytes for level in found.levels]
    assert all(b >= a * MIN_APART * 0.99 for a, b in itertools.pairwise(capacities))
    assert all(level.latency_ns > 0 for level in found.levels)


@given(st.lists(st.floats(0, 1e6), max_size=20))
def test_the_median_of_three_leaves_a_rising_curve(values: list[float]) -> None:
    rising: NDArray[np.float64] = np.array(sorted(values), dtype=np.float64)
    assert list(median_of_three(rising)) == list(rising)
