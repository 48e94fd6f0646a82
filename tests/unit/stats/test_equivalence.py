"""Equivalence needs a narrow interval: few blocks or noise never show it."""

from __future__ import annotations

import numpy as np
import pytest

from atoll.stats.equivalence import Equivalence, equivalence
from atoll.stats.paired import Estimate, Interval, median_estimate


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.99, 1.01, Equivalence.EQUIVALENT),
        (1.005, 1.015, Equivalence.EQUIVALENT),  # certain, and too small to matter
        (1.005, 1.03, Equivalence.DIFFERS),
        (0.90, 0.97, Equivalence.DIFFERS),
        (0.97, 1.01, Equivalence.NOT_SHOWN),
        (0.5, 2.0, Equivalence.NOT_SHOWN),
    ],
)
def test_the_interval_decides(low: float, high: float, verdict: Equivalence) -> None:
    assert equivalence(Estimate(1.0, Interval(low, high), 5)) is verdict


def test_few_blocks_show_nothing() -> None:
    assert equivalence(median_estimate([1.0] * 4)) is Equivalence.NOT_SHOWN
    assert equivalence(median_estimate([1.0] * 5)) is Equivalence.EQUIVALENT


def test_a_difference_of_two_percent_is_seldom_called_equivalent() -> None:
    """At the margin itself a fault of at most 5 % is allowed (2.5 % by the interval's tail; the
    bootstrap of a median is only close to it)."""
    rng = np.random.default_rng(7)
    faults = sum(
        equivalence(median_estimate(list(1.02 * np.exp(rng.normal(0, 0.01, 10)))))
        is Equivalence.EQUIVALENT
        for _ in range(300)
    )
    assert faults <= 300 * 0.05
