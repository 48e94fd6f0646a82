"""The protocols of an engine and its clients, and the data that they exchange.

An engine turns a plan into a layout: the processes to start, with their arguments, environment and
configuration files, in stages. That is pure, except for `locate`. `atoll.supervise` starts the
processes through atoll-exec, watches them and ends them; an engine does none of this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from atoll.engines.explained import Reasons
from atoll.engines.userconfig.tree import UserTree
from atoll.host.api import Host
from atoll.host.programs import ProgramFiles
from atoll.schema.deployment import Access, ProcessSpec
from atoll.schema.operator_graph import OperatorGraph
from atoll.schema.operators import QueryProfile
from atoll.schema.plan import EngineTraits, Plan
from atoll.schema.results import EngineWork, Scheduler, SchedulerState

# Called with what is going on, and with the share of it that is done (0 to 1) if that is known.
Progress = Callable[[str, float | None], None]


@dataclass(frozen=True, slots=True)
class Installation:
    """An engine as found on this machine."""

    version: str
    home: str  # the engine's folder; the engine knows what lies below it
    java: str = ""  # the java program, for JVM engines
    java_version: str = ""
    cache: str = ""  # a folder of Atoll's cache for data that the engine creates once and keeps


@dataclass(frozen=True, slots=True)
class Layout:
    """A plan made concrete for one engine."""

    processes: tuple[ProcessSpec, ...]
    # By path below the run folder: the content of a file, a file to copy, the target of a link.
    files: Mapping[str, str] = field(default_factory=dict)
    copies: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    endpoints: tuple[str, ...] = ()  # a UNIX socket's path or a URL, one per logical server
    # How people reach each of `endpoints`; empty: by Atoll's client (`atoll.engines.sql.shell`).
    access: tuple[Access, ...] = ()
    # Why the settings are as they are, for `atoll render --explain`.
    reasons: Reasons = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str  # the engine's own type name, lower case: 'decimal(15,2)', 'date', 'bigint', 'double'


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a suite: a Parquet file, alone in its folder."""

    name: str
    path: str
    columns: tuple[Column, ...]  # types of standard SQL: 'bigint', 'decimal(15,2)', 'varchar'
    primary_key: tuple[str, ...] = ()
    indexes: tuple[tuple[str, ...], ...] = ()  # the columns of each further index


@dataclass(frozen=True, slots=True)
class Data:
    """The tables of a suite at a scale factor."""

    name: str  # 'tpch-sf0.1'; may be part of a file's name
    checksum: str  # equal for equal data, on any machine
    tables: tuple[Table, ...]


@dataclass(frozen=True, slots=True)
class QueryResult:
    columns: tuple[Column, ...]
    rows: list[tuple[Any, ...]]  # int, float, str, bool, None, decimal.Decimal, datetime.date
    engine_seconds: float  # execution and fetch, measured in the process that ran the query
    ticket: str = ""  # identifies the query for `CountingClient.work`
    # When `engine_seconds` began, by CLOCK_MONOTONIC of this machine, if the engine's own client is
    # a call in that process: then they are the time of the query, and the way there is not.
    began_s: float | None = None


class Client(Protocol):
    """A connection to one logical server."""

    def execute(self, sql: str, *, timeout_s: float) -> QueryResult:
        """The result of a query. Raises EngineFailed if the server refuses the query, or if it
        takes longer than `timeout_s` (then the query is cancelled), ServerGone if the connection
        is lost."""
        ...

    def instances(self, *, timeout_s: float) -> int:
        """The number of worker instances that have joined this server. Raises as `execute`."""
        ...

    def close(self) -> None:
        """Close the connection. May be called while another thread waits in `execute`; then the
        query ends at the server too."""
        ...


@runtime_checkable
class ScheduledClient(Client, Protocol):
    """A client of a server whose tasks Atoll's scheduler may run."""

    def scheduler(self, *, timeout_s: float) -> SchedulerState: ...


@runtime_checkable
class SettlingClient(Client, Protocol):
    """A client of an engine that may drop an instance shortly after it has joined."""

    settles_s: float  # seconds for which the last count must stay the same; 0: it is final


@runtime_checkable
class CountingClient(Client, Protocol):
    """A client of an engine that counts the resources of its queries."""

    def work(self, *, timeout_s: float) -> Mapping[str, EngineWork]:
        """The counts of the queries since the last call, by ticket; empty if there are none."""
        ...


@runtime_checkable
class ProfilingClient(Client, Protocol):
    """A client of an engine that tells how long the operators of a query took."""

    def profile(self, sql: str, *, timeout_s: float) -> QueryProfile | None:
        """Runs the query once more, and tells how the server did it; None if it cannot tell.
        Raises as `execute`."""
        ...


