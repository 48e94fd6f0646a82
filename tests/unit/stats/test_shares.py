"""Shares of steps: they add up, and do not depend on the machine's drift."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.stats.paired import Verdict, speedup
from atoll.stats.shares import decompose
from tests.parts.faults import fails

SECONDS = st.floats(0.01, 1000)


def chains(steps: int, blocks: int) -> st.SearchStrategy[list[list[float]]]:
    return st.lists(
        st.lists(SECONDS, min_size=blocks, max_size=blocks), min_size=steps + 1, max_size=steps + 1
    )


def by_block(chain: list[list[float]]) -> list[dict[int, float]]:
    return [dict(enumerate(times)) for times in chain]


def exact(ratios: list[float], blocks: int = 6) -> list[dict[int, float]]:
    """A chain whose every step is the same in each block, over a machine that slows down."""
    times = [1.0]
    for ratio in ratios:
        times.append(times[-1] / ratio)
    return [{block: time * (1 + 0.3 * block) for block in range(blocks)} for time in times]


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 4).flatmap(lambda steps: chains(steps, 6)))
def test_shares_add_up_to_one_wherever_there_are_any(chain: list[list[float]]) -> None:
    found = decompose(by_block(chain))
    assert found is not None
    assert bool(found.shares) != bool(found.why)
    if found.shares:
        total = sum(share.value for share in found.shares)
        largest = max(abs(share.value) for share in found.shares)
        assert math.isclose(total, 1.0, abs_tol=1e-9 * max(1.0, largest))
        assert found.whole.interval is not None and not found.whole.interval.holds(1.0)


@settings(max_examples=40, deadline=None)
@given(chains(3, 6), st.lists(st.floats(0.1, 10), min_size=6, max_size=6))
def test_what_slows_a_whole_block_changes_nothing(
    chain: list[list[float]], slow: list[float]
) -> None:
    plain = decompose(by_block(chain))
    slowed = decompose(
        by_block([[s * t for s, t in zip(slow, times, strict=True)] for times in chain])
    )
    assert plain is not None and slowed is not None
    for one, other in zip(plain.steps, slowed.steps, strict=True):
        assert one.value == pytest.approx(other.value, rel=1e-9)
        assert one.interval is not None and other.interval is not None
        assert one.interval.low == pytest.approx(other.interval.low, rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(chains(2, 7))
def test_a_step_is_the_paired_speed_up_of_its_two_entrants(chain: list[list[float]]) -> None:
    times = by_block(chain)
    found = decompose(times)
    assert found is not None
    assert found.steps == (speedup(times[0], times[1]), speedup(times[1], times[2]))
    assert found.whole == speedup(times[0], times[2])


def test_known_steps_have_their_shares_of_the_logarithm() -> None:
    found = decompose(exact([2.0, 1.0, 4.0]))
    assert found is not None
    assert [share.value for share in found.shares] == pytest.approx([1 / 3, 0, 2 / 3])
    assert [step.value for step in found.steps] == pytest.approx([2, 1, 4])
    assert found.whole.value == pytest.approx(8)


def test_a_step_that_slows_down_has_a_negative_share() -> None:
    found = decompose(exact([0.5, 8.0]))
    assert found is not None
    assert [share.value for share in found.shares] == pytest.approx([-0.5, 1.5])


def test_one_step_is_the_whole() -> None:
    found = decompose(exact([1.5]))
    assert found is not None
    (share,) = found.shares
    assert (share.value, share.interval.low, share.interval.high) == pytest.approx((1, 1, 1))


def test_a_whole_that_is_no_difference_has_no_shares() -> None:
    """Two steps that cancel: each is real, and their shares of nothing would be huge."""
    found = decompose(exact([2.0, 0.5]))
    assert found is not None
    assert found.shares == ()
    assert "no significant difference" in found.why
    assert [step.verdict for step in found.steps] == [Verdict.FASTER, Verdict.SLOWER]


def test_below_five_blocks_there_are_steps_but_no_shares() -> None:
    found = decompose(exact([2.0, 2.0], blocks=4))
    assert found is not None
    assert found.shares == ()
    assert "5 blocks" in found.why
    assert [step.interval for step in found.steps] == [None, None]


def test_only_blocks_that_all_finished_count() -> None:
    chain = exact([2.0, 3.0], blocks=7)
    del chain[1][4]
    found = decompose(chain)
    assert found is not None
    assert found.whole.blocks == 6
    assert {step.blocks for step in found.steps} == {6}
    assert decompose([{0: 1.0}, {1: 1.0}]) is None


def test_a_chain_needs_a_step() -> None:
    with fails(ValueError):
        decompose([{0: 1.0}])


@pytest.mark.parametrize("blocks", [5, 10])
def test_intervals_of_shares_hold_the_truth_about_as_often_as_they_say(blocks: int) -> None:
    """Noise of 5 % on every time, steps of 1.5, 1.1 and 1.3."""
    rng = np.random.default_rng(7)
    logs = np.log([1.5, 1.1, 1.3])
    truth = logs / logs.sum()
    held = np.zeros(3)
    rounds = 100
    for _ in range(rounds):
        noisy = [
            {block: time * math.exp(rng.normal(0, 0.05)) for block, time in times.items()}
            for times in exact([1.5, 1.1, 1.3], blocks)
        ]
        found = decompose(noisy)
        assert found is not None and found.shares
        held += [
            share.interval.holds(true) for share, true in zip(found.shares, truth, strict=True)
        ]
    assert all(held / rounds >= 0.9), held / rounds
