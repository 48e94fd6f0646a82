"""What a bench measured: one JSON object a line, appended as it comes. Format `atoll/results` 1.

The first line is a `RunHeader`. Then, block by block and in the order of `schedule`, each
entrant leaves its warm-up and measured `QueryTime`s, a `DeploymentUp`, a `VerifyResult`, and at
its end a `PassDone`, and before it a `SchedulerRan` for each server whose tasks Atoll's scheduler
ran, and a `QueryWork` for each query that the engine told of; or, wherever it broke off, a
`BlockFailed`. A cluster that ran already (`Entrant.url`) leaves no `VerifyResult`, but a
`ClusterLook` before and after its measured pass. A `RunEnd` closes a finished run. A last line
that is cut off (the bench was killed while it wrote) is ignored when the file is read, so that
`--resume` can go on. A block is whole when every entrant has a `PassDone` or a `BlockFailed` in it.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from atoll.schema.base import Record
from atoll.schema.environment import Environment
from atoll.schema.machine import Machine
from atoll.schema.plan import Plan
from atoll.schema.seats import Policy as SchedulerPolicy
from atoll.schema.seats import SpreadChange, ThreadSeat

Block = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]

# Who runs an engine's tasks: 'atoll' is Atoll's runtime inside the engine's process; any other is a
# scheduler of the engine's own, under the name that the engine gives it.
Scheduler = Annotated[str, Field(min_length=1)]


class Fingerprint(Environment):
    """The environment, the engines and the data that the figures hold for."""

    engine_versions: dict[str, str]
    java_version: str
    data_checksum: str


class Entrant(Record):
    """One line-up of the bench: an engine under a policy and a scheduler, or a cluster."""

    label: str = Field(min_length=1)  # 'ENGINE/wic', 'ENGINE/wim/atoll', 'ENGINE/host:8080'
    engine: str
    plan: Plan | None = None  # None: a cluster that ran already
    url: str = ""  # where that answers, without password and options
    scheduler: Scheduler | None = None  # None: the engine has only its own
    # Concurrent query streams, equal for all entrants of an engine: 1 for a distributed engine;
    # for single-server engines as many as the most servers that one of its entrants has, and for
    # engines that run a query on one thread as many as there are threads. Stream i goes to server
    # i modulo the number of servers.
    streams: int = Field(default=1, ge=1)
    # The entrant that its speed-ups are over: under Atoll's scheduler the same plan under the
    # engine's own, where that is measured too; else WIM of the same engine. None for that itself.
    # Of clusters the first one.
    baseline: str | None = None

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        if (self.plan is None) != bool(self.url):
            raise ValueError(f"{self.label} needs either a plan or a URL")
        return self


class RunHeader(Record):
    FORMAT: ClassVar[str] = "atoll/results"
    VERSION: ClassVar[int] = 1

    record: Literal["header"] = "header"
    format: Literal["atoll/results"] = "atoll/results"
    version: Literal[1] = 1
    run_id: str
    started_unix_s: float
    suite: str  # its name; of the user's SQL the folder's
    suite_checksum: str = ""  # of the user's SQL: over the names and texts of all its queries
    scale_factor: float | None = Field(gt=0)  # None: the data is the user's
    queries: tuple[str, ...] = Field(min_length=1)
    blocks_asked: int | None = Field(default=None, ge=1)  # None: as many as fit a time box
    query_limit_s: float = Field(gt=0)  # a query past it fails its deployment's block
    machine: Machine
    machine_id: str
    entrants: tuple[Entrant, ...] = Field(min_length=1)
    # What is decomposed, per engine: labels from the whole machine to bound instances, each a step
    # from the one before (atoll.bench.decompose).
    chains: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()  # what was left out or added, and why: policies that coincide
    fingerprint: Fingerprint
    command: str


class DeploymentUp(Record):
    """Written when a deployment is about to run its measured pass."""

    record: Literal["up"] = "up"
    block: Block
    label: str
    position: int  # its turn in the block, 0-based; the order is reversed from block to block
    up_s: float  # from the first process to a server that answers with all instances in
    # Share of the data's pages that were still in the page cache after dropping them; None: the
    # system would not say.
    cached_share: Share | None
    idle_share: Share  # share of the machine's CPU time that was idle just before the pass


class QueryTime(Record):
    record: Literal["query"] = "query"
    block: Block
    label: str
    phase: Literal["warm-up", "measured"]
    stream: int = 0
    query: str  # 'q1'
    seconds: Seconds  # at the engine's own client, from sending the SQL to holding all rows
    engine_seconds: float  # inside the SQL host, around execution and fetch
    rows: int
    # 'changed': no right answer is known, and it is another than the query's first in this run.
    answer: Literal["ok", "wrong", "changed"]
    detail: str = ""  # the differing rows
    digest: str = ""  # of the user's SQL: over the number of rows and all values but floats


class PassDone(Record):
    """The measured pass of a deployment came to its end with all its instances alive."""

    record: Literal["pass"] = "pass"
    block: Block
    label: str
    seconds: Seconds  # wall time of the whole pass, all streams


class SchedulerState(Record):
    """What Atoll's scheduler did in one server, as that tells it."""

    policy: SchedulerPolicy
    chiplets: int = Field(ge=1)  # of the places that the server's workers may sit on
    seconds: Seconds  # from the opening of the database until it was asked
    threads: tuple[ThreadSeat, ...]  # where each was when it was asked
    spreads: tuple[SpreadChange, ...] = Field(min_length=1)  # the start, then every change


