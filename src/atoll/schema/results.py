"""What a bench measured: one JSON object a line, appended as it comes. Format `atoll/results` 1.

The first line is a `RunHeader`. Then, block by block and in the order of `schedule`, each
entrant leaves its warm-up and measured `QueryTime`s, a `DeploymentUp`, a `VerifyResult`, and at
its end a `PassDone`, and before it a `SchedulerRan` for each server whose tasks Atoll's scheduler
ran; or, wherever it broke off, a `BlockFailed`. A `RunEnd` closes a finished run. A last line that
is cut off (the bench was killed while it wrote) is ignored when the file is read, so that
`--resume` can go on. A block is whole when every entrant has a `PassDone` or a `BlockFailed` in it.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from atoll.schema.base import Record
from atoll.schema.duckdb_profile import Policy as SchedulerPolicy
from atoll.schema.duckdb_profile import SpreadChange, ThreadSeat
from atoll.schema.environment import Environment
from atoll.schema.machine import Machine
from atoll.schema.plan import Plan

Block = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]

# Who runs an engine's tasks: DuckDB itself, or Atoll's runtime inside its process (atoll.duckdb).
Scheduler = Literal["duckdb", "atoll"]


class Fingerprint(Environment):
    """The environment, the engines and the data that the figures hold for."""

    engine_versions: dict[str, str]
    java_version: str
    data_checksum: str


class Entrant(Record):
    """One line-up of the bench: an engine under a policy and a scheduler."""

    label: str = Field(min_length=1)  # 'spark/wic', 'duckdb/wim/atoll'
    engine: str
    plan: Plan
    scheduler: Scheduler | None = None  # None: the engine has none but its own
    # Concurrent query streams, equal for all entrants of an engine: 1 for a distributed engine;
    # for single-server engines as many as the most servers that one of its entrants has. Stream
    # i goes to server i modulo the number of servers.
    streams: int = Field(default=1, ge=1)
    # The entrant that its speed-ups are over: under Atoll's scheduler the same plan under the
    # engine's own, where that is measured too; else WIM of the same engine. None for that itself.
    baseline: str | None = None


class RunHeader(Record):
    FORMAT: ClassVar[str] = "atoll/results"
    VERSION: ClassVar[int] = 1

    record: Literal["header"] = "header"
    format: Literal["atoll/results"] = "atoll/results"
    version: Literal[1] = 1
    run_id: str
    started_unix_s: float
    suite: str
    scale_factor: float = Field(gt=0)
    queries: tuple[str, ...] = Field(min_length=1)
    blocks_asked: int | None = Field(default=None, ge=1)  # None: as many as fit a time box
    query_limit_s: float = Field(gt=0)  # a query past it fails its deployment's block
    machine: Machine
    machine_id: str
    entrants: tuple[Entrant, ...] = Field(min_length=1)
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
    seconds: Seconds  # at the client, from sending the SQL to holding all rows
    engine_seconds: float  # inside the SQL host, around execution and fetch
    rows: int
    answer: Literal["ok", "wrong"]
    detail: str = ""  # the differing rows of a wrong answer


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


class RunEnd(Record):
    record: Literal["end"] = "end"
    ended_unix_s: float
    status: Literal["complete", "stopped"]
    reason: str = ""


# A line after the header, told apart by its field `record`.
Line = Annotated[
    DeploymentUp | QueryTime | SchedulerRan | PassDone | BlockFailed | VerifyResult | RunEnd,
    Field(discriminator="record"),
]
