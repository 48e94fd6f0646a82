"""The confidence is honest: it follows the gap over the noise and the number of pairs, noise is
'cannot tell', and a matrix that contradicts the other lowers it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from atoll.infer.chiplets import infer
from atoll.infer.confidence import against, agreeing, noise_bound, order_doubt
from atoll.schema.confidence import LEAST_CONFIDENCE
from tests.parts import infer as parts

Floats = npt.NDArray[np.float64]
SEEDS = st.integers(0, 2**16)
EIGHT = parts.islands("", [[8] * 4], ns=(24, 106, 0))


def noise(form: str, size: int, seed: int, *, symmetric: bool) -> Floats:
    random = np.random.default_rng(seed)
    shape = (size, size)
    values = {
        "uniform": random.uniform(20, 200, shape),
        "fast": random.uniform(1, 10, shape),
        "lognormal": 50 * np.exp(0.5 * random.standard_normal(shape)),
        "two values": random.choice([30.0, 110.0], shape),
    }[form]
    if symmetric:
        values = np.triu(values, 1) + np.triu(values, 1).T
    np.fill_diagonal(values, np.nan)
    return values


# ---- Noise ----------------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(["uniform", "fast", "lognormal", "two values"]), st.integers(9, 32), SEEDS)
def test_noise_cannot_tell(form: str, size: int, seed: int) -> None:
    found = infer(noise(form, size, seed, symmetric=True), None)
    assert found.confidence < LEAST_CONFIDENCE, found.reasons


def test_a_large_matrix_of_noise_cannot_tell() -> None:
    """Uniform from 20 to 200 ns, both directions of a pair independent."""
    found = infer(noise("uniform", 200, 1, symmetric=False), None)
    assert found.chiplets == found.smt == ()
    assert found.confidence < 0.1
    assert any("hide chiplets" in reason for reason in found.reasons)
    assert any("two directions" in reason for reason in found.reasons)


def test_noise_of_few_pus_seldom_looks_like_an_answer() -> None:
    sure = [
        infer(noise("uniform", size, seed, symmetric=True), None).confidence >= LEAST_CONFIDENCE
        for size in range(4, 9)
        for seed in range(20)
    ]
    assert sum(sure) <= 0.05 * len(sure)


def test_flat_figures_tell_that_there_is_nothing() -> None:
    flat = np.full((16, 16), 46.0)
    found = infer(parts.noisy(flat, 0.02, 1), None)
    assert found.chiplets == () and found.confidence > 0.9


@pytest.mark.parametrize("size", [4, 8, 16, 64])
def test_the_bound_of_the_noise_holds(size: int) -> None:
    random = np.random.default_rng(size)
    bounds = []
    for _ in range(60):
        cost = 0.2 * random.standard_normal((size, size))
        cost = np.triu(cost, 1) + np.triu(cost, 1).T
        np.fill_diagonal(cost, np.nan)
        bounds.append(noise_bound(cost))
    assert np.mean(np.array(bounds) >= 0.2) >= 0.8
    assert np.median(bounds) < 0.55


# ---- Few pairs ------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 3), st.floats(0.1, 1000), SEEDS)
@example(2, 10.0, 0)
@example(2, 7.0, 0)
def test_one_pair_is_no_evidence(size: int, scale: float, seed: int) -> None:
    values = scale * np.random.default_rng(seed).uniform(1, 20, (size, size))
    np.fill_diagonal(values, np.nan)
    for found in (infer(values, None), infer(None, values)):
        assert (found.chiplets, found.packages, found.smt) == ((), (), ())
        assert found.confidence == 0
        assert any("too few cores" in reason for reason in found.reasons)


def test_a_lone_near_pair_is_one_of_them_in_any_matrix() -> None:
    values = np.full((8, 8), 100.0)
    values[0, 1] = values[1, 0] = 20
    np.fill_diagonal(values, np.nan)
    assert infer(values, None).confidence < LEAST_CONFIDENCE
    assert order_doubt((2,), 8) == pytest.approx(1)


@settings(max_examples=20, deadline=None)
@given(st.floats(1.5, 50), st.floats(0, 0.1), SEEDS)
def test_two_pairs_are_bounded_whatever_the_gap(gap: float, sigma: float, seed: int) -> None:
    """2 of 6 pairs are the nearest by chance in 3 of 15 orders."""
    made = parts.islands("", [[2, 2]], ns=(30, 30 * gap, 0))
    assert infer(parts.noisy(made.values, sigma, seed), None).confidence <= 0.8


def test_more_pairs_make_it_surer() -> None:
    sure = [
        infer(parts.islands("", [[size] * 2], ns=(24, 106, 0)).values, None).confidence
        for size in (2, 3)
    ]
    assert sure[0] < sure[1]
    doubts = [order_doubt((size, size), 2 * size) for size in (2, 3, 4, 8)]
    assert doubts == sorted(doubts, reverse=True)


# ---- Gap over noise -------------------------------------------------------------------------


@settings(max_examples=5, deadline=None)
@given(SEEDS, st.integers(3, 8))
def test_it_falls_with_the_noise_and_grows_with_the_gap(seed: int, size: int) -> None:
    def sure(gap: float, sigma: float) -> float:
        made = parts.islands("", [[size] * 4], ns=(24, 24 * gap, 0))
        return infer(parts.noisy(made.values, sigma, seed), None).confidence

    by_noise = [sure(4, sigma) for sigma in (0.01, 0.1, 0.9)]
    by_gap = [sure(gap, 0.05) for gap in (1.6, 2.5, 6)]
    assert by_noise[0] >= by_noise[1] - 0.02 and by_noise[2] < by_noise[0]
    assert by_gap[0] < by_gap[1] < by_gap[2]


@settings(max_examples=5, deadline=None)
@given(st.floats(0.01, 0.1), SEEDS, st.sampled_from(["normal", "uniform"]))
def test_planted_chiplets_are_found_under_noise(sigma: float, seed: int, form: str) -> None:
    found = infer(parts.noisy(EIGHT.values, sigma, seed, form=form), None)
    assert found.chiplets == EIGHT.chiplets
    assert found.confidence > 0.85


@settings(max_examples=5, deadline=None)
@given(SEEDS, st.floats(0.01, 100))
def test_neither_the_numbering_nor_the_unit_matters(seed: int, scale: float) -> None:
    random = np.random.default_rng(seed)
    cases = (EIGHT.values, np.full((24, 24), 8.0), noise("uniform", 24, seed, symmetric=True))
    for values in cases:
        bandwidth = 100 / parts.noisy(values, 0.02, seed)  # latencies have bounds in ns
        order = random.permutation(len(values))
        found = infer(None, bandwidth)
        moved = infer(None, scale * bandwidth[np.ix_(order, order)])
        assert moved.confidence == pytest.approx(found.confidence, abs=0.002)
        renamed = {tuple(sorted(int(order[pu]) for pu in group)) for group in moved.chiplets}
        assert renamed == set(found.chiplets)


@settings(max_examples=5, deadline=None)
@given(SEEDS, st.floats(0.01, 100))
def test_noise_cannot_tell_at_any_scale(seed: int, scale: float) -> None:
    found = infer(scale * noise("uniform", 24, seed, symmetric=True), None)
    assert found.confidence < LEAST_CONFIDENCE


# ---- Two matrices ---------------------------------------------------------------------------


def test_a_bandwidth_that_is_the_other_way_round_contradicts() -> None:
    alone = infer(EIGHT.values, None)
    away = np.where(EIGHT.values < 50, 6.0, 12.0)  # near pairs are the slow ones
    found = infer(EIGHT.values, parts.noisy(away, 0.02, 1))
    assert found.chiplets == EIGHT.chiplets
    assert found.confidence < LEAST_CONFIDENCE < alone.confidence
    assert found.reasons[0].startswith("bandwidth contradicts")


def test_a_bandwidth_contradicts_packages_too() -> None:
    made = parts.islands("", [[12]] * 2, smt=2, ns=(48, 100, 110))
    away = np.where(made.values < 60, 6.0, 12.0)
    alone, found = infer(made.values, None), infer(made.values, away)
    assert found.packages == made.packages
    assert found.confidence < LEAST_CONFIDENCE < alone.confidence


def test_groups_that_cross_contradict_each_other() -> None:
    order = np.arange(32).reshape(8, 4).T.ravel()
    bandwidth = np.where(EIGHT.values < 50, 12.0, 6.0)[np.ix_(order, order)]
    found = infer(EIGHT.values, bandwidth)
    assert found.confidence < infer(EIGHT.values, None).confidence - 0.2
    assert "cross" in found.reasons[0]


@settings(max_examples=5, deadline=None)
@given(st.floats(1, 4), st.floats(1, 1.5), SEEDS)
def test_the_stronger_the_contradiction_the_lower_the_confidence(
    times: float, more: float, seed: int
) -> None:
    def sure(times: float) -> float:
        away = np.where(EIGHT.values < 50, 6.0, 6.0 * times)
        return infer(EIGHT.values, parts.noisy(away, 0.01, seed)).confidence

    assert sure(times * more) <= sure(times) + 0.001


@pytest.mark.parametrize("sigma", [0.0, 0.05, 0.5])
def test_a_bandwidth_that_shows_nothing_changes_nothing(sigma: float) -> None:
    flat = parts.noisy(np.full(EIGHT.values.shape, 8.0), sigma, 3)
    alone, both = infer(EIGHT.values, None), infer(EIGHT.values, flat)
    assert both.confidence == alone.confidence and both.chiplets == alone.chiplets


@given(st.floats(0, 0.999), st.floats(0, 0.999))
def test_agreement_raises_and_contradiction_lowers(one: float, other: float) -> None:
    assert agreeing(one, other) >= max(one, other) - 1e-12
    assert against(one, other) <= one + 1e-12


def test_directions_that_differ_are_named() -> None:
    values = np.where(np.tri(8, dtype=bool), 100.0, 190.0)
    found = infer(values, None)
    assert found.levels[0].median == pytest.approx(100)
    assert any("the two directions of 28 pairs" in reason for reason in found.reasons)
    assert found.confidence < LEAST_CONFIDENCE, "no pair has one figure"
    assert infer(np.full((8, 8), 100.0), None).confidence > 0.95
