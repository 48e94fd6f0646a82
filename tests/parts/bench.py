"""Parts for tests of the bench and the report: a small machine, plans, headers, fake engines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from atoll.bench.results import Results
from atoll.bench.runner import Bench, Tick
from atoll.engines.api import Client, Column, QueryResult
from atoll.errors import EngineFailed
from atoll.schema.base import Record
from atoll.schema.operators import QueryProfile
from atoll.schema.plan import EngineTraits, Policy
from atoll.schema.results import (
    DeploymentUp,
    EngineWork,
    Entrant,
    Fingerprint,
    Line,
    PassDone,
    ProcessSeen,
    QueryFailed,
    QueryTime,
    RunEnd,
    RunHeader,
    SchedulerRan,
    SchedulerState,
)
from atoll.schema.seats import SpreadChange, ThreadSeat
from atoll.schema.whereabouts import Whereabouts
from tests.parts.bench_plans import GIB, machine, plan
from tests.parts.fake_host import FakeHost

SPARK_TRAITS = EngineTraits(
    name="spark",
    distributed=True,
    parallel_query=True,
    has_coordinator=True,
    jvm=True,
    heap_ratio=0.6,
    ratio_source="test",
    min_heap_bytes=1 << 20,
    coordinator_bytes=1 << 20,
    overhead_bytes=1 << 20,
)
DUCKDB_TRAITS = SPARK_TRAITS.model_copy(
    update={"name": "duckdb", "distributed": False, "has_coordinator": False, "jvm": False}
)

IDLE = {"/proc/stat": "cpu  100 0 100 800 0 0 0 0 0 0\n"}


def entrant(engine: str, policy: Policy, slots: int = 1, **more: Any) -> Entrant:
    label = f"{engine}/{policy.value}"
    baseline = None if policy is Policy.WIM else f"{engine}/wim"
    return Entrant(
        label=label,
        engine=engine,
        plan=plan(engine, policy, slots),
        **{"baseline": baseline, **more},
    )


def scheduler_state(*spreads: tuple[float, int], **more: Any) -> SchedulerState:
    """Of two chiplets, asked 10 s after the opening; `spreads` are seconds and chiplets."""
    values: dict[str, Any] = {
        "policy": "adaptive",
        "chiplets": 2,
        "seconds": 10.0,
        "threads": (ThreadSeat(tid=7, rank=1, role="worker", cpus=(2,), chiplet=1),),
        "spreads": tuple(
            SpreadChange(t_s=t_s, spread=spread, reason=f"reason {number}")
            for number, (t_s, spread) in enumerate(spreads or ((0.0, 1),))
        ),
    }
    return SchedulerState(**{**values, **more})


def ran(block: int, label: str, state: SchedulerState, slot: int = 0) -> SchedulerRan:
    return SchedulerRan(block=block, label=label, slot=slot, state=state)


WIM = entrant("spark", Policy.WIM)
WIC = entrant("spark", Policy.WIC, 4)
# The same deployment under both schedulers.
DUCKDB = entrant("duckdb", Policy.WIM, scheduler="duckdb")
ATOLL = DUCKDB.model_copy(
    update={"label": "duckdb/wim/atoll", "scheduler": "atoll", "baseline": "duckdb/wim"}
)

FINGERPRINT = Fingerprint(
    hostname_hash="0123456789ab",
    cpu_model="Test <CPU> & Co",
    kernel="6.1.0",
    kernel_cmdline="quiet",
    microcode="0x1",
    virtualization="none",
    thp_enabled="madvise",
    thp_defrag="madvise",
    numa_balancing="0",
    governor="performance",
    affinity="0-3",
    cgroup="/",
    memory_bytes=16 * GIB,
    atoll_version="0.1.0",
    engine_versions={"spark": "4.3.0"},
    java_version="17",
    data_checksum="ab" * 32,
)


def header(*entrants: Entrant, **more: Any) -> RunHeader:
    values: dict[str, Any] = {
        "run_id": "r1",
        "started_unix_s": 1_700_000_000.0,
        "suite": "tpch",
        "scale_factor": 0.01,
        "queries": ("q1", "q6"),
        "blocks_asked": 2,
        "query_limit_s": 60.0,
        "machine": machine(),
        "machine_id": "m1",
        "entrants": entrants or (WIM, WIC),
        "fingerprint": FINGERPRINT,
        "command": "atoll bench spark --policies wim,wic",
    }
    return RunHeader(**{**values, **more})


def result(rows: int = 1, ticket: str = "") -> QueryResult:
    return QueryResult((Column("a", "bigint"),), [(index,) for index in range(rows)], 0.5, ticket)


@dataclass
class FakeClient:
    """Each query takes `seconds` of the fake host's time; `trouble` may raise in it."""

    host: FakeHost
    seconds: float = 1.0
    trouble: Callable[[str], None] = lambda sql: None
    asked: list[str] = field(default_factory=list)

    def execute(self, sql: str, *, timeout_s: float) -> QueryResult:
        self.asked.append(sql)
        self.trouble(sql)
        self.host.sleep(self.seconds)
        return result(ticket=str(len(self.asked)))

    def instances(self, *, timeout_s: float) -> int:
        return 1

    def close(self) -> None: ...


