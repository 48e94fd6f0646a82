"""Estimates of atoll.stats as records of the summary. Pure."""

from __future__ import annotations

from atoll.schema.summary import Interval, Speedup
from atoll.stats import paired
from atoll.stats.paired import Estimate

GEOMEAN = "geomean"


def speedup_of(query: str, estimate: Estimate) -> Speedup:
    return Speedup(
        query=query,
        value=estimate.value,
        interval=interval_of(estimate.interval),
        blocks=estimate.blocks,
        verdict=estimate.verdict.value,
    )


def interval_of(found: paired.Interval | None) -> Interval | None:
    return None if found is None else Interval(low=found.low, high=found.high)
