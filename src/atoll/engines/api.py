"""What an engine adapter is: one small module that declares traits and lays out processes.

An adapter is pure but for `locate`: given a plan it says which processes to start, with
which arguments, environment and configuration files, in which stages. `atoll.supervise`
starts them through atoll-exec, watches and ends them; nothing here does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from atoll.engines.explained import Reasons
from atoll.engines.userconfig.tree import UserTree
from atoll.host.api import Host
from atoll.schema.deployment import ProcessSpec
from atoll.schema.plan import EngineTraits, Plan
from atoll.schema.results import EngineWork, Scheduler, SchedulerState

# Told what is going on, and how much of it is done (0 to 1) where that is known.
Progress = Callable[[str, float | None], None]


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
    # Paths below the run folder, and what lies there: a content, a copy of a file, a link's target.
    files: Mapping[str, str] = field(default_factory=dict)
    copies: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    endpoints: tuple[str, ...] = ()  # a UNIX socket's path or a URL, one per logical server
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
    indexes: tuple[tuple[str, ...], ...] = ()  # beside the primary key; columns of each


@dataclass(frozen=True, slots=True)
class Data:
    """The tables of a suite at a scale factor."""

    name: str  # 'tpch-sf0.1'; may be part of a file's name
    checksum: str  # the same data has the same one anywhere
    tables: tuple[Table, ...]


@dataclass(frozen=True, slots=True)
class QueryResult:
    columns: tuple[Column, ...]
    rows: list[tuple[Any, ...]]  # int, float, str, bool, None, decimal.Decimal, datetime.date
    engine_seconds: float  # around execution and fetch, inside the process that ran it
    ticket: str = ""  # by which `CountingClient.work` knows the query


class Client(Protocol):
    """A connection to one logical server. Raises EngineFailed on a refused query or one past its
    limit (the query is then cancelled by ending the connection), ServerGone on a lost server."""

    def execute(self, sql: str, *, timeout_s: float) -> QueryResult: ...

    def instances(self, *, timeout_s: float) -> int:
        """How many worker instances answer to this server right now."""
        ...

    def close(self) -> None:
        """Also while another thread waits in `execute`: its query ends at the server too."""
        ...


@runtime_checkable
class ScheduledClient(Client, Protocol):
    """A client that can ask Atoll's scheduler, where that runs the server's tasks."""

    def scheduler(self, *, timeout_s: float) -> SchedulerState: ...


@runtime_checkable
class SettlingClient(Client, Protocol):
    """A client of an engine that may drop an instance again which it has just taken in."""

    settles_s: float  # how long the last count has to stand until it is known to last; 0: it is


@runtime_checkable
class CountingClient(Client, Protocol):
    """A client of an engine that counts what its queries take."""

    def work(self, *, timeout_s: float) -> Mapping[str, EngineWork]:
        """By ticket, of the queries since the last call; empty where the engine does not count."""
        ...


@runtime_checkable
class HostedClient(Client, Protocol):
    """A client of an engine whose own client is a call in the process that holds the session."""

    def ask(self, sql: str, *, timeout_s: float) -> Callable[[], QueryResult]:
        """As `execute`, but returns when that process holds all rows. What is returned brings
        them here; it is to be called before the next query, or not at all."""
        ...


@runtime_checkable
class ClusterClient(Client, Protocol):
    """A client of a cluster that knows where its nodes are."""

    def nodes(self, *, timeout_s: float) -> list[str]:
        """The URL of each node, that of the coordinator or the only server included."""
        ...


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

    def connect(self, endpoints: Sequence[str], *, timeout_s: float) -> list[Client]:
        """A client for each of `Layout.endpoints`, in their order; several may have the same."""
        ...

    def attach(self, table: Table) -> list[str]:
        """Statements that make the table's Parquet file readable under its name; none where the
        engine holds it already."""
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


@runtime_checkable
class LoadingEngine(Engine, Protocol):
    """An engine that keeps tables in files of its own. They are loaded once into Atoll's cache,
    and every instance begins with a copy."""

    def load(
        self, data: Data, installation: Installation, *, host: Host, progress: Progress
    ) -> None:
        """Load with statistics and indexes what the cache does not hold yet; whole or not at all.
        Raises EngineFailed, and DownloadFailed on a full disk."""
        ...

    def holding(self, data: Data) -> Engine:
        """The engine whose instances begin with these tables, which `load` has loaded."""
        ...


@runtime_checkable
class ConfigurableEngine(Engine, Protocol):
    """An engine that can be started with the user's own configuration."""

    def on(self, tree: UserTree) -> Engine:
        """The engine with that configuration, changed only where placement needs it.

        `layout` puts a file of the tree at ANY/FOLDERS/ and its path below the root, where
        `atoll.engines.userconfig.changes` finds it.

        Raises UsageError naming the file and the line that cannot be read.
        """
        ...


@runtime_checkable
class RemoteEngine(Engine, Protocol):
    """An engine whose running clusters can be asked."""

    def reach(self, url: str, *, timeout_s: float) -> Client:
        """A client of the cluster at `url`. Raises UsageError for what is no such URL, EngineFailed
        where nobody answers; neither ever tells the URL's password."""
        ...


@runtime_checkable
class StandingEngine(Engine, Protocol):
    """An engine that, for Atoll's own deployments, makes nothing durable."""

    def standing(self) -> Engine:
        """The engine as one that outlives Atoll (`atoll render`): its data is durable."""
        ...
