"""Numbers in the text of reports."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.report.numbers import cut, duration, number, time_tick


@given(st.floats(1e-6, 1e6))
def test_durations_have_three_digits(seconds: float) -> None:
    value, unit = duration(seconds).split()
    assert unit in ("s", "ms")
    assert float(value) * (1 if unit == "s" else 1e-3) == pytest.approx(
        seconds, rel=0.006, abs=6e-6
    )


def test_numbers_have_three_digits_or_all_of_an_integer() -> None:
    assert [number(value) for value in (9.81, 22.71, 108.2, 7297.4)] == [
        "9.81",
        "22.7",
        "108",
        "7297",
    ]


def test_time_ticks_share_the_unit_of_their_axis() -> None:
    assert (time_tick(0.5, 0.9), time_tick(0.5, 2)) == ("500 ms", "0.5 s")


def test_a_cut_shows_that_something_is_missing() -> None:
    assert (cut("abcde", 5), cut("abcdef", 5)) == ("abcde", "abcd…")
