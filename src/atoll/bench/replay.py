"""The user's SQL against clusters that run already (`atoll bench ENGINE --url URL --suite DIR`).

Nothing is started and nothing is stopped: a block is a warm-up and a measured pass against every
cluster. No right answers are known. Every answer must equal the first that its query had in this
bench, from whichever cluster; one that does not is told as a change, since the data may change
under a live cluster, and is no error of the engine.
"""

from __future__ import annotations

import hashlib
import secrets
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from atoll.bench.address import Address, parse_address, without
from atoll.bench.cluster import look_at_cluster
from atoll.bench.fingerprint import fingerprint
from atoll.bench.results import Results, ResultsWriter, read_results
from atoll.bench.runner import Bench, Tick
from atoll.engines import registry
from atoll.engines.api import Client, ClusterClient, Installation, QueryResult, RemoteEngine
from atoll.engines.facts import facts_of
from atoll.engines.sql.types import Kind, kind_of
from atoll.errors import ClusterGone, EngineFailed, UsageError
from atoll.host.api import Host
from atoll.plan import machine_id
from atoll.schema.machine import Machine
from atoll.schema.results import (
    EngineWork,
    Entrant,
    ProcessSeen,
    QueryTime,
    RunHeader,
    SchedulerState,
)
from atoll.suites.base import Answer
from atoll.suites.compare import compare
from atoll.suites.folder import Folder, bare, choose, read_folder
from atoll.suites.ordering import ordering_of
from atoll.supervise.client_calls import close_all, within

REACH_S = 10.0
_ASK_S = 30.0


@dataclass(frozen=True, slots=True)
class ReplayWish:
    """What the user asks for."""

    engine: str
    urls: tuple[str, ...]  # with their secrets; the first is the baseline
    suite: str  # a folder
    queries: str | None  # names of files, comma-separated
    streams: int
    blocks: int
    query_limit_s: float
    command: tuple[str, ...]  # as it was typed; its secrets are taken out here


@dataclass(frozen=True, slots=True)
class Replayed:
    """See `atoll.bench.runner.Work`. Answers are compared with the first of this process; the first
    after a resume with the digest in the results file."""

    folder: Folder
    comments_and_quotes: str  # see `EngineFacts`
    first: dict[str, QueryResult] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    differing: Literal["changed"] = "changed"

    def sql(self, engine: str, query: str) -> str:
        return self.folder.texts[query]

    def check(self, query: str, result: QueryResult) -> str | None:
        first = self.first.setdefault(query, result)
        if first is result:
            found = self.digest(query, result)
            known = self.digests.setdefault(query, found)
            return None if known == found else "it changed while the bench was stopped"
        kinds, before = _kinds(result), _kinds(first)
        if kinds != before:
            return f"its columns are {', '.join(kinds)}, and were {', '.join(before)}"
        order, cut = self._order(query, first)
        return compare(result, Answer(first.rows, order, open_end=cut))

    def digest(self, query: str, result: QueryResult) -> str:
        order, cut = self._order(query, result)
        return digest_of(result, order if cut else range(len(result.columns)))

    def _order(self, query: str, result: QueryResult) -> tuple[tuple[int, ...], bool]:
        """Which columns order the result, and whether a LIMIT may have cut through rows that these
        do not tell apart: then the engine may choose among them."""
        words = bare(self.folder.texts[query], self.comments_and_quotes)
        order, limit = ordering_of(words, [column.name for column in result.columns])
        return order, limit is not None and len(result.rows) == limit

    def drop_from_cache(self) -> None:
        return None  # the cluster's data is the cluster's

    def recall(self, results: Results) -> None:
        """Know the answers of an earlier part of this bench again."""
        for line in results.lines:
            if isinstance(line, QueryTime) and line.digest:
                self.digests.setdefault(line.query, line.digest)


def _kinds(result: QueryResult) -> list[str]:
    return [kind_of(column.type).value for column in result.columns]


def digest_of(result: QueryResult, places: Sequence[int]) -> str:
    """Over the number of rows and the values of those columns but floats, in any order of rows."""
    exact = [place for place in places if kind_of(result.columns[place].type) is not Kind.FLOAT]
    rows = sorted(repr([row[place] for place in exact]) for row in result.rows)
    digest = hashlib.sha256(f"{len(rows)}\n".encode())
    for row in rows:
        digest.update(row.encode() + b"\n")
    return digest.hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class ClusterServer:
    """See `atoll.bench.runner.Server`."""

    streams: Sequence[Client]
    addresses: Sequence[Address]
    instances: int  # when the bench began
    host: Host

    def verify(self) -> None:
        return None

    def look(self, *, deep: bool) -> tuple[tuple[ProcessSeen, ...], str]:
        return look_at_cluster(self.host, self.addresses, deep=deep)

    def check_alive(self) -> None:
        found = instances_of(self.streams[0])
        if found != self.instances:
            raise EngineFailed(
                f"{found} worker instances answer after the pass, and {self.instances} did when "
                "the bench began"
            )

    def schedulers(self) -> Sequence[SchedulerState]:
        return ()

    def counted(self) -> Mapping[str, EngineWork]:
        return {}


