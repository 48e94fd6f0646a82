"""High percentiles: ranks of measured times, and only of enough."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.stats.tails import percentile


@pytest.mark.parametrize(("percent", "least"), [(95, 20), (99, 100)])
def test_too_few_runs_have_no_percentile(percent: int, least: int) -> None:
    assert percentile([1.0] * (least - 1), percent) is None
    assert percentile([1.0] * least, percent) == 1.0
    assert percentile([], percent) is None


@given(st.lists(st.floats(1e-6, 1e6), min_size=20, max_size=300))
def test_it_is_a_time_that_was_measured_with_at_least_as_many_below(times: list[float]) -> None:
    found = percentile(times, 95)
    assert found in times
    assert sum(time <= found for time in times) >= 0.95 * len(times)
    assert found == np.quantile(times, 0.95, method="inverted_cdf")
