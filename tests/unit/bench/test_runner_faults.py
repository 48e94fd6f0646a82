"""The bench without an engine: failures, wrong answers, interruption, clusters that go."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from atoll.bench.runner import WrongAnswer
from atoll.errors import ClusterGone, EngineFailed, ServerGone
from atoll.schema.plan import Policy
from atoll.schema.results import (
    BlockFailed,
    Entrant,
    PassDone,
    QueryTime,
    RunEnd,
)
from tests.parts.bench import (
    WIM,
    FakeServer,
    Run,
    entrant,
    header,
)
from tests.parts.faults import fails


def test_a_failed_deployment_is_marked_and_the_bench_goes_on() -> None:
    def refuse(label: str, turn: int) -> None:
        if label == "spark/wic" and turn == 0:
            raise EngineFailed("worker-0 died (exit status 1) while it started")

    run = Run(refuse=refuse)
    run.bench.run()
    failed = run.of(BlockFailed)
    assert [(one.block, one.label) for one in failed] == [(0, "spark/wic")]
    assert "worker-0 died" in failed[0].error
    assert len(run.of(PassDone)) == 3
    assert run.of(RunEnd)[0].status == "complete"


def test_a_worker_that_dies_within_a_pass_fails_the_block() -> None:
    """Also where the engine itself carries on with one instance fewer."""
    run = Run(dead=lambda label, turn: label == "spark/wic" and turn == 0)
    run.bench.run()
    assert [one.label for one in run.of(BlockFailed)] == ["spark/wic"]
    assert (0, "spark/wic") not in {(one.block, one.label) for one in run.of(PassDone)}


def test_a_server_lost_in_a_query_leaves_the_ended_ones() -> None:
    def trouble(label: str, sql: str) -> None:
        if label == "spark/wic" and sql == "q6":
            raise ServerGone("it hung up")

    run = Run(header(blocks_asked=1), trouble=trouble)
    run.bench.run()
    assert run.of(BlockFailed)[0].error == "q6: it hung up"
    assert [t.query for t in run.of(QueryTime) if t.label == "spark/wic"] == ["q1"]
    assert run.engines.log[-1] == "down spark/wic"


def test_failures_in_a_row_stop_the_bench() -> None:
    def refuse(label: str, turn: int) -> None:
        raise EngineFailed("no Java")

    run = Run(header(blocks_asked=9), refuse=refuse)
    named = {"label": "spark/wic", "block": "block 2", "why": "no Java"}
    with fails(EngineFailed, failures=3, **named):
        run.bench.run()
    assert len(run.of(BlockFailed)) == 3
    assert run.of(RunEnd)[0].status == "stopped"


def test_failures_of_one_entrant_alone_do_not_stop_the_others() -> None:
    def refuse(label: str, turn: int) -> None:
        if label == "spark/wic":
            raise EngineFailed("no room")

    run = Run(header(blocks_asked=4), refuse=refuse)
    run.bench.run()
    assert len(run.of(BlockFailed)) == 4
    assert len(run.of(PassDone)) == 4


@pytest.mark.parametrize("phase", ["warm-up", "measured"])
def test_a_wrong_answer_ends_the_bench(phase: str) -> None:
    run = Run()
    asked = 0

    def differing(query: str) -> str | None:
        nonlocal asked
        asked += query == "q6"
        wrong = query == "q6" and asked == (1 if phase == "warm-up" else 2)
        return "row 1 is (1); expected (2)" if wrong else None

    run.work.finds = differing
    with fails(WrongAnswer, query="q6", block="block 1", phase=phase, label="spark/wim") as caught:
        run.bench.run()
    assert caught.value.detail == "row 1 is (1); expected (2)"
    assert caught.value.exit_code == 1
    assert run.engines.log[-1] == "down spark/wim"
    last = run.of(QueryTime)[-1]
    assert (last.answer, last.phase, last.detail) == ("wrong", phase, "row 1 is (1); expected (2)")
    assert run.of(RunEnd)[0].status == "stopped"


def test_interruption_takes_the_deployment_down_and_says_stopped() -> None:
    run = Run()

    def refuse(label: str, turn: int) -> None:
        if label == "spark/wic":
            raise KeyboardInterrupt

    run.engines.refuse = refuse
    with pytest.raises(KeyboardInterrupt):
        run.bench.run()
    assert run.engines.log == ["up spark/wim", "down spark/wim"]
    end = run.of(RunEnd)[0]
    assert (end.status, end.reason) == ("stopped", "interrupted")


def test_a_fault_of_ours_in_a_stream_is_not_swallowed() -> None:
    def trouble(label: str, sql: str) -> None:
        raise ZeroDivisionError

    run = Run(trouble=trouble)
    with pytest.raises(ZeroDivisionError):
        run.bench.run()
    assert run.engines.log == ["up spark/wim", "down spark/wim"]


def test_a_client_that_hangs_past_its_limit_fails_the_block(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One stream hangs in its library, and the other goes on answering."""
    monkeypatch.setattr("atoll.bench.passes._POLL_S", 0.01)
    freed = threading.Event()
    run = Run(header(entrant("duckdb", Policy.WIC, 2, streams=2), blocks_asked=1))

    def trouble(label: str, sql: str) -> None:
        if sql == "q6":
            run.host.sleep(60 + 10.5)  # the limit of the header, and more than SLACK_S
            freed.wait()

    run.engines.trouble = trouble
    run.bench.run()
    freed.set()
    (failed,) = run.of(BlockFailed)
    assert failed.error.startswith("q6 hangs: ")
    assert run.engines.log[-1] == "down duckdb/wic"


def test_a_cluster_that_is_gone_stops_the_bench_and_leaves_its_block_open() -> None:
    def refuse(label: str, turn: int) -> None:
        if turn == 1:
            raise ClusterGone("spark/wim does not answer any more")

    run = Run(header(WIM, blocks_asked=5), refuse=refuse)
    with pytest.raises(ClusterGone):
        run.bench.run()
    assert run.of(BlockFailed) == []
    assert [one.block for one in run.of(PassDone)] == [0]
    (end,) = run.of(RunEnd)
    assert (end.status, end.reason) == ("stopped", "spark/wim does not answer any more")


def test_a_deployment_that_does_not_come_down_keeps_its_pass() -> None:
    run = Run(header(WIM, blocks_asked=1))
    stubborn = run.engines.__call__

    @contextmanager
    def deploy(entrant: Entrant) -> Iterator[FakeServer]:
        with stubborn(entrant) as server:
            yield server
        raise EngineFailed("bench: its keeper process did not exit")

    run.bench.deploy = deploy
    run.bench.run()
    assert len(run.of(PassDone)) == 1
    assert run.of(BlockFailed) == []
    assert run.ticks[-1].doing == "failed: bench: its keeper process did not exit"
