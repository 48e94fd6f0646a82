"""The stated error holds at every look together, and clear cases are found."""

from __future__ import annotations

import pytest

from atoll.stats.failing import _capital, fails_more


def first_failures(others: int, error: float) -> int:
    return next(own for own in range(1000) if fails_more(own, others, error))


def test_failures_of_one_alone_count_soon_and_beside_the_others_later() -> None:
    assert [first_failures(others, 0.1) for others in (0, 1, 5)] == [4, 10, 18]
    assert [first_failures(others, 0.05) for others in (0, 1)] == [5, 11]
    assert not any(fails_more(own, own, 0.5) for own in range(100))


@pytest.mark.parametrize("own", [0, 3, 7])
@pytest.mark.parametrize("others", [0, 2, 9])
def test_a_bettor_against_a_fair_coin_wins_nothing_on_average(own: int, others: int) -> None:
    after = (_capital(own + 1, others) + _capital(own, others + 1)) / 2
    assert after == pytest.approx(_capital(own, others))


@pytest.mark.parametrize("error", [0.05, 0.1])
def test_two_that_fail_alike_are_told_apart_no_more_often_than_stated(error: float) -> None:
    """Exactly, over 300 blocks with a look after each: no simulation."""
    alive, crossed = {0: 1.0}, 0.0  # own failures -> chance
    for blocks in range(1, 301):
        found: dict[int, float] = {}
        for own, chance in alive.items():
            for more in (0, 1):
                found[own + more] = found.get(own + more, 0.0) + chance / 2
        over = {own for own in found if fails_more(own, blocks - own, error)}
        crossed += sum(found.pop(own) for own in over)
        alive = found
    assert error / 10 < crossed <= error
