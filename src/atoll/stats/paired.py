"""Speed-ups from paired blocks, with percentile-bootstrap intervals.

A block measures every entrant once, close together in time, so that a slow phase of the machine
slows all of them. The block is therefore the unit: within a block the baseline's time is divided
by the entrant's, and only these ratios are summarised. The estimate is the median of the ratios;
the interval comes from resampling whole blocks (Efron and Tibshirani, An Introduction to the
Bootstrap, 1993, chapters 8 and 13).

The median is used because with only a few blocks the percentile interval of a mean is far too
narrow (about 83 % instead of 95 %, for 5 blocks), while that of a median is not (at least 93.75 %
for 5), and because one disturbed block cannot move it. tests/unit/stats/test_paired.py simulates
both claims.

Below MIN_BLOCKS there is no interval: 4 pairs cannot support one at 95 %. The random numbers
are seeded, so the same file always gives the same figures.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

MIN_BLOCKS = 5
CONFIDENCE = 0.95
RESAMPLES = 10_000
SEED = 20_250_117


@dataclass(frozen=True, slots=True)
class Interval:
    low: float
    high: float

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high


class Verdict(StrEnum):
    FASTER = "faster"
    SLOWER = "slower"
    NO_DIFFERENCE = "no significant difference"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A median over blocks; `interval` is None below MIN_BLOCKS."""

    value: float
    interval: Interval | None
    blocks: int

    @property
    def verdict(self) -> Verdict:
        """The verdict on a speed-up: its interval against 1, never the estimate alone."""
        if self.interval is None:
            return Verdict.CANNOT_TELL
        if self.interval.holds(1.0):
            return Verdict.NO_DIFFERENCE
        return Verdict.FASTER if self.interval.low > 1.0 else Verdict.SLOWER


def median_estimate(values: Sequence[float]) -> Estimate:
    """The median of positive values, one per block, with its bootstrap interval.

    Works on logarithms, so that the interval of 1/x is the mirror image of that of x.
    Raises ValueError on no values, or on one that is not positive and finite.
    """
    if not values or not all(math.isfinite(value) and value > 0 for value in values):
        raise ValueError("the median over blocks needs positive, finite values")
    logs = np.log(np.asarray(values, dtype=np.float64))
    interval = _bootstrap(logs) if len(values) >= MIN_BLOCKS else None
    return Estimate(float(np.exp(np.median(logs))), interval, len(values))


def speedup(baseline: Mapping[int, float], entrant: Mapping[int, float]) -> Estimate | None:
    """How many times faster the entrant is. Both arguments map a block to seconds.

    Blocks that only one of them has, because the other failed, are dropped. None if no pair is
    left.
    """
    common = sorted(baseline.keys() & entrant.keys())
    if not common:
        return None
    return median_estimate([baseline[block] / entrant[block] for block in common])


def geometric_mean(values: Sequence[float]) -> float:
    """The mean for ratios (Fleming and Wallace, CACM 1986). Raises ValueError if empty."""
    if not values:
        raise ValueError("the geometric mean needs at least one value")
    return math.exp(math.fsum(math.log(value) for value in values) / len(values))


def geometric_means(by_query: Mapping[str, Mapping[int, float]]) -> dict[int, float]:
    """The geometric mean over the queries for each block, without blocks that miss a query.

    The ratio of two such means is the geometric mean of the ratios, so that `speedup` of two
    results is the geometric-mean speed-up.
    """
    blocks = [frozenset(times) for times in by_query.values()]
    whole = frozenset.intersection(*blocks) if blocks else frozenset()
    return {
        block: geometric_mean([times[block] for times in by_query.values()])
        for block in sorted(whole)
    }


def _bootstrap(logs: NDArray[np.float64]) -> Interval:
    rng = np.random.default_rng(SEED)
    picks = rng.integers(0, len(logs), size=(RESAMPLES, len(logs)))
    medians = np.median(logs[picks], axis=1)
    tail = (1.0 - CONFIDENCE) / 2.0
    low, high = np.quantile(medians, [tail, 1.0 - tail])
    return Interval(float(np.exp(low)), float(np.exp(high)))
