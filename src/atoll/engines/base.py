"""What an engine adapter is: one small module that declares traits and lays out processes.

An adapter is pure but for `locate`: given a plan it says which processes to start, with
which arguments, environment and configuration files, in which stages. `atoll.supervise`
starts them through atoll-exec, watches and ends them; nothing here does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from atoll.host.api import Host
from atoll.schema.deployment import ProcessSpec
from atoll.schema.plan import EngineTraits, Plan
from atoll.schema.results import Scheduler, SchedulerState


@dataclass(frozen=True, slots=True)
class Installation:
    """An engine as found on this machine."""

    version: str
    home: str  # where it lives; adapters know their own layout below it
    java: str = ""  # the java executable, for JVM engines
    java_version: str = ""
    cache: str = ""  # a folder of Atoll's cache for what the engine makes once and keeps


@dataclass(frozen=True, slots=True)
class Layout:
    """A plan made concrete for one engine."""

    processes: tuple[ProcessSpec, ...]
    files: Mapping[str, str] = field(default_factory=dict)  # path below the run folder -> content
    sockets: tuple[str, ...] = ()  # UNIX sockets of SQL hosts, one per logical server


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str  # the engine's own type name, lower case: 'decimal(15,2)', 'date', 'bigint', 'double'


@dataclass(frozen=True, slots=True)
class QueryResult:
    columns: tuple[Column, ...]
    rows: list[tuple[Any, ...]]  # int, float, str, bool, None, decimal.Decimal, datetime.date
    engine_seconds: float  # around execution and fetch, inside the process that ran it


class Client(Protocol):
    """A connection to one logical server. Raises EngineFailed on a refused query, a lost server
    or a query past its limit (the query is then cancelled by ending the connection)."""

    def execute(self, sql: str, *, timeout_s: float) -> QueryResult: ...

    def instances(self, *, timeout_s: float) -> int:
        """How many worker instances answer to this server right now."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class ScheduledClient(Client, Protocol):
    """A client that can ask Atoll's scheduler, where that runs the server's tasks."""

    def scheduler(self, *, timeout_s: float) -> SchedulerState: ...


class Engine(Protocol):
    @property
    def traits(self) -> EngineTraits: ...

    def locate(self, host: Host) -> Installation:
        """Find the engine (and its JDK). Raises EngineFailed saying what to install."""
        ...

    def ports(self, plan: Plan) -> int:
        """How many loopback TCP ports `layout` will want."""
        ...

    def layout(
        self,
        plan: Plan,
        installation: Installation,
        *,
        run_dir: str,
        ports: Sequence[int],
        scratch_dir: str | None = None,
    ) -> Layout:
        """The processes of the plan. Pure, but for fresh secrets.

        `run_dir` is a short absolute path, made already, closed to others: sockets and
        configuration. `scratch_dir`, made already, is for spilled and shuffled data: a folder on
        a disk, since `run_dir` may lie in memory (XDG_RUNTIME_DIR); None: below `run_dir`.
        """
        ...

    def connect(self, sockets: Sequence[str], *, timeout_s: float) -> list[Client]:
        """A client per logical server, in the order of `Layout.sockets`."""
        ...

    def attach_sql(self, table: str, path: str) -> list[str]:
        """Statements that make the Parquet file(s) at `path` readable as `table`.

        Raises UsageError where the engine has no way to read them.
        """
        ...


@runtime_checkable
class ScheduledEngine(Engine, Protocol):
    """An engine whose tasks more than one scheduler can run. Its clients are `ScheduledClient`s."""

    @property
    def schedulers(self) -> tuple[Scheduler, ...]:
        """Its own first."""
        ...

    def under(self, scheduler: Scheduler) -> Engine:
        """The engine with that one of `schedulers`."""
        ...


def under(engine: Engine, scheduler: Scheduler | None) -> Engine:
    """The engine with that scheduler; None: it has but its own."""
    if scheduler is None or not isinstance(engine, ScheduledEngine):
        return engine
    return engine.under(scheduler)
