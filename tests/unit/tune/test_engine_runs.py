"""A run on an engine is a checked pass of the queries under the plan of a setting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from atoll.bench.api import Deploy
from atoll.bench.job import Job, Length
from atoll.errors import EngineFailed
from atoll.schema.advice import SubjectKind
from atoll.schema.plan import Malloc, Plan, Policy
from atoll.schema.results import Entrant
from atoll.tune.engine_runs import EngineRuns, plan_of
from atoll.tune.factors import FACTORS, Recipe, factors, recipe
from atoll.tune.runs import RunFault
from tests.parts.advice import situation, subject
from tests.parts.bench import (
    DUCKDB_TRAITS,
    IDLE,
    FakeEngines,
    FakeServer,
    FakeWork,
    entrant,
    header,
)
from tests.parts.fake_host import FakeHost
from tests.parts.knobs import Kernel
from tests.parts.machines import plain
from tests.parts.tuning import FakeRunner

DUCKDB = entrant("duckdb", Policy.WIM, streams=2)


class Runs:
    def __init__(self, work: FakeWork | None = None, **engines: Any) -> None:
        self.host = FakeHost(IDLE)
        self.plans: list[Plan | None] = []
        engine = FakeEngines(self.host, **engines)

        @contextmanager
        def deploy(entrant: Entrant) -> Iterator[FakeServer]:
            self.plans.append(entrant.plan)
            with engine(entrant) as server:
                yield server

        def deployer(*_: object) -> Deploy:
            return deploy

        self.work = work or FakeWork()
        self.job = Job(header(DUCKDB), self.work, deployer, Length())
        self.runs = EngineRuns(self.host, self.job, DUCKDB_TRAITS)


def test_a_pass_of_all_queries_is_measured_after_one_that_warms_up() -> None:
    made = Runs()
    ran = made.runs.run(Recipe(), limit_s=60)
    assert list(ran.latencies_s) == pytest.approx([1.0] * 4)  # two queries in two streams
    assert ran.seconds > 0 and ran.cpu_s is None and ran.idle_share == 1.0
    assert made.work.dropped == 1 and made.plans == [DUCKDB.plan]


def test_a_setting_is_a_plan_of_its_own() -> None:
    made = Runs()
    made.runs.run(Recipe(axes={"malloc": "tbbmalloc", "cores": "2"}), limit_s=60)
    (plan,) = made.plans
    assert plan is not None and plan.malloc is Malloc.TBBMALLOC
    assert [len(slot.cpus or ()) for slot in plan.slots] == [2]
    assert plan_of(Recipe(), made.job, DUCKDB_TRAITS) == DUCKDB.plan


def test_a_runner_waits_beside_the_engine_only_if_switches_are_turned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It restores them after kill -9."""
    made = Runs()
    started: list[FakeRunner] = []

    def start(host: object, knobs_folder: str) -> FakeRunner:
        assert knobs_folder == "/knobs"
        started.append(FakeRunner(Kernel(), lambda argv, number: {}))
        return started[-1]

    monkeypatch.setattr("atoll.tune.engine_runs.start_runner", start)
    EngineRuns(made.host, made.job, DUCKDB_TRAITS).end()
    assert not started
    runs = EngineRuns(made.host, made.job, DUCKDB_TRAITS, knobs_folder="/knobs")
    assert not started[0].closed
    runs.end()
    assert started[0].closed


def refuse(label: str, sql: str) -> None:
    raise EngineFailed("no such table")


@pytest.mark.parametrize(
    ("made", "axes", "why"),
    [
        (lambda: Runs(FakeWork(lambda query: "2 rows, not 1")), {}, "the answer to q1 is wrong"),
        (lambda: Runs(trouble=refuse), {}, "no such table"),
        (lambda: Runs(dead=lambda label, turn: True), {}, "died"),
        (Runs, {"placement": "dense"}, "wim sets no mask"),
        (Runs, {"cores": "64"}, "64"),
    ],
)
def test_what_cannot_be_measured_has_its_reason(
    made: Callable[[], Runs], axes: dict[str, str], why: str
) -> None:
    with pytest.raises(RunFault, match=why):
        made().runs.run(Recipe(axes=axes), limit_s=60)


def test_factors_of_an_engine_are_axes_of_its_plan() -> None:
    machine = plain(cores=4, smt=2)
    where = situation(machine, subject(machine, kind=SubjectKind.ENGINE, name="duckdb"))
    varied = {one.name: one for one in factors(tuple(FACTORS), where)}
    assert varied["smt"].values == ("on",) and varied["workers"].values == ("2", "1")

    def made(**values: str) -> Recipe:
        return recipe(tuple(sorted(values.items())), tuple(varied.values()), where)

    both = made(malloc="tbbmalloc", thp="never", smt="on")
    assert both.axes == {"malloc": "tbbmalloc", "thp": "never", "smt": "on"}
    assert both.options == "--malloc tbbmalloc --thp never --smt" and both.prefix == ""
    assert made(workers="2").axes == {"cores": "2"} and made(workers="2").options == ""