@runtime_checkable
class ClusterClient(Client, Protocol):
    """A client of a cluster that knows the addresses of its nodes."""

    def nodes(self, *, timeout_s: float) -> list[str]:
        """The URL of every node, including the coordinator or the only server."""
        ...


class Engine(Protocol):
    """An engine that Atoll can run. It may also have `facts` (`atoll.engines.facts`)."""

    @property
    def traits(self) -> EngineTraits: ...

    def locate(self, host: Host) -> Installation:
        """Find the engine (and its JDK). Raises EngineFailed with what to install, ClientMissing
        if only the engine's Python client is missing, NotPermitted if this user may not run it."""
        ...

    def ports(self, plan: Plan) -> int:
        """The number of TCP ports on 127.0.0.1 that `layout` needs. Clients connect at the first
        ones, if at any: one per logical server."""
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
        """The processes of the plan. Pure, except for fresh secrets.

        Both folders exist. `run_dir` is for sockets and configuration: a short absolute path,
        closed to other users. `scratch_dir` is for spilled and shuffled data: a folder on a disk,
        because `run_dir` may lie in memory (XDG_RUNTIME_DIR). If it is None, use `run_dir`.
        """
        ...

    def connect(self, endpoints: Sequence[str], *, timeout_s: float) -> list[Client]:
        """A client for each of `Layout.endpoints`, in their order; endpoints may repeat."""
        ...

    def attach(self, table: Table) -> list[str]:
        """Statements that make the table's Parquet file readable under its name; none if the
        engine has loaded the table."""
        ...


@runtime_checkable
class ScheduledEngine(Engine, Protocol):
    """An engine with several schedulers for its tasks. Its clients are `ScheduledClient`s."""

    @property
    def schedulers(self) -> tuple[Scheduler, ...]:
        """Their names, the engine's own scheduler first."""
        ...

    def under(self, scheduler: Scheduler) -> Engine:
        """The engine with one of `schedulers`."""
        ...


@runtime_checkable
class LoadingEngine(Engine, Protocol):
    """An engine that keeps tables in files of its own. Atoll loads them once into its cache, and
    every instance starts with a copy."""

    def load(
        self, data: Data, installation: Installation, *, host: Host, progress: Progress
    ) -> None:
        """Load what the cache lacks, with statistics and indexes, completely or not at all.
        Raises EngineFailed, and DownloadFailed on a full disk."""
        ...

    def holding(self, data: Data) -> Engine:
        """The engine whose instances start with these tables, which `load` has loaded."""
        ...


@runtime_checkable
class ConfigurableEngine(Engine, Protocol):
    """An engine that can start with the user's own configuration."""

    def on(self, tree: UserTree) -> Engine:
        """The engine with that configuration, changed only where placement needs it.

        `layout` puts a file of the tree at ANY/FOLDERS/ and its path below the root, where
        `atoll.engines.userconfig.changes` finds it.

        Raises UsageError naming the file and the line that cannot be read.
        """
        ...


@runtime_checkable
class RemoteEngine(Engine, Protocol):
    """An engine whose running clusters Atoll can query."""

    def reach(self, url: str, *, timeout_s: float) -> Client:
        """A client of the cluster at `url`. Raises UsageError for a URL of another kind, and
        EngineFailed if no server answers; neither message contains the URL's password."""
        ...


@runtime_checkable
class PortedEngine(Engine, Protocol):
    """An engine whose clients connect to UNIX sockets, unless the user chooses a port."""

    def with_ports(self) -> Engine:
        """The engine whose servers also listen at a port each, with a password."""
        ...


@runtime_checkable
class SpanningEngine(Engine, Protocol):
    """An engine whose instances can be on several machines (`Plan.cluster`)."""

    @property
    def secret(self) -> str:
        """That all machines of the cluster know; empty: none was given."""
        ...

    def spanning(self, secret: str) -> Engine:
        """The engine with that secret. Its `layout` has no endpoint on a machine that only
        joins."""
        ...


@runtime_checkable
class AllocatingEngine(Engine, Protocol):
    """An engine whose files show whether a preloaded malloc would serve it."""

    def malloc_files(self, host: Host) -> ProgramFiles:
        """Raises EngineFailed if it is not installed."""
        ...


@runtime_checkable
class ProfiledEngine(Engine, Protocol):
    """An engine that writes how it executed a query, operator by operator."""

    @property
    def document(self) -> str:
        """What it is called: 'the JSON of EXPLAIN ANALYZE'."""
        ...

    def graph(self, document: bytes) -> OperatorGraph:
        """The operators of one execution, at the rate of one execution after another. Raises
        ValueError of one line for another document."""
        ...


@runtime_checkable
class UnattendedEngine(Engine, Protocol):
    """An engine that makes nothing durable in Atoll's own deployments."""

    def unattended(self) -> Engine:
        """The engine for deployments that run without Atoll (`atoll render`): data is durable."""
        ...
