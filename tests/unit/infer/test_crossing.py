"""The size from which the spread threads stay faster."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.infer.crossing import crossing_bytes
from atoll.schema.profile import SharingPoint
from tests.parts.faults import fails
from tests.parts.profiles import figure

MIB = 1 << 20
SIZES = [int(size) for size in np.geomspace(38, 4096 * MIB, 40)]


def rates(size: int, local: float, distributed: float, spread: float = 0.0) -> SharingPoint:
    return SharingPoint(
        vector_bytes=size,
        local_gbs=figure(local, spread),
        distributed_gbs=figure(distributed, spread),
    )


def points(*ratios: float) -> list[SharingPoint]:
    return [rates(size, 10.0, 10.0 * ratio) for size, ratio in zip(SIZES, ratios, strict=False)]


def test_the_papers_shape() -> None:
    """0.6 up to the L3, then up to 2.5, then alike: 'for good' allows the tie at the end."""
    ratios = [0.6] * 28 + [2.5] * 6 + [1.01] * 6
    found = crossing_bytes(points(*ratios))
    assert found is not None and SIZES[27] < found < SIZES[28]


@pytest.mark.parametrize("ratio", [0.6, 1.0, 2.0])
def test_never_or_always(ratio: float) -> None:
    assert crossing_bytes(points(*[ratio] * 20)) is None


def test_not_for_good() -> None:
    assert crossing_bytes(points(*[0.6] * 10, *[2.0] * 10, *[0.7] * 10)) is None


def test_again_and_then_for_good() -> None:
    found = crossing_bytes(points(*[0.6] * 5, *[2.0] * 5, *[0.7] * 5, *[2.0] * 5))
    assert found is not None and SIZES[14] < found < SIZES[15]


def test_a_lone_contradiction_does_not_count() -> None:
    ratios = [0.6] * 10 + [2.0] * 10
    ratios[15] = 0.5
    found = crossing_bytes(points(*ratios))
    assert found is not None and SIZES[9] < found < SIZES[10]


def test_nor_does_one_at_an_end() -> None:
    found = crossing_bytes(points(*[0.6] * 10, *[2.0] * 10, 0.8))
    assert found is not None and SIZES[9] < found < SIZES[10]
    assert crossing_bytes(points(0.8, *[2.0] * 10)) is None, "the spread ones always win"
    assert crossing_bytes(points(*[0.6] * 10, 2.0)) is None, "once is not for good"


def test_a_difference_within_the_intervals_does_not_count() -> None:
    wide = [
        rates(size, 10.0, 7.0 if index < 10 else 14.0, 0.3) for index, size in enumerate(SIZES[:20])
    ]
    assert crossing_bytes(wide) is None


def test_a_tie_between_the_two_is_crossed_where_the_ratio_is_one() -> None:
    found = crossing_bytes(points(*[0.6] * 5, 0.97, 0.99, 1.02, *[1.5] * 5))
    assert found is not None and SIZES[6] <= found <= SIZES[7]


def test_sizes_rise() -> None:
    with fails(ValueError):
        crossing_bytes(points(0.5, 2.0)[::-1])


@given(st.lists(st.floats(0, 10), max_size=40))
def test_a_crossing_lies_within_the_sizes(ratios: list[float]) -> None:
    found = crossing_bytes(points(*ratios))
    assert found is None or SIZES[0] <= found <= SIZES[len(ratios) - 1]


@given(st.integers(3, 35), st.floats(0.2, 0.9), st.floats(1.1, 5))
def test_one_step_is_found_where_it_is(step: int, before: float, after: float) -> None:
    found = crossing_bytes(points(*[before] * step, *[after] * (40 - step)))
    assert found is not None and SIZES[step - 1] <= found <= SIZES[step]
