"""The real deployment behind the runner's seam: launch, tables, a connection per stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial

from atoll.engines.api import (
    Client,
    CountingClient,
    Data,
    Engine,
    ScheduledClient,
)
from atoll.engines.calls import attaching, connected, holding, under
from atoll.errors import EngineFailed, ServerGone
from atoll.host.api import Host
from atoll.inspect.verify import brief
from atoll.schema.machine import Machine
from atoll.schema.results import EngineWork, Entrant, SchedulerState
from atoll.supervise.client_calls import close_all, within
from atoll.supervise.launch import Running, launch

MOST_DETAILS = 6
_CONNECT_S = 30.0
_ATTACH_S = 120.0
# A query fails an instant before the supervisor has found out which process died. Where the server
# is gone one has, or will: a database takes seconds to give up after it lost a session's process.
_WHY_S = 2.0
_WHY_GONE_S = 30.0


@dataclass(frozen=True, slots=True)
class LiveServer:
    """See `atoll.bench.runner.Server`."""

    running: Running
    entrant: Entrant
    streams: Sequence[Client]

    def verify(self) -> tuple[int, int, str]:
        # Not deep: to count the pages of large memory would disturb what is measured next.
        found = self.running.verify(deep=False)
        details = [brief(finding) for finding in found.drift]
        more = [f"and {len(details) - MOST_DETAILS} more"] if len(details) > MOST_DETAILS else []
        return found.threads, found.drifted, "; ".join(details[:MOST_DETAILS] + more)

    def look(self, *, deep: bool) -> None:
        return None

    def check_alive(self) -> None:
        self.running.check()
        clients = self.running.clients
        found = within(
            _CONNECT_S * len(clients),
            "asking for instances",
            lambda: sum(client.instances(timeout_s=_CONNECT_S) for client in clients),
        )
        assert self.entrant.plan is not None
        wanted = len(self.entrant.plan.slots)
        if found != wanted:
            raise EngineFailed(f"{found} of {wanted} worker instances are left after the pass")

    def schedulers(self) -> list[SchedulerState]:
        if self.entrant.scheduler != "atoll":
            return []
        return [
            within(
                _CONNECT_S, "asking the scheduler", partial(client.scheduler, timeout_s=_CONNECT_S)
            )
            for client in self.running.clients
            if isinstance(client, ScheduledClient)
        ]

    def counted(self) -> dict[str, EngineWork]:
        """Not worth a failed block: without it, the times still hold."""
        found: dict[str, EngineWork] = {}
        with suppress(EngineFailed):
            for client in self.running.clients:
                if isinstance(client, CountingClient):
                    found |= within(
                        _CONNECT_S,
                        "asking what queries took",
                        partial(client.work, timeout_s=_CONNECT_S),
                    )
        return found


@dataclass(frozen=True, slots=True)
class Deployer:
    """See `atoll.bench.runner.Deploy`. `data` has been loaded where engines keep it themselves."""

    engines: Mapping[str, Engine]
    machine: Machine
    host: Host
    data: Data
    name: str  # of the deployments, one at a time
    progress: Callable[[str], None]

    @contextmanager
    def __call__(self, entrant: Entrant) -> Iterator[LiveServer]:
        assert entrant.plan is not None
        engine = holding(under(self.engines[entrant.engine], entrant.scheduler), self.data)
        with launch(
            entrant.plan,
            engine,
            machine=self.machine,
            host=self.host,
            name=self.name,
            progress=self.progress,
        ) as running:
            streams: list[Client] = []
            try:
                for client in running.clients:
                    for table in self.data.tables:
                        for statement in attaching(engine, table):
                            within(
                                _ATTACH_S,
                                f"attaching {table.name}",
                                partial(client.execute, statement, timeout_s=_ATTACH_S),
                            )
                endpoints = running.deployment.endpoints
                dealt = [endpoints[number % len(endpoints)] for number in range(entrant.streams)]
                streams = within(
                    _CONNECT_S * len(dealt),
                    "connecting",
                    lambda: connected(engine, dealt, timeout_s=_CONNECT_S),
                    undo=close_all,
                )
                yield LiveServer(running, entrant, streams)
            except EngineFailed as fault:
                # A process that died says more than its client.
                running.check(wait_s=_WHY_GONE_S if isinstance(fault, ServerGone) else _WHY_S)
                raise
            finally:
                close_all(streams)
