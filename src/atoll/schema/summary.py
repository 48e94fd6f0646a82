"""What a bench comes to: medians, speed-ups, intervals, verdicts. Format `atoll/summary` 1.

Made by atoll.bench.analysis from a results file, printed by `atoll bench --json` and
`atoll report --format json`, and the only thing that the renderers in atoll.report read.
Every figure in it was measured on the machine that it names; nothing is predicted.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from atoll.schema.base import Record
from atoll.schema.plan import Policy
from atoll.schema.results import Fingerprint, Scheduler


class Interval(Record):
    low: float
    high: float


class Measured(Record):
    """Seconds of one query (or of the whole pass), one value a block, under one entrant."""

    query: str  # 'q1', or 'pass' for the wall time of the whole pass
    median_s: float
    interval: Interval | None  # of the median; None below 5 blocks
    min_s: float
    max_s: float
    blocks: int
    outlier_blocks: tuple[int, ...] = ()


class Speedup(Record):
    """How many times faster than the baseline, from paired blocks. Above 1 is faster."""

    query: str  # 'q1', 'geomean' or 'pass'
    value: float
    interval: Interval | None
    blocks: int  # pairs
    verdict: Literal["faster", "slower", "no significant difference", "too few blocks to tell"]


class SpreadSummary(Record):
    """Over how many chiplets Atoll's scheduler spread the workers, in the measured passes."""

    chiplets: int = Field(ge=1)  # of a server's places; of the largest where servers differ
    lowest: int = Field(ge=1)
    highest: int = Field(ge=1)
    mean: float = Field(ge=1)  # over time and all servers
    changes: int = Field(ge=0)  # of all servers and blocks together


class EntrantSummary(Record):
    label: str
    engine: str
    policy: Policy
    scheduler: Scheduler | None
    baseline: str | None
    instances: int
    threads: int
    heap_bytes: int
    shuffle_partitions: int
    streams: int
    coincides_with: tuple[Policy, ...]
    blocks_done: int
    blocks_failed: int
    times: tuple[Measured, ...]  # the queries in order, then 'pass'; empty if no block was done
    speedups: tuple[Speedup, ...]  # likewise, 'geomean' first; empty for the baseline
    spread: SpreadSummary | None  # None: not under Atoll's scheduler, or no block was done


class Caution(Record):
    """Something that a reader must know before believing a figure."""

    code: str  # stable, listed in docs/bench.md
    message: str


class BenchSummary(Record):
    FORMAT: ClassVar[str] = "atoll/summary"
    VERSION: ClassVar[int] = 1

    format: Literal["atoll/summary"] = "atoll/summary"
    version: Literal[1] = 1
    basis: Literal["measured"] = "measured"
    run_id: str
    started_unix_s: float
    status: Literal["complete", "stopped", "unfinished"]
    reason: str
    suite: str
    scale_factor: float
    queries: tuple[str, ...]
    blocks_asked: int | None
    blocks_done: int  # whole blocks
    confidence: float
    machine: str  # in one line
    machine_id: str
    command: str
    entrants: tuple[EntrantSummary, ...]
    notes: tuple[str, ...]
    warnings: tuple[Caution, ...]
    fingerprint: Fingerprint
