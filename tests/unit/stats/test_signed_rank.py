"""The error of the signed-rank interval is what it states, and one wild block moves it little."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.stats.signed_rank import fewest, shift

ERROR = 0.05
finite = st.floats(-10, 10, allow_nan=False)


def test_the_interval_is_the_published_one() -> None:
    """Hollander and Wolfe, table A.4: for n = 9, P(T >= 39) = 0.027, so k = 6 at 95 %: P(T <= 5)
    = 10/512 and P(T <= 6) = 14/512."""
    values = [float(2**power) for power in range(9)]
    means = sorted(
        (one + other) / 2 for one, other in itertools.combinations_with_replacement(values, 2)
    )
    found = shift(values, ERROR).interval
    assert found is not None
    assert (found.low, found.high) == (means[5], means[-6])


@pytest.mark.parametrize("error", [0.05, 0.01, 0.0007])
def test_the_fewest_values_have_an_interval_and_one_less_has_none(error: float) -> None:
    count = fewest(error)
    assert shift([1.0] * count, error).interval is not None
    assert shift([1.0] * (count - 1), error).interval is None


@pytest.mark.parametrize("kind", ["normal", "heavy"])
def test_the_error_is_at_most_the_stated_one(kind: str) -> None:
    rng = np.random.default_rng(1)
    draw = rng.standard_normal if kind == "normal" else lambda size: rng.standard_t(2, size)
    for count in (8, 16):
        values = draw((2000, count))
        bounds = [shift(list(row), ERROR).interval for row in values]
        missed = sum(found is not None and not found.holds(0.0) for found in bounds) / len(bounds)
        assert missed <= ERROR + 0.015  # 3 standard errors of 2000 draws


@given(st.lists(finite, min_size=8, max_size=30), st.floats(-5, 5))
def test_it_moves_with_the_values_and_turns_with_their_sign(
    values: list[float], step: float
) -> None:
    plain, moved = shift(values, ERROR), shift([value + step for value in values], ERROR)
    turned = shift([-value for value in values], ERROR)
    assert plain.interval and moved.interval and turned.interval
    assert moved.value == pytest.approx(plain.value + step, abs=1e-9)
    assert moved.interval.low == pytest.approx(plain.interval.low + step, abs=1e-9)
    assert turned.interval.low == pytest.approx(-plain.interval.high, abs=1e-9)
    assert plain.interval.low <= plain.value <= plain.interval.high


def test_one_wild_value_of_sixteen_stays_without_weight() -> None:
    found = shift([0.1 + 0.001 * number for number in range(15)] + [50.0], ERROR)
    assert found.interval is not None and found.interval.high < 0.2


@pytest.mark.parametrize("values", [[], [float("nan")], [1.0, float("inf")]])
def test_no_values_and_infinite_ones_are_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        shift(values, ERROR)
