"""A benchmark's results: medians, speed-ups, intervals, verdicts. Format `atoll/summary` 1.

atoll.bench.analysis makes it from a results file; `atoll bench --json` and `atoll report --format
json` print it, and the renderers in atoll.report read nothing else. Every figure in it was measured
on the machine that it names, except those in `FillsSummary`, which are simulated. It compares no
times of an emulated CPU: they mean nothing.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from atoll.schema.base import Record
from atoll.schema.fills import Crossings, FillCounts, FillSources
from atoll.schema.plan import HugePages, Malloc, Policy
from atoll.schema.results import CellName, Fingerprint, ProcessSeen, QueryFailed, Scheduler


class Interval(Record):
    low: float
    high: float


class Measured(Record):
    """Seconds of one query (or of the whole pass) under one entrant, one value per block."""

    query: str  # 'q1', or 'pass' for the time in which a query ran
    median_s: float
    interval: Interval | None  # of the median; None below 5 blocks
    min_s: float
    max_s: float
    blocks: int
    runs: int  # in all blocks and streams
    p95_s: float | None = None  # of the runs; None if there are too few
    p99_s: float | None = None
    outlier_blocks: tuple[int, ...] = ()


class Speedup(Record):
    """How many times faster than the baseline, from paired blocks. Above 1 is faster."""

    # 'q1', 'geomean' or 'pass'; 'throughput' (queries per second of the whole pass) instead of
    # 'pass' if the baseline has another number of streams
    query: str
    value: float
    interval: Interval | None
    blocks: int  # pairs
    verdict: Literal["faster", "slower", "no significant difference", "cannot tell"]


class SpreadSummary(Record):
    """The number of chiplets over which Atoll's scheduler spread the workers, in measured
    passes."""

    chiplets: int = Field(ge=1)  # of a server's places; of the largest server if they differ
    lowest: int = Field(ge=1)
    highest: int = Field(ge=1)
    mean: float = Field(ge=1)  # over time and all servers
    changes: int = Field(ge=0)  # of all servers and blocks together


class WorkSummary(Record):
    """What the engine counted: means over the measured passes, and the largest peak of all.

    None: it does not count that.
    """

    run_s: float | None = Field(default=None, ge=0)  # threads in tasks
    gc_s: float | None = Field(default=None, ge=0)  # the part in which their JVM collected garbage
    shuffle_bytes: int | None = Field(default=None, ge=0)  # from tasks to tasks
    spilled_bytes: int | None = Field(default=None, ge=0)  # to disk
    read_bytes: int | None = Field(default=None, ge=0)  # of tables, from disk or the page cache
    peak_bytes: int | None = Field(default=None, ge=0)  # of one query
    peak_query: str = ""
    peak_source: str = ""  # whose figure it is


class PlacesSummary(Record):
    """Means over the watched passes of the figures of `Whereabouts`. None: unknown."""

    passes: int = Field(ge=1)
    threads: float
    elsewhere: float
    migrations: float | None
    local_pages: float | None
    local_resctrl: float | None
    read_bytes: float | None
    written_bytes: float | None


class ModeFills(Record):
    """What the simulated caches counted in one mode. Lines are of 64 bytes."""

    sources: FillSources  # lines
    crossings: Crossings
    written_bytes: int = Field(ge=0)  # back to any memory
    lines_per_1000_instructions: float | None = Field(ge=0)  # None: no instructions
    queue_share: float | None = Field(ge=0, le=1)  # of the stalls; None: there were none


class FillsSummary(Record):
    """Means over the measured passes in which the guest's simulated caches were counted. Nothing of
    it was measured on hardware (docs/simulated.md)."""

    source: Literal["simulated"] = "simulated"
    passes: int = Field(ge=1)
    simulated_s: float = Field(ge=0)
    user: ModeFills
    kernel: ModeFills  # too large by far: docs/simulated.md has the reason
    counts: FillCounts  # what the above follows from


class EntrantSummary(Record):
    label: str
    engine: str
    url: str  # of a cluster that was already running; otherwise empty
    # From the plan; None for a cluster that was already running.
    policy: Policy | None
    scheduler: Scheduler | None
    baseline: str | None
    instances: int | None
    threads: int | None
    heap_bytes: int | None
    shuffle_partitions: int | None
    malloc: Malloc | None = None
    thp: HugePages | None = None
    streams: int
    coincides_with: tuple[Policy, ...]
    cells: tuple[CellName, ...] = ()  # of the bench's grid: its own, then those that coincide
    blocks_done: int
    blocks_failed: int
    times: tuple[Measured, ...]  # the queries in order, then 'pass'; empty if no block finished
    # The same with 'geomean' first; empty for the baseline, and if the CPU was emulated.
    speedups: tuple[Speedup, ...]
    spread: SpreadSummary | None  # None: not under Atoll's scheduler, or no block finished
    work: WorkSummary | None = None  # None: the engine does not count
    places: PlacesSummary | None = None  # None: a cluster, or no block finished
    fills: FillsSummary | None = None  # None: no simulated caches, or not counted
    processes: tuple[ProcessSeen, ...] = ()  # of a cluster, at the last inspection


class OperatorChange(Record):
    """What became of the operators of one kind over the same tables in one query. Both times are
    of one execution, summed over threads; 0 is that of an operator that the plan lacks."""

    query: str
    operator: str  # by the engine's name: 'HASH_JOIN', or 'Merge Join → Hash Join'
    tables: tuple[str, ...]  # read by it or below it
    before_s: float = Field(ge=0)
    after_s: float = Field(ge=0)
    share: float = Field(ge=0, le=1)  # of all that changed in this direction


class PlanChange(Record):
    """Where the plan itself differs."""

    queries: tuple[str, ...]
    what: str  # 'join of orders, lineitem', 'exchanges', 'tasks'
    before: str  # 'HASH_JOIN inner, broadcast'; '–': not in that plan
    after: str


class Why(Record):
    """An entrant and its baseline, operator by operator, over all queries that both told of."""

    label: str
    baseline: str
    queries: int
    before_s: float = Field(ge=0)  # all operators
    after_s: float = Field(ge=0)
    # Those that hold most of the gain (if all operators together became faster) or loss, the
    # largest first.
    operators: tuple[OperatorChange, ...]
    plan: tuple[PlanChange, ...]


class AxisPoint(Record):
    """One value of an axis."""

    value: str
    label: str  # its entrant, which may have other names too
    x: float | None  # the number that the value stands for: cores, instances, streams
    # Of the geometric mean, over the reference; on the axis 'streams' of the throughput. None for
    # the reference.
    speedup: Speedup | None
    # Only on the axis 'streams': of the whole pass, and how long a query takes (None: too few).
    queries_per_s: float | None = None
    p50_s: float | None = None
    p90_s: float | None = None
    p99_s: float | None = None


class AxisSeries(Record):
    """The values of an axis, with equal values on all other axes."""

    engine: str
    others: dict[str, str]  # axis -> value; an axis that is absent has its default
    reference: str  # a label: the default of the axis if it is measured; of cores the fewest
    points: tuple[AxisPoint, ...]


class AxisSummary(Record):
    name: str
    series: tuple[AxisSeries, ...]


class Step(Record):
    """One change: from an entrant to the next of its chain."""

    before: str  # labels
    after: str
    changes: str  # what differs between the two
    speedup: Speedup  # of the geometric means, over the blocks that the whole chain finished
    # Its logarithm over the sum of all steps' logarithms. Shares add up to 1, and a share is
    # negative if its step slows down. None: see `Decomposition.why_no_shares`.
    share: float | None
    share_interval: Interval | None


class Decomposition(Record):
    """What each step from the whole machine to bound instances contributes."""

    engine: str
    whole: Speedup  # the last entrant over the first, in the same blocks
    steps: tuple[Step, ...]
    why_no_shares: str = ""  # empty if there are shares


class Caution(Record):
    """Something that a reader must know before trusting a figure."""

    code: str  # stable, listed in docs/bench.md
    message: str


class BenchSummary(Record):
    format: Literal["atoll/summary"] = "atoll/summary"
    version: Literal[1] = 1
    # Emulated: the CPU was, so the times mean nothing.
    basis: Literal["measured", "emulated", "emulated network"]
    run_id: str
    started_unix_s: float
    status: Literal["complete", "stopped", "unfinished"]
    reason: str
    suite: str
    suite_checksum: str = ""  # of the user's SQL
    scale_factor: float | None  # None: the data is the user's
    answers_known: bool = True  # False: answers were compared with the first one to their query
    queries: tuple[str, ...]  # those that the figures are over
    left_out: tuple[QueryFailed, ...] = ()  # the other queries of the run, and why
    blocks_asked: int | None  # None: as many as fitted into the time of the run
    blocks_done: int  # that every entrant finished
    blocks_failed: int  # that an entrant did not finish
    warmups: int  # warm-up passes before each measured pass
    answers: int  # that were checked, warm-ups included
    answers_differing: int  # from the right answer; if it is unknown, from the first answer
    confidence: float
    machine: str  # in one line
    machine_id: str
    command: str
    entrants: tuple[EntrantSummary, ...]
    axes: tuple[AxisSummary, ...] = ()  # that are varied
    why: tuple[Why, ...] = ()  # of entrants with a baseline, where the engine tells
    decompositions: tuple[Decomposition, ...] = ()
    notes: tuple[str, ...]
    warnings: tuple[Caution, ...]
    fingerprint: Fingerprint
