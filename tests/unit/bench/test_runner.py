"""The bench without an engine: order, recording, streams, schedulers."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import pytest

from atoll.bench.passes import run_pass
from atoll.errors import EngineFailed, ServerGone
from atoll.schema.plan import Policy
from atoll.schema.results import (
    BlockFailed,
    DeploymentUp,
    EngineWork,
    Entrant,
    PassDone,
    QueryTime,
    QueryWork,
    RunEnd,
    SchedulerRan,
    SchedulerState,
)
from tests.parts.bench import (
    ATOLL,
    DUCKDB,
    IDLE,
    WIM,
    FakeClient,
    Run,
    entrant,
    header,
    no_need,
    scheduler_state,
)
from tests.parts.fake_host import FakeHost


def test_a_block_is_every_entrant_once_one_up_at_a_time() -> None:
    run = Run()
    run.bench.run()
    assert run.engines.log == [
        "up spark/wim",
        "down spark/wim",
        "up spark/wic",
        "down spark/wic",
        "up spark/wic",
        "down spark/wic",
        "up spark/wim",
        "down spark/wim",
    ]
    assert run.work.dropped == 4
    assert [(up.block, up.label, up.position) for up in run.of(DeploymentUp)] == [
        (0, "spark/wim", 0),
        (0, "spark/wic", 1),
        (1, "spark/wic", 0),
        (1, "spark/wim", 1),
    ]
    assert run.of(RunEnd)[0].status == "complete"


def test_a_pass_warms_up_then_measures_and_checks_both() -> None:
    run = Run(header(WIM, blocks_asked=1))
    run.bench.run()
    assert [(time.phase, time.query, time.seconds) for time in run.of(QueryTime)] == [
        ("warm-up", "q1", 1.0),
        ("warm-up", "q6", 1.0),
        ("measured", "q1", 1.0),
        ("measured", "q6", 1.0),
    ]
    assert run.of(PassDone)[0].seconds >= 2.0


def test_atolls_scheduler_is_asked_after_the_measured_pass() -> None:
    states = [scheduler_state((0.0, 1)), scheduler_state((0.0, 2))]
    run = Run(
        header(DUCKDB, ATOLL, blocks_asked=1),
        states=lambda entrant: states if entrant is ATOLL else (),
    )
    run.bench.run()
    assert [(one.block, one.label, one.slot, one.state) for one in run.of(SchedulerRan)] == [
        (0, "duckdb/wim/atoll", 0, states[0]),
        (0, "duckdb/wim/atoll", 1, states[1]),
    ]
    mine = [type(one) for one in run.records if getattr(one, "label", "") == ATOLL.label]
    assert mine[-4:] == [QueryTime, SchedulerRan, SchedulerRan, PassDone]


def test_what_queries_took_is_recorded_for_the_measured_pass_alone() -> None:
    work = EngineWork(tasks=1, run_s=1, gc_s=0, shuffle_bytes=0, spilled_bytes=0, peak_bytes=7)
    # Queries 1 and 2 warm up. The engine knows no other than these three.
    run = Run(header(WIM, blocks_asked=1), told={"1": work, "4": work, "9": work})
    run.bench.run()
    assert [(one.block, one.label, one.stream, one.query) for one in run.of(QueryWork)] == [
        (0, WIM.label, 0, run.of(QueryTime)[3].query)
    ]
    assert [type(one) for one in run.records][-3:] == [QueryWork, PassDone, RunEnd]


def test_a_scheduler_that_does_not_answer_fails_the_block() -> None:
    def states(entrant: Entrant) -> Sequence[SchedulerState]:
        raise EngineFailed("the SQL host is gone")

    run = Run(header(ATOLL, blocks_asked=1), states=states)
    run.bench.run()
    assert [one.error for one in run.of(BlockFailed)] == ["the SQL host is gone"]
    assert not run.of(PassDone)
    assert sum(one.phase == "measured" for one in run.of(QueryTime)) == 2, "answers are kept"


def test_a_scheduler_is_asked_before_answers_are_checked_and_not_after_a_fault() -> None:
    asked: list[str] = []

    def states(entrant: Entrant) -> Sequence[SchedulerState]:
        asked.append("scheduler")
        return ()

    def differing(query: str) -> str | None:
        asked.append(query)
        return None

    run = Run(header(ATOLL, blocks_asked=1), states=states)
    run.work.finds = differing
    run.bench.run()
    assert asked == ["q1", "q6", "scheduler", "q1", "q6"]

    passes: list[str] = []

    def trouble(label: str, sql: str) -> None:
        passes.append(sql)
        if passes.count("q6") == 2:
            raise ServerGone("the host hung up")

    broken = Run(header(ATOLL, blocks_asked=1), trouble=trouble, states=lambda entrant: 1 / 0)
    broken.bench.run()
    assert [one.error for one in broken.of(BlockFailed)] == ["q6: the host hung up"]


def test_streams_are_dealt_and_rotated() -> None:
    one = entrant("duckdb", Policy.WIC, 2, streams=2)
    run = Run(header(one, blocks_asked=1))
    run.bench.run()
    assert run.engines.asked["duckdb/wic"] == [["q1", "q6"] * 2, ["q6", "q1"] * 2]
    assert {time.stream for time in run.of(QueryTime)} == {0, 1}
    assert len(run.of(QueryTime)) == 8


def test_resuming_goes_on_where_it_was() -> None:
    run = Run(header(blocks_asked=3))
    run.bench.run(first_block=2)
    assert {one.block for one in run.of(PassDone)} == {2}
    done = Run(header(blocks_asked=3))
    done.bench.run(first_block=3)
    assert done.engines.log == []


def test_no_thread_is_left() -> None:
    before = set(threading.enumerate())
    Run().bench.run()
    for thread in set(threading.enumerate()) - before:
        thread.join(60)  # it may be at its very end
        assert not thread.is_alive(), thread


def test_ticks_tell_what_is_done() -> None:
    run = Run(header(WIM, blocks_asked=1))
    run.bench.run()
    assert [tick.doing for tick in run.ticks] == [
        "starting",
        "warming up",
        "waiting for a quiet machine",
        "measuring",
        "profiling q1",
        "stopping",
        "done",
    ]


def test_a_stream_that_is_done_is_not_overdue(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no query out, however long the other one takes for all of its own."""
    monkeypatch.setattr("atoll.bench.passes._POLL_S", 0.001)
    host = FakeHost(IDLE)
    short, long = FakeClient(host, 0.0), FakeClient(host, 55.0)

    def wait_for_the_short_one(sql: str) -> None:
        while not short.asked or threading.active_count() > before + 1:
            time.sleep(0.001)

    long.trouble = wait_for_the_short_one
    before = threading.active_count()
    queries = [f"q{number}" for number in range(8)]
    ran = run_pass(
        [short, long], [["q0"], queries], str, limit_s=60.0, host=host, reconnect=no_need
    )
    assert ran.fault is None
    assert len(ran.answers) == 9


def test_a_changed_answer_is_told_and_the_bench_goes_on() -> None:
    run = Run(header(WIM, blocks_asked=2))
    run.work.differing = "changed"
    run.work.finds = lambda query: "row 1 is (2); expected (1)" if query == "q6" else None
    run.bench.run()
    assert {(one.query, one.answer) for one in run.of(QueryTime)} == {
        ("q1", "ok"),
        ("q6", "changed"),
    }
    assert len(run.of(PassDone)) == 2
    assert run.of(RunEnd)[0].status == "complete"
