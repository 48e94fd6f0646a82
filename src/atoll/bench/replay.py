"""Replays the user's SQL against running clusters (`atoll replay ENGINE URL --suite DIR`).

It starts and stops nothing: a block is a warm-up and a measured pass against every cluster. The
right answers are unknown, so every answer is compared with the first answer to its query in this
run, whichever cluster gave it. A different answer is reported as a change and not as an error of
the engine, since the data of a live cluster may change.
"""

from __future__ import annotations

import secrets
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from atoll.bench.address import ClusterAddress, parse_address, without
from atoll.bench.cluster import look_at_cluster
from atoll.bench.fingerprint import fingerprint
from atoll.bench.first_answers import FirstAnswers
from atoll.bench.job import Job, Length
from atoll.bench.suite_work import notes_on
from atoll.engines import registry
from atoll.engines.api import Client, ClusterClient, Installation, QueryResult, RemoteEngine
from atoll.engines.facts import facts_of
from atoll.errors import ClusterGone, EngineFailed, UsageError
from atoll.host.api import Host
from atoll.plan import machine_id
from atoll.schema.machine import Machine
from atoll.schema.results import (
    EngineWork,
    Entrant,
    ProcessSeen,
    RunHeader,
    SchedulerState,
)
from atoll.schema.text import plural
from atoll.suites.folder import choose, read_folder
from atoll.supervise.client_calls import close_all, within

REACH_S = 10.0
_ASK_S = 30.0
_RECOVERS_S = 10.0


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """What the user wants to replay."""

    engine: str
    urls: tuple[str, ...]  # with their secrets; the first is the baseline
    suite: str  # a folder
    queries: str | None  # names of files, comma-separated
    streams: int
    length: Length
    warmups: int
    query_limit_s: float
    command: tuple[str, ...]  # the command line; `make_replay` removes its secrets


@dataclass(frozen=True, slots=True)
class ClusterServer:
    """The `atoll.bench.api.Server` of a running cluster."""

    streams: list[Client]
    addresses: Sequence[ClusterAddress]
    connect: Callable[[], Client]
    secrets: Sequence[str]
    instances: int  # when the bench began
    host: Host

    def verify(self) -> None:
        return None

    def look(self, *, deep: bool) -> tuple[tuple[ProcessSeen, ...], str]:
        return look_at_cluster(self.host, self.addresses, deep=deep)

    def reconnect(self, stream: int) -> Client:
        close_all([self.streams[stream]])
        client = self.streams[stream] = self.connect()
        self._check(client)
        return client

    def shown(self, fault: EngineFailed) -> str:
        return without(self.secrets, str(fault))

    def check_alive(self) -> None:
        self._check(self.streams[0])

    def _check(self, client: Client) -> None:
        found = instances_of(client)
        if found != self.instances:
            raise EngineFailed(
                f"{plural(found, 'worker instance')} left, but {self.instances} when the run began"
            )

    def schedulers(self) -> Sequence[SchedulerState]:
        return ()

    def watch(self) -> None:
        return None

    def counted(self) -> Mapping[str, EngineWork]:
        return {}

    def profile(self, sql: str, *, timeout_s: float) -> None:
        return None


@dataclass(frozen=True, slots=True)
class Connector:
    """The `atoll.bench.api.Deploy` of a replay: connects to a cluster and starts nothing."""

    engine: RemoteEngine
    urls: Mapping[str, str]  # by label, with their secrets
    instances: Mapping[str, int]
    host: Host

    @contextmanager
    def __call__(self, entrant: Entrant) -> Iterator[ClusterServer]:
        url = self.urls[entrant.label]
        ports = facts_of(self.engine).ports
        address = parse_address(url, ports)
        streams: list[Client] = []
        try:
            while len(streams) < entrant.streams:
                streams.append(reach(self.engine, url))
            yield ClusterServer(
                streams=streams,
                addresses=nodes_of(streams[0], ports) or [address],
                connect=lambda: reach(self.engine, url),
                secrets=address.secrets,
                instances=self.instances[entrant.label],
                host=self.host,
            )
        except EngineFailed as fault:
            message = without(address.secrets, str(fault))
            if not self._answers(url):
                raise ClusterGone(
                    f"{entrant.label} no longer answers ({message}); the results are kept, "
                    "continue with --resume when it is back"
                ) from None
            raise EngineFailed(message) from None
        finally:
            close_all(streams)

    def _answers(self, url: str) -> bool:
        """A server that lost a session may need some time to recover."""
        end = self.host.monotonic() + _RECOVERS_S
        while True:
            try:
                close_all([reach(self.engine, url)])
                return True
            except EngineFailed:
                if self.host.monotonic() >= end:
                    return False
                self.host.sleep(1.0)


