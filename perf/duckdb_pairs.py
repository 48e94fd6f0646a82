"""Who runs what when in `make perf-duckdb`, and what its figures come to. Pure.

Both sides do the same work one right after the other, which makes a pair; only ratios within a pair
are summarised, so that a slow minute of the machine slows both. The block is the unit: over a
block's queries the geometric mean, over blocks the median with its interval (`atoll.stats`).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from atoll.stats.paired import geometric_mean, median_estimate
from perf.harness import Interval

Measure = Literal["cpu_s", "wall_s"]
SEED = 20_250_117


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one query, or of all streams together."""

    wall_s: float  # until everything is fetched
    cpu_s: float  # of the whole process
    switches: int  # of context, of the whole process


@dataclass(frozen=True, slots=True)
class Pair:
    """What the same work took on both sides."""

    block: int
    work: str
    ours_first: bool
    ours: Figures
    peer: Figures

    def ratio(self, measure: Measure) -> float:
        return float(getattr(self.ours, measure) / getattr(self.peer, measure))


def turns(block: int, queries: Sequence[str]) -> list[tuple[str, bool]]:
    """The queries of a block in a random order, and whether we go first. That alternates from block
    to block for each query, and holds for half of a block's queries."""
    plan = [(query, (block + place) % 2 == 0) for place, query in enumerate(queries)]
    random.Random(SEED + block).shuffle(plan)
    return plan


def permutations(number: int, streams: int, queries: Sequence[str]) -> list[list[str]]:
    """What each stream of a round runs: all queries, each stream in an order of its own."""
    chance = random.Random(SEED - number)
    return [chance.sample(queries, len(queries)) for _ in range(streams)]


def over_pairs(pairs: Iterable[Pair], measure: Measure) -> Interval:
    """Ours over the peer's, of one piece of work."""
    return _interval([pair.ratio(measure) for pair in pairs])


def over_blocks(pairs: Sequence[Pair], measure: Measure) -> Interval:
    """Ours over the peer's, the geometric mean over all work of a block."""
    ratios: dict[int, list[float]] = {}
    for pair in pairs:
        ratios.setdefault(pair.block, []).append(pair.ratio(measure))
    return _interval([geometric_mean(block) for block in ratios.values()])


def _interval(ratios: Sequence[float]) -> Interval:
    estimate = median_estimate(ratios)
    if estimate.interval is None:
        raise ValueError(f"{len(ratios)} blocks are too few for an interval")
    return Interval(estimate.value, estimate.interval.low, estimate.interval.high)
