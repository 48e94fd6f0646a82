"""Estimates of atoll.stats as records of the summary. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from atoll.schema.summary import Interval, Speedup
from atoll.stats import paired
from atoll.stats.paired import Estimate

GEOMEAN = "geomean"
THROUGHPUT = "throughput"


def speedup_of(query: str, estimate: Estimate) -> Speedup:
    return Speedup(
        query=query,
        value=estimate.value,
        interval=interval_of(estimate.interval),
        blocks=estimate.blocks,
        verdict=estimate.verdict.value,
    )


def judged(speedups: Iterable[Speedup]) -> Speedup | None:
    """What decides whether an entrant is faster: the throughput if it has other streams than its
    baseline, since queries that run at once take longer each; otherwise the geometric mean."""
    by_query = {one.query: one for one in speedups}
    return by_query.get(THROUGHPUT, by_query.get(GEOMEAN))


def interval_of(found: paired.Interval | None) -> Interval | None:
    return None if found is None else Interval(low=found.low, high=found.high)