def reach(engine: RemoteEngine, url: str) -> Client:
    return within(
        REACH_S,
        "connecting",
        lambda: engine.reach(url, timeout_s=REACH_S),
        undo=lambda client: client.close(),
    )


def instances_of(client: Client) -> int:
    return within(_ASK_S, "counting worker instances", lambda: client.instances(timeout_s=_ASK_S))


def nodes_of(client: Client, ports: Mapping[str, int]) -> list[ClusterAddress]:
    """The addresses of the cluster's nodes; empty if the cluster does not know them."""
    if not isinstance(client, ClusterClient):
        return []
    urls = within(_ASK_S, "listing nodes", lambda: client.nodes(timeout_s=_ASK_S))
    return [_node(url, ports) for url in urls]


def _node(url: str, ports: Mapping[str, int]) -> ClusterAddress:
    try:
        return parse_address(url, ports)
    except UsageError:  # the cluster's own, odd URL: the look reports it as not on this machine
        return ClusterAddress(shown=url, place=url, host=url, port=None, socket="", secrets=())


def make_replay(request: ReplayRequest, *, host: Host, machine: Machine) -> Job:
    """Raises UsageError, or EngineFailed if a cluster does not answer."""
    engine = registry.get(request.engine)
    if not isinstance(engine, RemoteEngine):
        raise UsageError(f"{request.engine}: Atoll cannot connect to its clusters by URL")
    facts = facts_of(engine)
    folder = read_folder(request.suite, facts.comments_and_quotes)
    queries = choose(request.queries, tuple(folder.texts))
    addresses = [parse_address(url, facts.ports) for url in request.urls]
    labels = _labels(request.engine, addresses)
    entrants, notes, versions, instances = [], [], [], {}
    for label, url, address in zip(labels, request.urls, addresses, strict=True):
        try:
            client = reach(engine, url)
            try:
                instances[label] = instances_of(client)
                versions.append(_version(client))
            finally:
                close_all([client])
        except EngineFailed as fault:
            raise EngineFailed(without(address.secrets, str(fault))) from None
        entrants.append(
            Entrant(
                label=label,
                engine=request.engine,
                url=address.shown,
                streams=request.streams,
                baseline=None if label == labels[0] else labels[0],
            )
        )
        notes.append(
            f"{label}: a running cluster at {address.shown} with "
            f"{plural(instances[label], 'worker instance')}"
        )
    work = FirstAnswers({request.engine: folder.texts}, facts.comments_and_quotes)
    version = ", ".join(dict.fromkeys(versions))
    header = RunHeader(
        run_id=secrets.token_hex(6),
        started_unix_s=time.time(),
        suite=folder.name,
        suite_checksum=folder.checksum,
        scale_factor=None,
        answers_known=False,
        queries=queries,
        blocks_asked=request.length.blocks_asked,
        warmups=request.warmups,
        query_limit_s=request.query_limit_s,
        machine=machine,
        machine_id=machine_id(machine),
        entrants=tuple(entrants),
        notes=(*notes, *notes_on(work, queries)),
        fingerprint=fingerprint(
            host, machine, {request.engine: Installation(version, "")}, data_checksum=""
        ),
        command=shlex.join(
            _without_secrets(argument, request.urls) for argument in request.command
        ),
    )
    connector = Connector(engine, dict(zip(labels, request.urls, strict=True)), instances, host)
    return Job(header, work, lambda machine, host, say: connector, request.length)


def _labels(engine: str, addresses: Sequence[ClusterAddress]) -> list[str]:
    """'ENGINE/host:8080'; a second cluster of that name is 'ENGINE/host:8080-2'."""
    labels: list[str] = []
    for address in addresses:
        label, number = f"{engine}/{address.place}", 1
        while label in labels:
            number += 1
            label = f"{engine}/{address.place}-{number}"
        labels.append(label)
    return labels


def _without_secrets(argument: str, urls: Sequence[str]) -> str:
    """An argument of the command line, with every URL in it free of secrets."""
    for url in urls:
        argument = argument.replace(url, parse_address(url, {}).shown)
    return argument


def _version(client: Client) -> str:
    """What the server reports; 'unknown' if it has no version()."""

    def ask() -> QueryResult:
        return client.execute("select version()", timeout_s=_ASK_S)

    try:
        found = within(_ASK_S, "asking for the version", ask)
    except EngineFailed:
        return "unknown"
    return str(found.rows[0][0])[:80]
