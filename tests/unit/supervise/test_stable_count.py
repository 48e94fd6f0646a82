"""A count of instances is relied upon once it has been whole for as long as the engine says."""

from __future__ import annotations

import pytest

from atoll.supervise.stable_count import StableCount

Look = tuple[float, float, int]  # asked, answered, how many of 2 are in


def over_at(settles_s: float, *looks: Look) -> list[bool]:
    stable = StableCount(2)
    return [
        stable.take(count, settles_s, asked_s=asked, answered_s=answered)
        for asked, answered, count in looks
    ]


def test_one_look_is_enough_where_nothing_settles() -> None:
    assert over_at(0, (0, 9, 1), (9, 9, 2)) == [False, True]


def test_a_whole_count_has_to_last() -> None:
    assert over_at(5, (0, 0, 2), (4, 4, 2), (5, 5, 2)) == [False, False, True]


def test_one_that_drops_begins_anew() -> None:
    looks = ((0, 0, 2), (4, 4, 1), (5, 5, 2), (9, 9, 2), (10, 10, 2))
    assert over_at(5, *looks) == [False, False, False, False, True]


def test_once_it_is_known_to_last_nothing_more_is_waited_for() -> None:
    stable = StableCount(2)
    assert not stable.take(2, 5, asked_s=0, answered_s=0)
    assert stable.take(2, 0, asked_s=1, answered_s=1)


@pytest.mark.parametrize(("last", "is_over"), [((8.9, 12.0, 2), False), ((9.0, 9.5, 2), True)])
def test_the_time_that_looks_take_is_not_counted(last: Look, is_over: bool) -> None:
    assert over_at(5, (0, 4, 2), last) == [False, is_over]
