"""A deployment in the bench, without one: which engine is started, who is asked afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from atoll.bench import deploy
from atoll.bench.deploy import Deployer, LiveServer
from atoll.engines.api import Data
from atoll.engines.duckdb.engine import DuckDBEngine
from atoll.engines.spark.engine import SparkEngine
from atoll.errors import EngineFailed
from atoll.schema.results import Entrant, SchedulerState
from atoll.supervise.launch import Running
from tests.parts.bench import ATOLL, DUCKDB, WIM, FakeClient, scheduler_state
from tests.parts.bench_plans import machine
from tests.parts.fake_host import FakeHost
from tests.parts.faults import fails

STATE = scheduler_state((0.0, 1), (2.0, 2))


class ScheduledFake(FakeClient):
    def scheduler(self, *, timeout_s: float) -> SchedulerState:
        return STATE


def server(entrant: Entrant) -> LiveServer:
    running = SimpleNamespace(clients=[ScheduledFake(FakeHost())], check=lambda: None)
    return LiveServer(cast(Running, running), DuckDBEngine(), entrant, [], FakeHost())


def test_only_atolls_scheduler_is_asked() -> None:
    assert server(ATOLL).schedulers() == [STATE]
    assert server(DUCKDB).schedulers() == []
    assert server(WIM).schedulers() == []


def test_every_instance_of_the_plan_must_be_left() -> None:
    server(DUCKDB).check_alive()
    assert DUCKDB.plan is not None
    two = DUCKDB.plan.model_copy(update={"slots": DUCKDB.plan.slots * 2})
    with fails(EngineFailed, found=1, wanted=2):
        server(DUCKDB.model_copy(update={"plan": two})).check_alive()


@pytest.mark.parametrize(
    ("entrant", "scheduler"), [(WIM, None), (DUCKDB, "duckdb"), (ATOLL, "atoll")]
)
def test_the_entrants_scheduler_is_started(
    entrant: Entrant, scheduler: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Any] = []

    @contextmanager
    def launch(plan: object, engine: object, **_: object) -> Iterator[Any]:
        started.append(engine)
        yield SimpleNamespace(clients=[], deployment=SimpleNamespace(endpoints=["s"]))

    def connect(engine: object, endpoints: Sequence[str], **_: object) -> list[FakeClient]:
        return [FakeClient(FakeHost()) for _ in endpoints]

    monkeypatch.setattr(deploy, "launch", launch)
    for engine in (DuckDBEngine, SparkEngine):
        monkeypatch.setattr(engine, "connect", connect)
    deployer = Deployer(
        engines={"spark": SparkEngine(), "duckdb": DuckDBEngine()},
        machine=machine(),
        host=FakeHost(),
        data=Data("none", "", ()),
        name="bench",
        progress=lambda line: None,
    )
    with deployer(entrant):
        pass
    assert getattr(started[0], "scheduler", None) == scheduler
