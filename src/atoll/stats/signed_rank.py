"""A change estimated from paired blocks, with an interval of any stated error. Pure.

Each block gives one number, the logarithm of a ratio. If both members of a pair are alike, their
order is chance, so the number is symmetric about 0; if one is faster by a factor, about the
logarithm of that factor. The estimate is the median of all means of two (Hodges and Lehmann), the
interval inverts Wilcoxon's signed-rank test. Its error is exact for every number of blocks, where
a bootstrap's is only close to its nominal one for many; so it can be divided among comparisons.
(Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, 2014, sections 3.1 to 3.3.)

The test in tests/unit/stats simulates that error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from atoll.stats.paired import Interval


@dataclass(frozen=True, slots=True)
class Shift:
    """Where the values lie; `interval` is None if they are too few for the error."""

    value: float
    interval: Interval | None


def shift(values: Sequence[float], error: float) -> Shift:
    """The centre of symmetric values. `error`: the chance that the interval misses it.

    O(n^2 log n) for n values. Raises ValueError on no values, or on one that is not finite.
    """
    if not values or not all(math.isfinite(value) for value in values):
        raise ValueError("a shift needs finite values")
    data = np.asarray(values, dtype=np.float64)
    rows, columns = np.triu_indices(len(data))
    means = np.sort((data[rows] + data[columns]) / 2)
    rank = _rank(len(data), error)
    interval = Interval(float(means[rank - 1]), float(means[-rank])) if rank else None
    return Shift(float(np.median(means)), interval)


def fewest(error: float) -> int:
    """The fewest values that have an interval of this error."""
    return math.ceil(1 - math.log2(error))


def _rank(count: int, error: float) -> int:
    """Which mean of two bounds the interval, counted from 1 at both ends; 0: none does.

    It is the largest k with P(T < k) <= error / 2, where T is the signed-rank statistic.
    """
    below = np.cumsum(_chances(count))
    return int(np.searchsorted(below, error / 2, side="right"))


def _chances(count: int) -> NDArray[np.float64]:
    """P(T = k): each rank from 1 to `count` is in the sum or not, with even chances."""
    chances = np.zeros(count * (count + 1) // 2 + 1)
    chances[0] = 1.0
    for rank in range(1, count + 1):
        chances[rank:] += chances[:-rank].copy()
        chances /= 2
    return chances
