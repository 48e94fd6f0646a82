"""The intervals keep their promise: coverage by simulation, pairing, scaling, verdicts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.stats import paired
from atoll.stats.paired import (
    MIN_BLOCKS,
    Estimate,
    Interval,
    Verdict,
    geometric_mean,
    geometric_means,
    median_estimate,
    speedup,
)

seconds = st.floats(min_value=1e-4, max_value=1e4)


def coverage(blocks: int, noise: str, trials: int = 400) -> float:
    """Share of simulated benches whose interval holds the true speed-up, 1.3."""
    rng = np.random.default_rng(7)
    held = 0
    for _ in range(trials):
        # What a block shares (a slow minute) hits both sides and must cancel.
        shared = rng.lognormal(0.0, 0.5, blocks)
        if noise == "lognormal":
            own = rng.lognormal(0.0, 0.1, (2, blocks))
        else:  # a few blocks disturbed many times over
            own = 1.0 + 0.02 * rng.standard_t(2, (2, blocks)) ** 2
        base = dict(enumerate(1.3 * shared * own[0]))
        entrant = dict(enumerate(shared * own[1]))
        found = speedup(base, entrant)
        assert found is not None and found.interval is not None
        held += found.interval.holds(1.3)
    return held / trials


@pytest.mark.parametrize("noise", ["lognormal", "heavy-tailed"])
@pytest.mark.parametrize("blocks", [5, 6, 8, 15])
def test_coverage_is_near_nominal(blocks: int, noise: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paired, "RESAMPLES", 1000)  # for time; the quantiles hardly move
    # Nominal 0.95. 400 trials scatter by about 0.011 a standard deviation.
    assert coverage(blocks, noise) >= 0.89


def test_five_blocks_cover_as_the_sign_test_says() -> None:
    # With 5 values the interval is their whole range: 1 - 2 * 0.5**5 = 0.9375.
    values = [1.01, 1.2, 0.98, 1.1, 1.05]
    found = median_estimate(values)
    assert found.value == pytest.approx(1.05)
    assert found.interval is not None
    assert found.interval.low == pytest.approx(0.98)
    assert found.interval.high == pytest.approx(1.2)


def test_the_mean_would_be_too_narrow() -> None:
    """The reason for the median, kept true: a mean's percentile interval covers under 0.88."""
    rng = np.random.default_rng(3)
    held = 0
    for _ in range(400):
        values = rng.normal(0.0, 1.0, 5)
        means = values[rng.integers(0, 5, (1000, 5))].mean(axis=1)
        low, high = np.quantile(means, [0.025, 0.975])
        held += bool(low <= 0.0 <= high)
    assert held / 400 < 0.88


def test_false_alarms_are_rare_where_nothing_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paired, "RESAMPLES", 1000)
    rng = np.random.default_rng(11)
    alarms = 0
    for _ in range(300):
        base = dict(enumerate(rng.lognormal(0, 0.05, 8)))
        same = dict(enumerate(rng.lognormal(0, 0.05, 8)))
        found = speedup(base, same)
        assert found is not None
        alarms += found.verdict is not Verdict.NO_DIFFERENCE
    assert alarms / 300 < 0.12


@pytest.mark.parametrize("blocks", range(1, MIN_BLOCKS))
def test_below_five_blocks_there_is_no_interval(blocks: int) -> None:
    found = median_estimate([1.0 + 0.1 * index for index in range(blocks)])
    assert found.interval is None
    assert found.verdict is Verdict.CANNOT_TELL


@given(st.lists(st.tuples(seconds, seconds), min_size=5, max_size=12), st.floats(0.001, 1000))
@settings(max_examples=40)
def test_the_clocks_unit_does_not_matter(pairs: list[tuple[float, float]], scale: float) -> None:
    base = {block: pair[0] for block, pair in enumerate(pairs)}
    entrant = {block: pair[1] for block, pair in enumerate(pairs)}
    plain = speedup(base, entrant)
    scaled = speedup(
        {b: scale * s for b, s in base.items()}, {b: scale * s for b, s in entrant.items()}
    )
    assert plain and scaled and plain.interval and scaled.interval
    assert scaled.value == pytest.approx(plain.value)
    assert scaled.interval.low == pytest.approx(plain.interval.low)
    assert scaled.interval.high == pytest.approx(plain.interval.high)


