"""What the driver's log says of the measured time. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from atoll.engines.transactions import Log
from atoll.schema.oltp import Latency

_LEAST_FOR_P99 = 100


def measured(
    log: Log, types: Sequence[str], *, warmup_s: float, measured_s: float
) -> tuple[float, tuple[Latency, ...]]:
    """Commits a second, and the latencies by type, of the transactions that ended in the measured
    time. It begins `warmup_s` after the first transaction ended."""
    if not len(log.ended_s):
        return 0.0, tuple(_latency(name, log.latency_ms) for name in types)
    begin = float(log.ended_s.min()) + warmup_s
    inside = (log.ended_s >= begin) & (log.ended_s < begin + measured_s)
    return float(inside.sum()) / measured_s, tuple(
        _latency(name, log.latency_ms[inside & (log.types == number)])
        for number, name in enumerate(types)
    )


def _latency(name: str, times_ms: NDArray[np.float64]) -> Latency:
    return Latency(
        type=name,
        count=len(times_ms),
        p50_ms=_percentile(times_ms, 50),
        p90_ms=_percentile(times_ms, 90),
        p99_ms=_percentile(times_ms, 99) if len(times_ms) >= _LEAST_FOR_P99 else None,
    )


def _percentile(times_ms: NDArray[np.float64], percent: int) -> float | None:
    """By nearest rank, as `atoll.stats.tails`, for millions of times."""
    if not len(times_ms):
        return None
    rank = math.ceil(percent * len(times_ms) / 100) - 1
    return float(np.partition(times_ms, rank)[rank])
