"""Axes hold what they are made for, with round ticks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.report.svg.axes import Scale, even_ticks, log_ticks, ratio_ticks, size_ticks, span


@given(st.floats(1e-5, 1e5))
def test_an_axis_of_times_has_a_few_ticks_from_zero(longest: float) -> None:
    ticks = even_ticks(0, longest * 1.05, 6)
    assert ticks[0] == 0
    assert longest * 0.6 < ticks[-1] <= longest * 1.05
    assert 3 <= len(ticks) <= 6


@given(st.floats(1e-3, 1e5))
def test_a_short_axis_before_zero_has_a_tick_besides_zero(before: float) -> None:
    ticks = even_ticks(-before, 0, 4)
    assert ticks[-1] == 0 and 2 <= len(ticks) <= 4
    assert ticks[0] >= -before * 1.000001


@given(st.floats(1e-3, 1e3), st.floats(1.0, 50.0))
def test_an_axis_of_ratios_holds_both_ends(low: float, more: float) -> None:
    high = low * more
    ticks = ratio_ticks(low, high)
    assert ticks == sorted(set(ticks))
    assert 1.0 in ticks
    assert ticks[0] <= min(low, 1.0)
    assert ticks[-1] >= max(high, 1.0)
    assert len(ticks) >= 2


@given(st.floats(1e-3, 1e6), st.floats(1.01, 1e6))
def test_logarithmic_ticks_are_inside_and_few(low: float, more: float) -> None:
    scale = Scale(low, low * more)
    ticks = log_ticks(scale)
    assert 1 <= len(ticks) <= 9
    assert all(scale.low * 0.999 <= tick <= scale.high * 1.001 for tick in ticks)


def test_size_ticks_are_powers_of_two() -> None:
    assert size_ticks(Scale(1000, 10_000)) == [1024, 2048, 4096, 8192]


@pytest.mark.parametrize("log", [True, False])
def test_a_scale_clips_to_its_ends(log: bool) -> None:
    scale = Scale(1, 100, log)
    assert scale.at(0.5) == 0 and scale.at(1000) == 1
    assert scale.at(10) == pytest.approx(0.5 if log else 9 / 99)


def test_a_span_ignores_what_was_not_measured() -> None:
    scale = span(np.array([np.nan, 2.0, 8.0]), 2)
    assert scale == Scale(1.0, 16.0)
    assert span(np.array([np.nan])) == Scale(1.0, 10.0)