def no_need(stream: int) -> Client:
    """No query fails, so no stream is connected again."""
    raise AssertionError(stream)


@dataclass
class FakeServer:
    streams: list[Client]
    alive: bool = True
    drifted: int = 0
    states: Callable[[], Sequence[SchedulerState]] = lambda: ()
    told: Mapping[str, EngineWork] = field(default_factory=dict)
    profiles: Callable[[str], QueryProfile | None] = lambda sql: None
    watched: Callable[[], Whereabouts] | None = None

    def verify(self) -> tuple[int, int, str]:
        return 10, self.drifted, ""

    def look(self, *, deep: bool) -> tuple[tuple[ProcessSeen, ...], str] | None:
        return None

    def check_alive(self) -> None:
        if not self.alive:
            raise EngineFailed("worker-1 died (killed by SIGKILL)")

    def reconnect(self, stream: int) -> Client:
        self.check_alive()
        return self.streams[stream]

    def shown(self, fault: EngineFailed) -> str:
        return str(fault)

    def schedulers(self) -> Sequence[SchedulerState]:
        return self.states()

    def watch(self) -> Callable[[], Whereabouts] | None:
        return self.watched

    def counted(self) -> Mapping[str, EngineWork]:
        return self.told

    def profile(self, sql: str, *, timeout_s: float) -> QueryProfile | None:
        return self.profiles(sql)


@dataclass
class FakeEngines:
    """Deploys fakes; keeps a log of what came up and down, and that one is up at a time."""

    host: FakeHost
    seconds: dict[str, float] = field(default_factory=dict)
    trouble: Callable[[str, str], None] = lambda label, sql: None
    refuse: Callable[[str, int], None] = lambda label, turn: None
    dead: Callable[[str, int], bool] = lambda label, turn: False
    states: Callable[[Entrant], Sequence[SchedulerState]] = lambda entrant: ()
    told: Mapping[str, EngineWork] = field(default_factory=dict)  # by ticket: 1 is the first query
    profiles: Callable[[str], QueryProfile | None] = lambda sql: None
    watched: Callable[[], Whereabouts] | None = None
    log: list[str] = field(default_factory=list)
    turns: dict[str, int] = field(default_factory=dict)
    asked: dict[str, list[list[str]]] = field(default_factory=dict)

    @contextmanager
    def __call__(self, entrant: Entrant) -> Iterator[FakeServer]:
        turn = self.turns.get(entrant.label, 0)
        self.turns[entrant.label] = turn + 1
        self.refuse(entrant.label, turn)
        assert len(self.log) % 2 == 0, "one deployment is up at a time"
        self.log.append(f"up {entrant.label}")
        clients: list[FakeClient] = [
            FakeClient(
                self.host,
                self.seconds.get(entrant.label, 1.0),
                lambda sql: self.trouble(entrant.label, sql),
            )
            for _ in range(entrant.streams)
        ]
        self.asked[entrant.label] = [client.asked for client in clients]
        try:
            alive = not self.dead(entrant.label, turn)
            yield FakeServer(
                [*clients],
                alive,
                states=lambda: self.states(entrant),
                told=self.told,
                profiles=self.profiles,
                watched=self.watched,
            )
        finally:
            self.log.append(f"down {entrant.label}")


