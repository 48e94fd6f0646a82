"""The contribution of each step of a chain to the whole, from paired blocks. Pure.

Every block has the time of every entrant of the chain. Within a block a step is the logarithm of
(time before / time after), so that steps add up to the whole, where ratios would multiply. As in
atoll.stats.paired, a step is estimated by the median over the blocks. Its share is its median over
the sum of all steps' medians. Shares add up to 1, and a share is negative if its step slows down.
The intervals come from resampling whole blocks, with all steps of a block together, since the steps
of a block are not independent: an entrant that was slow by chance makes the step to it small and
the step from it large.

A share of no difference is meaningless. So there are shares only if the whole is a difference: if
neither the interval of last over first nor that of the product of the steps contains 1. (The median
of a sum is not the sum of the medians, so the two are not the same.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from atoll.stats.paired import (
    CONFIDENCE,
    MIN_BLOCKS,
    RESAMPLES,
    SEED,
    Estimate,
    Interval,
    Verdict,
    median_estimate,
)


@dataclass(frozen=True, slots=True)
class Share:
    value: float
    interval: Interval


@dataclass(frozen=True, slots=True)
class Decomposed:
    """`shares`, one per step, is empty if shares would be meaningless; `why` then gives the
    reason."""

    whole: Estimate
    steps: tuple[Estimate, ...]
    shares: tuple[Share, ...]
    why: str


def decompose(chain: Sequence[Mapping[int, float]]) -> Decomposed | None:
    """`chain` maps block to seconds for each entrant, from the first to the last.

    Only blocks that all entrants finished count. None if there are none. Raises ValueError for a
    chain without a step, or a time that is not positive and finite.
    """
    if len(chain) < 2:
        raise ValueError("a chain needs at least two entrants")
    blocks = sorted(set.intersection(*(set(times) for times in chain)))
    if not blocks:
        return None
    times = np.array([[times[block] for block in blocks] for times in chain], dtype=np.float64)
    whole = median_estimate(list(times[0] / times[-1]))
    steps = tuple(median_estimate(list(step)) for step in times[:-1] / times[1:])
    if whole.verdict is Verdict.CANNOT_TELL:
        return Decomposed(whole, steps, (), f"fewer than {MIN_BLOCKS} blocks prove nothing")
    logs = np.log(times[:-1] / times[1:])
    rng = np.random.default_rng(SEED)
    picks = rng.integers(0, len(blocks), size=(RESAMPLES, len(blocks)))
    medians = np.median(logs[:, picks], axis=2)  # step x resample
    sums = medians.sum(axis=0)
    tail = (1.0 - CONFIDENCE) / 2.0
    low, high = np.quantile(sums, [tail, 1.0 - tail])
    if whole.verdict is Verdict.NO_DIFFERENCE or low <= 0.0 <= high:
        return Decomposed(
            whole, steps, (), "the whole shows no significant difference, so nothing to share"
        )
    # A resample whose steps cancel has no shares; few do, since the sum's interval excludes 0.
    kept = sums != 0.0
    middle = np.median(logs, axis=1)
    lows, highs = np.quantile(medians[:, kept] / sums[kept], [tail, 1.0 - tail], axis=1)
    shares = tuple(
        Share(float(value), Interval(float(low), float(high)))
        for value, low, high in zip(middle / middle.sum(), lows, highs, strict=True)
    )
    return Decomposed(whole, steps, shares, "")
