"""Rates and percentiles are of the measured time alone."""

from __future__ import annotations

import numpy as np

from atoll.engines.transactions import Log
from atoll.oltp.latencies import measured


def log(ended_s: list[float], latency_ms: list[float], types: list[int]) -> Log:
    return Log(np.array(types, np.int64), np.array(ended_s), np.array(latency_ms), 0)


def test_the_warm_up_and_what_ended_late_do_not_count() -> None:
    found = log([10.0, 11.5, 12.0, 13.9, 14.0], [9.0, 9.0, 1.0, 3.0, 9.0], [0, 0, 0, 1, 1])
    rate, latencies = measured(found, ("a", "b"), warmup_s=2, measured_s=2)
    assert rate == 1.0
    assert [(one.type, one.count, one.p50_ms) for one in latencies] == [
        ("a", 1, 1.0),
        ("b", 1, 3.0),
    ]


def test_percentiles_are_by_nearest_rank_and_p99_needs_100() -> None:
    many = [float(one) for one in range(1, 101)]
    _, (one,) = measured(log([1.0] * 100, many, [0] * 100), ("a",), warmup_s=0, measured_s=1)
    assert (one.p50_ms, one.p90_ms, one.p99_ms) == (50, 90, 99)
    _, (few,) = measured(log([1.0] * 99, many[:99], [0] * 99), ("a",), warmup_s=0, measured_s=1)
    assert few.p99_ms is None


def test_no_transaction_at_all() -> None:
    rate, (one,) = measured(log([], [], []), ("a",), warmup_s=1, measured_s=1)
    assert rate == 0 and one.count == 0 and one.p50_ms is None