@given(st.lists(st.tuples(seconds, seconds), min_size=5, max_size=12))
@settings(max_examples=40)
def test_a_shared_slow_minute_cancels(pairs: list[tuple[float, float]]) -> None:
    """Pairing: slowing both sides of a block by any factor changes nothing."""
    slow = [1.0 + 3.0 * (index % 3) for index in range(len(pairs))]
    plain = speedup(dict(enumerate(p[0] for p in pairs)), dict(enumerate(p[1] for p in pairs)))
    disturbed = speedup(
        {b: pairs[b][0] * slow[b] for b in range(len(pairs))},
        {b: pairs[b][1] * slow[b] for b in range(len(pairs))},
    )
    assert plain and disturbed and plain.interval and disturbed.interval
    assert disturbed.value == pytest.approx(plain.value)
    assert disturbed.interval.low == pytest.approx(plain.interval.low)


@given(st.lists(seconds, min_size=1, max_size=12))
@settings(max_examples=40)
def test_swapping_sides_mirrors(values: list[float]) -> None:
    ones = dict.fromkeys(range(len(values)), 1.0)
    times = dict(enumerate(values))
    forward, backward = speedup(times, ones), speedup(ones, times)
    assert forward and backward
    assert forward.value == pytest.approx(1.0 / backward.value)


def test_failed_blocks_drop_pairs_only() -> None:
    base = {0: 2.0, 1: 2.0, 2: 2.0, 3: 99.0}
    entrant = {0: 1.0, 2: 1.0, 4: 50.0}
    assert speedup(base, entrant) == median_estimate([2.0, 2.0])
    assert speedup({0: 1.0}, {1: 1.0}) is None


def test_same_input_same_figures() -> None:
    values = [1.0, 1.1, 0.9, 1.3, 1.2, 0.8]
    assert median_estimate(values) == median_estimate(list(values))


def test_one_wild_block_does_not_move_the_estimate() -> None:
    calm = median_estimate([1.1, 1.11, 1.12, 1.13, 1.14])
    wild = median_estimate([1.1, 1.11, 1.12, 1.13, 40.0])
    assert calm.value == wild.value


@pytest.mark.parametrize("values", [[], [1.0, 0.0], [1.0, -1.0], [math.nan], [math.inf]])
def test_impossible_times_are_refused(values: list[float]) -> None:
    with pytest.raises(ValueError):
        median_estimate(values)


def test_verdicts() -> None:
    def verdict(low: float, high: float) -> Verdict:
        return Estimate(1.0, Interval(low, high), 5).verdict

    assert verdict(1.01, 1.2) is Verdict.FASTER
    assert verdict(0.8, 0.99) is Verdict.SLOWER
    assert verdict(0.99, 1.01) is Verdict.NO_DIFFERENCE
    assert verdict(1.0, 1.2) is Verdict.NO_DIFFERENCE


def test_geometric_means_need_every_query_of_a_block() -> None:
    means = geometric_means({"q1": {0: 1.0, 1: 2.0, 2: 3.0}, "q6": {0: 4.0, 1: 8.0}})
    assert means == {0: pytest.approx(2.0), 1: pytest.approx(4.0)}
    assert geometric_means({}) == {}
    with pytest.raises(ValueError):
        geometric_mean([])


def test_the_speedup_of_means_is_the_mean_of_speedups() -> None:
    base = {"q1": {0: 3.0}, "q6": {0: 8.0}}
    entrant = {"q1": {0: 1.5}, "q6": {0: 1.0}}
    found = speedup(geometric_means(base), geometric_means(entrant))
    assert found is not None
    assert found.value == pytest.approx(geometric_mean([2.0, 8.0]))


def test_confidence_is_what_the_documents_say() -> None:
    assert paired.CONFIDENCE == 0.95
    assert paired.MIN_BLOCKS == 5
