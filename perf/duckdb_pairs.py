"""The schedule of `make perf-duckdb`, and the statistics of its figures. Pure.

Both sides do the same work one right after the other, which makes a pair; only ratios within a pair
are summarised, so that a slow minute of the machine slows both. Pairs of one life, which the same
two processes ran, are alike: where a process's memory lies makes it faster for as long as it lives.
So the life is the unit, however many pairs it has: within a life the geometric mean, over lives the
median with its interval (`atoll.stats`).
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

    life: int  # of both processes
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


def over_lives(pairs: Iterable[Pair], measure: Measure) -> Interval:
    """Ours over the peer's. Raises ValueError for fewer than five lives."""
    ratios: dict[int, list[float]] = {}
    for pair in pairs:
        ratios.setdefault(pair.life, []).append(pair.ratio(measure))
    estimate = median_estimate([geometric_mean(life) for life in ratios.values()])
    if estimate.interval is None:
        raise ValueError(f"{len(ratios)} lives are too few for an interval")
    return Interval(estimate.value, estimate.interval.low, estimate.interval.high)