@dataclass
class FakeWork:
    finds: Callable[[str], str | None] = lambda query: None
    differing: Literal["wrong", "changed"] = "wrong"
    dropped: int = 0

    def sql(self, engine: str, query: str) -> str:
        return query

    def check(self, query: str, result: QueryResult) -> str | None:
        return self.finds(query)

    def require_unchanged(self) -> None: ...

    def digest(self, query: str, result: QueryResult) -> str:
        return ""

    def recall(self, earlier: Results) -> None:
        return None

    def drop_from_cache(self) -> float | None:
        self.dropped += 1
        return 0.0


def lines(
    entrants: Sequence[Entrant] = (WIM, WIC),
    blocks: int = 6,
    seconds: dict[str, float] | None = None,
    idle: float = 1.0,
) -> list[Line]:
    """A clean run in which WIC is exactly twice as fast, over a machine that slows down."""
    base = seconds or {"spark/wim": 2.0, "spark/wic": 1.0}
    found: list[Line] = []
    for block in range(blocks):
        for position, one in enumerate(entrants):
            found.append(
                DeploymentUp(
                    block=block,
                    label=one.label,
                    position=position,
                    up_s=5.0,
                    cached_share=0.0,
                    idle_share=idle,
                )
            )
            taken = base.get(one.label, 1.0) * (1 + 0.1 * block)
            found += [
                time(block, one.label, query, share * taken)
                for query, share in (("q1", 1.0), ("q6", 0.25))
            ]
            found.append(PassDone(block=block, label=one.label, seconds=1.25 * taken))
    return [*found, RunEnd(ended_unix_s=1.0, status="complete")]


def time(block: int, label: str, query: str, seconds: float, phase: str = "measured") -> QueryTime:
    return QueryTime(
        block=block,
        label=label,
        phase="warm-up" if phase == "warm-up" else "measured",
        query=query,
        seconds=seconds,
        engine_seconds=seconds,
        rows=1,
        answer="ok",
    )


def query_failed(block: int, label: str, query: str, phase: str = "warm-up") -> QueryFailed:
    return QueryFailed(
        block=block,
        label=label,
        phase="warm-up" if phase == "warm-up" else "measured",
        query=query,
        error=f"no table of {query}",
    )


def results(given: Sequence[Line] | None = None, head: RunHeader | None = None) -> Results:
    return Results(head or header(), tuple(lines() if given is None else given))


class Run:
    """A bench over fakes, and everything that it left."""

    def __init__(self, head: RunHeader | None = None, **engines: Any) -> None:
        self.host = FakeHost(IDLE)
        self.engines = FakeEngines(self.host, **engines)
        self.work = FakeWork()
        self.records: list[Record] = []
        self.ticks: list[Tick] = []
        self.bench = Bench(
            header=head or header(),
            host=self.host,
            deploy=self.engines,
            work=self.work,
            append=self.records.append,
            tick=self.ticks.append,
        )

    @property
    def results(self) -> Results:
        lines: list[Any] = self.records
        return Results(self.bench.header, tuple(lines))

    def of(self, kind: type[Record]) -> list[Any]:
        return [record for record in self.records if isinstance(record, kind)]
