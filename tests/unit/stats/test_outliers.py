"""Outliers: far values are flagged on both sides, ordinary noise is not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.stats.outliers import outliers


@pytest.mark.parametrize(
    ("values", "flagged"),
    [
        ([], ()),
        ([3.0], ()),
        ([9000.0, 1.0], ()),
        ([1.0, 1.1, 0.9], ()),
        ([1.0, 1.02, 0.99, 1.01, 7.0], (4,)),
        ([0.001, 1.02, 0.99, 1.01, 1.0], (0,)),
        ([5.0, 5.0, 5.0, 5.0, 6.0], (4,)),  # no spread: what differs stands out
        ([5.0, 5.0, 5.0], ()),
    ],
)
def test_flags(values: list[float], flagged: tuple[int, ...]) -> None:
    assert outliers(values) == flagged


def test_normal_noise_is_left_alone() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        assert outliers(list(rng.normal(10.0, 1.0, 30))) == ()


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=20), st.sampled_from([2, 4, 0.5]))
def test_scale_does_not_matter(values: list[int], scale: float) -> None:
    assert outliers(values) == outliers([scale * value for value in values])
