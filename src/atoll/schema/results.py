"""A benchmark's measurements: one JSON object per line, appended as they come.

Format `atoll/results` 1. The first line is a `RunHeader`. Then, block by block and in the order of
`schedule`, each entrant writes its warm-up and measured `QueryTime`s, a `DeploymentUp`, a
`VerifyResult`, and at its end a `PassDone`. Before the `PassDone` come a `PassPlaces`, a
`PassFills` where caches are simulated, a `SchedulerRan` for each server whose tasks ran on Atoll's
scheduler, and a `QueryWork` for each query that the engine reported. After its first `PassDone`, a
`QueryProfiled` follows for each query. If the entrant fails, it writes a `BlockFailed` instead. If
only a query fails, it writes a `QueryFailed` after that pass, and from then on no entrant runs this
query. A cluster that was already running (`Entrant.url`) writes no `VerifyResult` but a
`ClusterLook` before and after its measured pass. A `RunEnd` closes a finished run. A last line that
is cut off (the benchmark was killed while writing) is ignored when the file is read, so that
`--resume` can continue. A block is whole when every entrant has a `PassDone` or a `BlockFailed` in
it.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from atoll.schema.base import Record
from atoll.schema.environment import Environment
from atoll.schema.fills import FillCounts
from atoll.schema.machine import Machine
from atoll.schema.operators import QueryProfile
from atoll.schema.plan import Plan
from atoll.schema.seats import Policy as SchedulerPolicy
from atoll.schema.seats import SpreadChange, ThreadSeat
from atoll.schema.whereabouts import Whereabouts

Block = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]

# What runs an engine's tasks: 'atoll' is Atoll's runtime inside the engine's process; any other
# name is one of the engine's own schedulers.
Scheduler = Annotated[str, Field(min_length=1)]


class Fingerprint(Environment):
    """The environment, the engines and the data of the figures."""

    engine_versions: dict[str, str]
    java_version: str
    data_checksum: str
    emulated: bool = False  # an emulated CPU: the times mean nothing
    # What timed the queries. 'bench', also of a file without this field: where the engine's client
    # is a call in another process, some 0.4 ms on the way there and back were part of a time.
    clock: Literal["client", "bench"] = "bench"


class CellName(Record):
    """A cell of the bench's grid: what it is called, and its value on each axis."""

    label: str
    values: dict[str, str] = Field(default_factory=dict)  # an axis that is absent has its default


class AxisValues(Record):
    """An axis of the bench's grid that is varied, and its values in the order of the user."""

    name: str  # 'memory', 'knob:swappiness'
    values: tuple[str, ...]


class Entrant(Record):
    """One candidate of the benchmark: an engine under a policy and a scheduler, or a cluster."""

    label: str = Field(min_length=1)  # 'ENGINE/wic', 'ENGINE/wim/atoll', 'ENGINE/host:8080'
    engine: str
    plan: Plan | None = None  # None: a cluster that was already running
    url: str = ""  # its address, without password and options
    scheduler: Scheduler | None = None  # None: the engine only has its own
    # Concurrent query streams, equal for all entrants of an engine: 1 for a distributed engine;
    # for single-server engines as many as the most servers that one of its entrants has, and for
    # engines that run a query on one thread as many as there are threads. Stream i goes to server
    # i modulo the number of servers.
    streams: int = Field(default=1, ge=1)
    # The entrant that is the baseline of its speed-ups: under Atoll's scheduler the same plan under
    # the engine's own scheduler, if that is measured too; otherwise WIM of the same engine. None
    # for the baseline itself. Of clusters the first one.
    baseline: str | None = None
    # Its own cell of the grid first, then those that coincide with it on this machine. Empty for a
    # step of a decomposition and for a cluster.
    cells: tuple[CellName, ...] = ()
    # What the knobs of the grid are set to while it runs; those of `atoll knobs`.
    knobs: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        if (self.plan is None) != bool(self.url):
            raise ValueError(f"{self.label} needs either a plan or a URL")
        return self


class RunHeader(Record):
    record: Literal["header"] = "header"
    format: Literal["atoll/results"] = "atoll/results"
    version: Literal[1] = 1
    run_id: str
    started_unix_s: float
    suite: str  # its name; for the user's SQL the folder's name
    suite_checksum: str = ""  # for the user's SQL: over the names and texts of all its queries
    scale_factor: float | None = Field(gt=0)  # None: the data is the user's
    answers_known: bool = True  # False: the first answer to a query is what others must equal
    queries: tuple[str, ...] = Field(min_length=1)
    blocks_asked: int | None = Field(ge=1)  # None: as many as fit into the time of the run
    warmups: int = Field(default=1, ge=0)  # warm-up passes before each measured pass
    query_limit_s: float = Field(gt=0)  # a query that exceeds it is cancelled and fails
    machine: Machine
    machine_id: str
    entrants: tuple[Entrant, ...] = Field(min_length=1)
    # The decomposition of each engine: labels from the whole machine to bound instances, each a
    # step from the one before (atoll.bench.decompose).
    chains: tuple[tuple[str, ...], ...] = ()
    axes: tuple[AxisValues, ...] = ()  # those that are varied
    # Of virtual machines: what their NICs' rates were multiplied with. None: there are none.
    rates_scaled: float | None = Field(default=None, gt=0)
    notes: tuple[str, ...] = ()  # what was left out or added, and why: policies that coincide
    fingerprint: Fingerprint
    command: str


