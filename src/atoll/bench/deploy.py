"""Deployments for the runner: launches an engine, attaches tables, opens connections."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from atoll.engines.api import (
    Client,
    CountingClient,
    Data,
    Engine,
    ProfilingClient,
    ScheduledClient,
)
from atoll.engines.calls import attaching, connected, holding, under
from atoll.engines.userconfig.blame import naming_users_files
from atoll.engines.userconfig.tree import UserTree
from atoll.errors import EngineFailed, ServerGone
from atoll.host.api import Host
from atoll.inspect.whereabouts import Watch
from atoll.schema.deployment import Deployment
from atoll.schema.machine import Machine
from atoll.schema.operators import QueryProfile
from atoll.schema.results import EngineWork, Entrant, SchedulerState
from atoll.schema.text import plural
from atoll.schema.whereabouts import Whereabouts
from atoll.supervise.client_calls import close_all, within
from atoll.supervise.launch import launch

_CONNECT_S = 30.0
_ATTACH_S = 120.0
# A query fails shortly before the supervisor finds out which process died. If the server is gone, a
# process has died or will: a database gives up only seconds after it lost a session's process.
_WHY_S = 2.0
_WHY_GONE_S = 30.0


class Up(Protocol):
    """See `atoll.supervise.launch.Running`."""

    @property
    def clients(self) -> list[Client]: ...

    @property
    def deployment(self) -> Deployment: ...

    def check(self, *, wait_s: float = 0.0) -> None: ...

    def in_place(self) -> tuple[int, int, str]:
        """See `atoll.bench.api.Server.verify`."""
        ...


@dataclass(frozen=True, slots=True)
class LiveServer:
    """The `atoll.bench.api.Server` of a deployment."""

    running: Up
    engine: Engine
    entrant: Entrant
    streams: list[Client]
    host: Host

    def verify(self) -> tuple[int, int, str]:
        return self.running.in_place()

    def look(self, *, deep: bool) -> None:
        return None

    def check_alive(self) -> None:
        self.running.check()
        clients = self.running.clients
        found = within(
            _CONNECT_S * len(clients),
            "counting worker instances",
            lambda: sum(client.instances(timeout_s=_CONNECT_S) for client in clients),
        )
        assert self.entrant.plan is not None
        wanted = self.entrant.plan.joining
        if found != wanted:
            raise EngineFailed(
                f"only {found} of {plural(wanted, 'worker instance')} left after the pass"
            )

    def reconnect(self, stream: int) -> Client:
        """See `atoll.bench.api.Server`. Waits for the supervisor to report a death."""
        close_all([self.streams[stream]])
        self.running.check(wait_s=_WHY_S)
        self.check_alive()
        self.streams[stream] = self.connect([stream])[0]
        return self.streams[stream]

    def connect(self, streams: Sequence[int]) -> list[Client]:
        """Connections of these streams, which are distributed round-robin over the servers."""
        endpoints = self.running.deployment.endpoints
        return within(
            _CONNECT_S * len(streams),
            "connecting",
            lambda: connected(
                self.engine,
                [endpoints[stream % len(endpoints)] for stream in streams],
                timeout_s=_CONNECT_S,
            ),
            undo=close_all,
        )

    def shown(self, fault: EngineFailed) -> str:
        return str(fault)

    def schedulers(self) -> list[SchedulerState]:
        if self.entrant.scheduler != "atoll":
            return []
        return [
            within(
                _CONNECT_S,
                "reading the scheduler's state",
                partial(client.scheduler, timeout_s=_CONNECT_S),
            )
            for client in self.running.clients
            if isinstance(client, ScheduledClient)
        ]

    def watch(self) -> Callable[[], Whereabouts]:
        return Watch(self.host, self.running.deployment).end

    def counted(self) -> dict[str, EngineWork]:
        """Best effort: the times of the block hold without these statistics."""
        found: dict[str, EngineWork] = {}
        with suppress(EngineFailed):
            for client in self.running.clients:
                if isinstance(client, CountingClient):
                    found |= within(
                        _CONNECT_S,
                        "reading the statistics of queries",
                        partial(client.work, timeout_s=_CONNECT_S),
                    )
        return found

    def profile(self, sql: str, *, timeout_s: float) -> QueryProfile | None:
        client = self.streams[0]
        if not isinstance(client, ProfilingClient):
            return None
        return within(
            timeout_s,
            "profiling a query",
            partial(client.profile, sql, timeout_s=timeout_s),
        )


@dataclass(frozen=True, slots=True)
class Deployer:
    """The `atoll.bench.api.Deploy` of a bench. Engines with their own storage have `data`."""

    engines: Mapping[str, Engine]
    machine: Machine
    host: Host
    data: Data
    name: str  # of the one deployment that is up
    progress: Callable[[str], None]
    # The users' own configurations, by engine.
    trees: Mapping[str, UserTree | None] = field(default_factory=dict)

    @contextmanager
    def __call__(self, entrant: Entrant) -> Iterator[LiveServer]:
        assert entrant.plan is not None
        engine = holding(under(self.engines[entrant.engine], entrant.scheduler), self.data)
        with naming_users_files(self.trees.get(entrant.engine)):
            started = launch(
                entrant.plan,
                engine,
                machine=self.machine,
                host=self.host,
                name=self.name,
                progress=self.progress,
            )
        with started as running:
            server = LiveServer(running, engine, entrant, [], self.host)
            with serving(server, self.data):
                yield server


@contextmanager
def serving(server: LiveServer, data: Data) -> Iterator[None]:
    """The server with its tables and streams."""
    running = server.running
    try:
        for client in running.clients:
            for table in data.tables:
                for statement in attaching(server.engine, table):
                    within(
                        _ATTACH_S,
                        f"attaching {table.name}",
                        partial(client.execute, statement, timeout_s=_ATTACH_S),
                    )
        server.streams.extend(server.connect(range(server.entrant.streams)))
        yield
    except EngineFailed as fault:
        # A dead process explains more than its client's error, which names the query.
        try:
            running.check(wait_s=_WHY_GONE_S if isinstance(fault, ServerGone) else _WHY_S)
        except EngineFailed as death:
            if str(death) in str(fault):
                raise fault from None
            raise EngineFailed(f"{death} (the client: {fault})") from None
        raise
    finally:
        close_all(server.streams)
