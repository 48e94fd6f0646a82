"""A count of instances is relied upon once it has been whole for as long as the engine says."""

from __future__ import annotations

import pytest

from atoll.supervise.settling import Settling

Look = tuple[float, float, bool]  # asked, answered, all in


def over_at(settles_s: float, *looks: Look) -> list[bool]:
    settling = Settling(settles_s)
    return [
        settling.is_over(whole=whole, asked_s=asked, answered_s=answered)
        for asked, answered, whole in looks
    ]


def test_one_look_is_enough_where_nothing_settles() -> None:
    assert over_at(0, (0, 9, False), (9, 9, True)) == [False, True]


def test_a_whole_count_has_to_last() -> None:
    assert over_at(5, (0, 0, True), (4, 4, True), (5, 5, True)) == [False, False, True]


def test_one_that_drops_begins_anew() -> None:
    looks = ((0, 0, True), (4, 4, False), (5, 5, True), (9, 9, True), (10, 10, True))
    assert over_at(5, *looks) == [False, False, False, False, True]


@pytest.mark.parametrize("last", [(8.9, 12.0, True), (9.0, 9.5, True)])
def test_the_time_that_looks_take_is_not_counted(last: Look) -> None:
    assert over_at(5, (0, 4, True), last) == [False, last[0] >= 9]
