"""PostgreSQL's backends as operators: each runs one kind of statement, at a fixed rate, on a server
and data of its own. `attach` is for the backends of a server that somebody else has started.

A backend is a process, so its CPU time and its memory are the operator's. Backends give nothing to
each other: they share tables only, and the graph has no edges. An operator's id is the
`application_name` of its session, by which a backend is found again.

The rate is that of the clients, which are threads of this process: a statement that comes late
delays none of the others, and its latency counts from the moment at which it was due. So the server
falls behind if it has too few cores, and `measure` says so.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from math import ceil
from pathlib import Path
from typing import Any

import psycopg

from atoll.engines.api import Data
from atoll.engines.binding import bind
from atoll.engines.loading.server import Server
from atoll.engines.loading.templates import loaded_path
from atoll.engines.placeable import OperatorThread, Throughput
from atoll.engines.postgresql.client import PostgreSQLClient, reach
from atoll.engines.postgresql.engine import PostgreSQLEngine
from atoll.engines.postgresql.load import loader, session_at
from atoll.engines.server.per_slot import template_path
from atoll.errors import CheckFailed, EngineFailed, UsageError
from atoll.host.api import Host
from atoll.host.procfs import parse_stat
from atoll.inspect.duty import sample, watched
from atoll.inspect.processes import GONE
from atoll.inspect.tasks import Thread
from atoll.schema.operator_graph import (
    Activity,
    GraphOperator,
    Known,
    OperatorGraph,
    Rate,
    Source,
)
from atoll.schema.placement import Placement
from atoll.store.once import copy_tree

_FOLDER = Path(__file__).parent
_STATEMENT = re.compile(r"^-- ([\w-]+): ([\d.]+)\n([^;]+)", re.MULTILINE)
_DATA_BYTES = 64 << 20  # measured: 27 MB, with indexes
_ASK_S = 60.0
_PAGE_BYTES = 8192
_LATE_S = 1.0
_POLL_S = 0.05
_COUNTED = "visit"  # the statement that counts itself in a table
_UNIT = "executions/s"
_NO_EDGES = "backends share tables only, so no operator gives anything to another"
_BEHIND = "statements came in faster than they were executed, so the figures are too low"
# A backend works alone, and nothing else works beside it.
_SETTINGS = {
    "shared_buffers": "256MB",
    "max_parallel_workers_per_gather": "0",
    "jit": "off",
    "autovacuum": "off",
    "fsync": "off",  # the data ends with the server
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "100",
    "max_logical_replication_workers": "0",
}


@dataclass(frozen=True, slots=True)
class Statement:
    """A kind of statement, and how often a second it is executed."""

    name: str
    rate: float
    sql: str


@cache
def statements() -> tuple[Statement, ...]:
    found = _STATEMENT.findall((_FOLDER / "statements.sql").read_text("utf-8"))
    return tuple(Statement(name, float(rate), sql.strip()) for name, rate, sql in found)


@dataclass(frozen=True, slots=True)
class PostgreSQLBackends:
    """See `atoll.engines.placeable.Placeable` and `Attachable`."""

    kinds: tuple[Statement, ...] = field(default_factory=statements)

    @property
    def name(self) -> str:
        return PostgreSQLEngine.own_traits.name

    @property
    def independent(self) -> bool:
        return True

    @contextlib.contextmanager
    def start(self, host: Host, folder: Path, cpus: Sequence[int]) -> Iterator[Backends]:
        engine = PostgreSQLEngine()
        installation = engine.locate(host)
        loading = loader(engine, host)
        tables = (_FOLDER / "tables.sql").read_text("utf-8")
        data = Data("bookshop", sha256(tables.encode()).hexdigest(), ())

        def fill(_: Server, path: str) -> None:
            with session_at(path) as session:
                for statement in (*tables.split(";"), "vacuum (freeze, analyze)", "checkpoint"):
                    session.execute(statement.encode())

        loading.make(
            data, fill, _DATA_BYTES, installation, host=host, progress=lambda doing, share: None
        )
        place = folder / "data"
        copy_tree(loaded_path(template_path(installation), data), str(place))
        try:
            with loading.server(installation.home, place, _SETTINGS, host) as (server, path):
                # Backends are children of this process.
                host.set_affinity(server.child.pid, frozenset(cpus))
                with contextlib.closing(PostgreSQLClient.at(path, timeout_s=_ASK_S)) as client:
                    clients = [
                        _Client(host, path, kind, number / len(self.kinds))
                        for number, kind in enumerate(self.kinds)
                    ]
                    with _working(clients):
                        yield Backends(host, client, clients)
                    _check(client, clients)
        finally:
            shutil.rmtree(place, ignore_errors=True)

    @contextlib.contextmanager
    def attach(self, host: Host, url: str) -> Iterator[Backends]:
        with contextlib.closing(reach(url, timeout_s=_ASK_S)) as client:
            _require_here(host, client)
            yield Backends(host, client, ())


def _require_here(host: Host, client: PostgreSQLClient) -> None:
    """Raises UsageError unless the server's processes can be seen here. The numbers of processes on
    another machine, or in a container, are those of strangers here."""
    pid = client.execute("select pg_backend_pid()", timeout_s=_ASK_S).rows[0][0]
    try:
        name = parse_stat(host.read_text(f"/proc/{pid}/stat")).comm
    except GONE:
        name = ""
    if "postgres" not in name and name != "postmaster":
        raise UsageError(
            f"the server at {client.where} is not among the processes of this machine; run Atoll "
            "where it runs, both outside of a container or both inside"
        )


@dataclass(slots=True)
class Backends:
    """See `atoll.engines.placeable.Running`. `clients` are empty if somebody else has started the
    server: then there is no `measure`, and nothing says how much memory a statement reads."""

    host: Host
    client: PostgreSQLClient
    clients: Sequence[_Client]

    def threads(self) -> list[OperatorThread]:
        sql = (
            "select pid, application_name from pg_stat_activity where backend_type = "
            "'client backend' and application_name <> '' and pid <> pg_backend_pid() "
            "and application_name <> current_setting('application_name') order by pid"
        )
        rows = self.client.execute(sql, timeout_s=_ASK_S).rows
        return [OperatorThread((str(name),), int(pid), int(pid)) for pid, name in rows]

    def place(self, placement: Placement) -> None:
        bind(self.host, self.threads, placement)

    def profile(self, seconds: float) -> OperatorGraph:
        of: dict[str, list[Thread]] = {}
        for one in self.threads():
            of.setdefault(one.operators[0], []).append(Thread(one.pid, one.tid))
        if not of:
            raise UsageError(
                "no session of this server has an application_name; give each statement kind a "
                "session of its own with a name: set application_name = 'NAME'"
            )
        before = self._executions()
        moments = sample(self.host, [each for one in of.values() for each in one], seconds=seconds)
        found = watched(moments, of, ())
        rate = (self._executions() - before) / found.seconds
        read_gbs = {one.kind.name: one.kind.rate * one.bytes_read() / 1e9 for one in self.clients}
        return OperatorGraph(
            engine=PostgreSQLEngine.own_traits.name,
            rate=Rate(value=rate, unit=_UNIT) if rate > 0 else None,
            seconds=found.seconds,
            operators=tuple(
                GraphOperator(
                    id=name,
                    parallel=len(sessions) > 1,
                    activity=_reading(found.activity.get(name), read_gbs.get(name)),
                )
                for name, sessions in sorted(of.items())
            ),
            notes=(*found.notes, _NO_EDGES, *([_BEHIND] if self.falls_behind else ())),
        )

    def measure(self, seconds: float) -> Throughput:
        """Raises UsageError for a server that somebody else has started."""
        if not self.clients:
            raise UsageError("only a server that Atoll starts can be measured: its clients time it")
        began_s = self.host.monotonic()
        self.host.sleep(seconds)
        for one in self.clients:
            one.check()
        done = [
            (ended_s - began_s, latency_s)
            for one in self.clients
            for ended_s, latency_s in one.done.copy()
            if began_s <= ended_s < began_s + seconds
        ]
        windows = [0] * int(seconds)
        for ended_s, _ in done:
            if ended_s < len(windows):
                windows[int(ended_s)] += 1
        latencies_ms = sorted(latency_s * 1000 for _, latency_s in done)
        if not latencies_ms or not windows:
            raise EngineFailed(f"no statement was done in {seconds:g} s")
        p50, p90, p99 = (
            latencies_ms[ceil(share * len(latencies_ms) / 100) - 1] for share in (50, 90, 99)
        )
        return Throughput(
            unit=_UNIT,
            per_window=tuple(map(float, windows)),
            p50_ms=p50,
            p90_ms=p90,
            p99_ms=p99,
            backlog=self.falls_behind,
        )

    @property
    def falls_behind(self) -> bool:
        """Whether a statement is executed long after it was due."""
        return any(one.late_s > _LATE_S for one in self.clients)

    def _executions(self) -> float:
        """Until now."""
        if self.clients:
            return sum(len(one.done) for one in self.clients)
        sql = "select sum(xact_commit + xact_rollback)::float8 from pg_stat_database"
        return float(self.client.execute(sql, timeout_s=_ASK_S).rows[0][0])


@dataclass(slots=True)
class _Client:
    """Executes one kind of statement at its rate, in a thread of its own."""

    host: Host
    path: str
    kind: Statement
    number: float  # 0 to 1: when in the period its statements are due
    done: list[tuple[float, float]] = field(default_factory=list)  # when it ended, latency, in s
    late_s: float = 0.0  # of the latest statement
    fault: str = ""
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        try:
            with session_at(self.path) as session:
                self._work(session)
        except EngineFailed as fault:
            self.fault = str(fault)

    def _work(self, session: psycopg.Connection[tuple[Any, ...]]) -> None:
        name = self.kind.name
        session.execute("select set_config('application_name', %s, false)", (name,))
        text = self.kind.sql.encode()  # as it is: no % of it stands for a value
        period_s = 1 / self.kind.rate
        due_s = self.host.monotonic() + period_s * self.number
        while not self.stop.wait(max(due_s - self.host.monotonic(), 0.0)):
            self.late_s = max(self.host.monotonic() - due_s, 0.0)
            cursor = session.execute(text, prepare=True)
            if cursor.description is not None:
                cursor.fetchall()
            ended_s = self.host.monotonic()
            self.done.append((ended_s, ended_s - due_s))
            due_s += period_s

    def bytes_read(self) -> int:
        """What an execution reads of tables and indexes, by pages of buffers."""
        with session_at(self.path) as session, session.transaction(force_rollback=True):
            explain = f"explain (analyze, buffers, format json) {self.kind.sql}"
            ((found,),) = session.execute(explain.encode()).fetchall()
        plan = found[0]["Plan"]
        return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]) * _PAGE_BYTES

    def check(self) -> None:
        """Raises EngineFailed if its session has ended."""
        if self.fault:
            raise EngineFailed(f"the session of {self.kind.name} ended: {self.fault}")


@contextlib.contextmanager
def _working(clients: Sequence[_Client]) -> Iterator[None]:
    """Returns when each has had its first answer. Raises EngineFailed."""
    threads = [threading.Thread(target=one.run, daemon=True) for one in clients]
    for thread in threads:
        thread.start()
    try:
        for one, thread in zip(clients, threads, strict=True):
            while not one.done and thread.is_alive():
                one.host.sleep(_POLL_S)
            one.check()
        yield
    finally:
        for one in clients:
            one.stop.set()
        for thread in threads:
            thread.join(_ASK_S)


def _check(client: PostgreSQLClient, clients: Sequence[_Client]) -> None:
    """Raises CheckFailed unless the tables have what the clients had an answer to."""
    for one in clients:
        one.check()
    executed = sum(len(one.done) for one in clients if one.kind.name == _COUNTED)
    counted = client.execute("select sum(visits) from customer", timeout_s=_ASK_S).rows[0][0]
    if int(counted) != executed:
        raise CheckFailed(
            f"{executed} executions of {_COUNTED} were answered, and the table has {counted}"
        )


def _reading(activity: Activity | None, read_gbs: float | None) -> Activity | None:
    if activity is None or read_gbs is None:
        return activity
    how = "buffers of one execution x 8 KiB x its rate"
    known = Known(value=read_gbs, source=Source.ESTIMATED, how=how)
    return activity.model_copy(update={"memory_gbs": known})
