"""Decides when a figure is settled: its median, 95 % interval and disturbances. Pure.

The interval uses order statistics (the sign test; Conover, Practical Nonparametric Statistics
3.2), as in native/src/probe/samples.hpp. It assumes nothing about the distribution, which has a
long tail here. Below 6 samples there is no such interval; the figure then gets the full range and
is not settled. No sample is dropped or corrected: a figure that does not settle is marked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from atoll.schema.profile import Figure

SETTLE = 0.02  # half the interval over the median
MOST_SAMPLES = 400
# For an emulated CPU, whose figures mean nothing: enough to check every thread and page's place.
MOST_SAMPLES_EMULATED = 8
# A median holds as long as few of its samples were hit. One context switch hits one sample.
_DISTURBED_SHARE = 0.1
# Past this, the normal approximation of the binomial is off by less than a rank.
_EXACT_UP_TO = 100
_Z_95 = 1.959964


def figure(samples: Sequence[float], *, settle: float, disturbed: bool = False) -> Figure:
    """The figure of at least one sample."""
    ordered = sorted(samples)
    value = _median(ordered)
    ranks = median_ranks(len(ordered))
    low, high = (ordered[0], ordered[-1]) if ranks is None else (ordered[i] for i in ranks)
    narrow = value > 0 and (high - low) / 2 <= settle * value
    return Figure(
        value=value,
        low=low,
        high=high,
        samples=len(ordered),
        settled=ranks is not None and narrow and not disturbed,
    )


def disturbed(*, samples: int, involuntary: int, misplaced_threads: int, misplaced: int) -> bool:
    """Whether other activity may explain a figure of this many samples."""
    return misplaced_threads > 0 or misplaced > 0 or involuntary > samples * _DISTURBED_SHARE


@lru_cache(maxsize=4096)
def median_ranks(count: int) -> tuple[int, int] | None:
    """The ranks (from 0) of the two samples between which the median lies with at least 95 %
    probability; None below 6 samples."""
    if count > _EXACT_UP_TO:
        low = math.floor((count - _Z_95 * math.sqrt(count)) / 2) - 1
        return low, count - 1 - low
    low, tail = -1, 1
    # `tail` of 2**count outcomes leave at most low + 1 samples on one side of the median.
    while tail * 40 <= 1 << count:
        low += 1
        tail += math.comb(count, low + 1)
    return None if low < 0 else (low, count - 1 - low)


def _median(ordered: Sequence[float]) -> float:
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2