class SchedulerRan(Record):
    """Atoll's scheduler in one server of a deployment, asked right after the measured pass."""

    record: Literal["scheduler"] = "scheduler"
    block: Block
    label: str
    slot: int = Field(ge=0)
    state: SchedulerState


class EngineWork(Record):
    """What an engine counted of one query, summed over the tasks of all its instances."""

    tasks: int = Field(ge=1)
    run_s: float = Field(ge=0)  # threads in tasks: two tasks side by side for 1 s are 2 s
    gc_s: float = Field(ge=0)  # of these, while their JVM collected garbage
    shuffle_bytes: int = Field(ge=0)  # written
    spilled_bytes: int = Field(ge=0)  # to disk
    # The most that hash tables and sorts may have held at once, broadcast tables left out: every
    # task is taken to hold its own peak as long as it runs, so no less than was held.
    peak_bytes: int = Field(ge=0)


class QueryWork(Record):
    """Follows the measured pass, for each query of which the engine told."""

    record: Literal["work"] = "work"
    block: Block
    label: str
    stream: int = 0
    query: str
    work: EngineWork


class BlockFailed(Record):
    """A deployment of a block that did not come to its end; its times are not used."""

    record: Literal["failed"] = "failed"
    block: Block
    label: str
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
    process: str  # its name in its deployment, else its comm
    masks: dict[str, int]  # where its threads may run, a cpulist, and how many threads
    memory_policy: str  # in numa_maps' words; empty: not known
    bytes_by_node: dict[int, int] = Field(
        default_factory=dict
    )  # its resident memory; empty: not looked at
    drift: tuple[str, ...] = ()  # what is elsewhere than it was given, or than its plan says
    notes: tuple[str, ...] = ()


class ClusterLook(Record):
    """The processes of a cluster that ran already, those that are on this machine."""

    record: Literal["cluster"] = "cluster"
    block: Block
    label: str
    when: Literal["before", "after"]  # the measured pass; memory is looked at only after it
    processes: tuple[ProcessSeen, ...]
    unknown: str = ""  # why there are none, or what could not be looked at


class RunEnd(Record):
    record: Literal["end"] = "end"
    ended_unix_s: float
    status: Literal["complete", "stopped"]
    reason: str = ""


# A line after the header, told apart by its field `record`.
Line = Annotated[
    DeploymentUp
    | QueryTime
    | SchedulerRan
    | QueryWork
    | PassDone
    | BlockFailed
    | VerifyResult
    | ClusterLook
    | RunEnd,
    Field(discriminator="record"),
]