@dataclass(frozen=True, slots=True)
class Reacher:
    """See `atoll.bench.runner.Deploy`."""

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
            addresses = nodes_of(streams[0], ports) or [address]
            yield ClusterServer(streams, addresses, self.instances[entrant.label], self.host)
        except EngineFailed as fault:
            told = without(address.secrets, str(fault))
            if not self._answers(url):
                raise ClusterGone(
                    f"{entrant.label} does not answer any more ({told}); what was measured is "
                    "kept, and --resume goes on once it is back"
                ) from None
            raise EngineFailed(told) from None
        finally:
            close_all(streams)

    def _answers(self, url: str) -> bool:
        try:
            close_all([reach(self.engine, url)])
        except EngineFailed:
            return False
        return True


def reach(engine: RemoteEngine, url: str) -> Client:
    return within(
        REACH_S,
        "connecting",
        lambda: engine.reach(url, timeout_s=REACH_S),
        undo=lambda client: client.close(),
    )


def instances_of(client: Client) -> int:
    return within(_ASK_S, "asking for instances", lambda: client.instances(timeout_s=_ASK_S))


def nodes_of(client: Client, ports: Mapping[str, int]) -> list[Address]:
    """Where the cluster says that its nodes are; none where it does not know."""
    if not isinstance(client, ClusterClient):
        return []
    urls = within(_ASK_S, "asking for nodes", lambda: client.nodes(timeout_s=_ASK_S))
    return [_node(url, ports) for url in urls]


def _node(url: str, ports: Mapping[str, int]) -> Address:
    try:
        return parse_address(url, ports)
    except UsageError:  # not the user's URL: it is nobody's address here, which the look tells
        return Address(told=url, place=url, host=url, port=None, socket="", secrets=())


@dataclass(frozen=True, slots=True)
class ReplayJob:
    """A replay that is ready to run."""

    header: RunHeader
    reacher: Reacher
    work: Replayed

    def run(
        self,
        path: Path,
        *,
        host: Host,
        resume: bool,
        tick: Callable[[Tick], None],
        say: Callable[[str], None],
    ) -> None:
        """Measure into `path`. Raises as `atoll.bench.runner.Bench.run` and the writer do."""
        header, first = self.header, 0
        if resume:
            writer, header, first = ResultsWriter.resume(path, header)
            self.work.recall(read_results(path))
        else:
            writer = ResultsWriter.create(path, header)
        with writer:
            Bench(header, host, self.reacher, self.work, writer.append, tick).run(first_block=first)


def make_replay(wish: ReplayWish, *, host: Host, machine: Machine) -> ReplayJob:
    """Raises UsageError, or EngineFailed where a cluster does not answer."""
    engine = registry.get(wish.engine)
    if not isinstance(engine, RemoteEngine):
        raise UsageError(f"--url: {wish.engine} has no clusters that could be asked")
    facts = facts_of(engine)
    folder = read_folder(wish.suite, facts.comments_and_quotes)
    queries = choose(wish.queries, tuple(folder.texts))
    addresses = [parse_address(url, facts.ports) for url in wish.urls]
    labels = _labels(wish.engine, addresses)
    entrants, notes, versions, instances = [], [], [], {}
    for label, url, address in zip(labels, wish.urls, addresses, strict=True):
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
                engine=wish.engine,
                url=address.told,
                streams=wish.streams,
                baseline=None if label == labels[0] else labels[0],
            )
        )
        notes.append(
            f"{label}: a cluster that ran already, at {address.told}; {instances[label]} worker "
            f"instance{'' if instances[label] == 1 else 's'}"
        )
    version = ", ".join(dict.fromkeys(versions))
    header = RunHeader(
        run_id=secrets.token_hex(6),
        started_unix_s=time.time(),
        suite=folder.name,
        suite_checksum=folder.checksum,
        scale_factor=None,
        queries=queries,
        blocks_asked=wish.blocks,
        query_limit_s=wish.query_limit_s,
        machine=machine,
        machine_id=machine_id(machine),
        entrants=tuple(entrants),
        notes=tuple(notes),
        fingerprint=fingerprint(
            host, machine, {wish.engine: Installation(version, "")}, data_checksum=""
        ),
        command=shlex.join(_told(argument, wish.urls) for argument in wish.command),
    )
    reacher = Reacher(engine, dict(zip(labels, wish.urls, strict=True)), instances, host)
    return ReplayJob(header, reacher, Replayed(folder, facts.comments_and_quotes))


def _labels(engine: str, addresses: Sequence[Address]) -> list[str]:
    """'ENGINE/host:8080'; a second cluster of that name is 'ENGINE/host:8080-2'."""
    labels: list[str] = []
    for address in addresses:
        label, number = f"{engine}/{address.place}", 1
        while label in labels:
            number += 1
            label = f"{engine}/{address.place}-{number}"
        labels.append(label)
    return labels


def _told(argument: str, urls: Sequence[str]) -> str:
    """An argument of the command line, with what may be told of every URL in it."""
    for url in urls:
        argument = argument.replace(url, parse_address(url, {}).told)
    return argument


def _version(client: Client) -> str:
    """As the server tells it; what knows no version() is unknown."""

    def ask() -> QueryResult:
        return client.execute("select version()", timeout_s=_ASK_S)

    try:
        found = within(_ASK_S, "asking the version", ask)
    except EngineFailed:
        return "unknown"
    return str(found.rows[0][0])[:80]