class DeploymentUp(Record):
    """Written when a deployment is about to run its measured pass."""

    record: Literal["up"] = "up"
    block: Block
    label: str
    position: int  # its turn in the block, 0-based; the order is reversed from block to block
    up_s: float  # from the first process to a server that answers with all instances
    # Share of the data's pages that were still in the page cache after dropping them; None: the
    # system did not report it.
    cached_share: Share | None
    idle_share: Share  # share of the machine's CPU time that was idle just before the pass


class QueryTime(Record):
    record: Literal["query"] = "query"
    block: Block
    label: str
    phase: Literal["warm-up", "measured"]
    stream: int = 0
    query: str  # 'q1'
    seconds: Seconds  # by the header's clock, from sending the SQL to holding all rows
    engine_seconds: float  # in the process that ran the query; execution and fetch
    rows: int
    # 'changed': the right answer is unknown, and this one differs from the first one of the run.
    answer: Literal["ok", "wrong", "changed"]
    detail: str = ""  # the differing rows
    digest: str = ""  # for the user's SQL: over the number of rows and all values except floats


class PassDone(Record):
    """The measured pass of a deployment ended with all its instances alive."""

    record: Literal["pass"] = "pass"
    block: Block
    label: str
    seconds: Seconds  # in which at least one of its queries ran


class SchedulerState(Record):
    """What Atoll's scheduler did in one server, by its own report."""

    policy: SchedulerPolicy
    chiplets: int = Field(ge=1)  # of the places available to the server's workers
    seconds: Seconds  # from the opening of the database to the report
    threads: tuple[ThreadSeat, ...]  # where each was at the report
    spreads: tuple[SpreadChange, ...] = Field(min_length=1)  # the start, then every change


class SchedulerRan(Record):
    """Atoll's scheduler in one server of a deployment, read right after the measured pass."""

    record: Literal["scheduler"] = "scheduler"
    block: Block
    label: str
    slot: int = Field(ge=0)
    state: SchedulerState


class EngineWork(Record):
    """What an engine counted of one query, over all its instances. None: it does not count that."""

    tasks: int | None = Field(default=None, ge=1)
    run_s: float | None = Field(default=None, ge=0)  # thread time: two tasks for 1 s are 2 s
    gc_s: float | None = Field(default=None, ge=0)  # the part in which their JVM collected garbage
    shuffle_bytes: int | None = Field(default=None, ge=0)  # from tasks to tasks
    spilled_bytes: int | None = Field(default=None, ge=0)  # to disk
    read_bytes: int | None = Field(default=None, ge=0)  # of tables, from disk or the page cache
    peak_bytes: int | None = Field(default=None, ge=0)  # memory at one time
    # Whose figure the peak is, in the engine's own words; docs/bench.md says what each covers.
    peak_source: str = ""


class QueryWork(Record):
    """Follows the measured pass, once for each query that the engine reported."""

    record: Literal["work"] = "work"
    block: Block
    label: str
    stream: int = 0
    query: str
    work: EngineWork


class PassPlaces(Record):
    """Where the threads and pages of a deployment were in its measured pass."""

    record: Literal["places"] = "places"
    block: Block
    label: str
    places: Whereabouts


class PassFills(Record):
    """What the simulated caches of a guest counted in the measured pass, of all that ran."""

    record: Literal["fills"] = "fills"
    block: Block
    label: str
    fills: FillCounts | None
    fault: str = ""  # why there are none, or that counting could not be ended


class QueryProfiled(Record):
    """Follows an entrant's first finished pass, once for each query: how a server ran it once more,
    alone. Only from engines that tell."""

    record: Literal["profile"] = "profile"
    block: Block
    label: str
    query: str
    profile: QueryProfile | None
    unknown: str = ""  # why there is none


class BlockFailed(Record):
    """A deployment of a block that did not finish; its times are not used."""

    record: Literal["failed"] = "failed"
    block: Block
    label: str
    error: str


class QueryFailed(Record):
    """A query without an answer, while its deployment lived on: the server refused it, or it took
    longer than the limit and was cancelled. No entrant runs it in later passes."""

    record: Literal["query-failed"] = "query-failed"
    block: Block
    label: str
    phase: Literal["warm-up", "measured"]
    stream: int = 0
    query: str
    error: str


class VerifyResult(Record):
    record: Literal["verify"] = "verify"
    block: Block
    label: str
    threads: int
    drifted: int
    detail: str = ""


class ProcessSeen(Record):
    """A process of a cluster, as `atoll inspect` judges it."""

    pid: int
    process: str  # its name in its deployment, otherwise its comm
    masks: dict[str, int]  # cpulists where its threads may run, with the number of threads
    memory_policy: str  # as in numa_maps; empty: unknown
    bytes_by_node: dict[int, int] = Field(
        default_factory=dict
    )  # its resident memory; empty: not examined
    drift: tuple[str, ...] = ()  # what is not where it was started, or not where its plan put it
    notes: tuple[str, ...] = ()


class ClusterLook(Record):
    """The processes of a cluster that was already running, as far as they are on this machine."""

    record: Literal["cluster"] = "cluster"
    block: Block
    label: str
    when: Literal["before", "after"]  # the measured pass; memory is examined only after it
    processes: tuple[ProcessSeen, ...]
    unknown: str = ""  # why there are none, or what could not be examined


class RunEnd(Record):
    record: Literal["end"] = "end"
    ended_unix_s: float
    status: Literal["complete", "stopped"]
    reason: str = ""


# A line after the header; the field `record` distinguishes its type.
Line = Annotated[
    DeploymentUp
    | QueryTime
    | SchedulerRan
    | QueryWork
    | PassDone
    | PassPlaces
    | PassFills
    | QueryProfiled
    | BlockFailed
    | QueryFailed
    | VerifyResult
    | ClusterLook
    | RunEnd,
    Field(discriminator="record"),
]
