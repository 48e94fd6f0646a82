"""Queries that fail while their engine lives on: named, left out, and the rest is measured."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from rich.console import Console

from atoll.bench.analysis import summarise
from atoll.bench.outcome import require_answers, require_pairs, require_speed
from atoll.bench.passes import run_pass
from atoll.bench.results import Results
from atoll.engines.api import Client, QueryResult
from atoll.errors import CheckFailed, EngineFailed, ServerGone, UsageError
from atoll.report.bench import verdicts
from atoll.report.bench.render import render
from atoll.report.bench.text import bench_text
from atoll.schema.plan import Policy
from atoll.schema.results import BlockFailed, PassDone, QueryFailed, QueryTime, RunEnd
from atoll.schema.summary import BenchSummary
from tests.parts.bench import (
    IDLE,
    WIC,
    WIM,
    FakeClient,
    Run,
    entrant,
    header,
    lines,
    query_failed,
    results,
)
from tests.parts.bench import time as query_time
from tests.parts.fake_host import FakeHost
from tests.parts.faults import fails

HUNDRED = tuple(f"q{number}" for number in range(1, 101))
REFUSED = HUNDRED[3:10]
HUNG = ("q20", "q40", "q60")


def bad(label: str, sql: str) -> None:
    if sql in REFUSED:
        raise EngineFailed(f"line 1:8: Column '{sql}' cannot be resolved")
    if sql in HUNG:
        raise EngineFailed("no answer within 60 s; the query was cancelled")


def left_out(run: Run) -> list[tuple[int, str, str, str]]:
    return [(one.block, one.label, one.phase, one.query) for one in run.of(QueryFailed)]


def test_of_a_hundred_queries_ninety_are_measured() -> None:
    run = Run(header(queries=HUNDRED, blocks_asked=5), trouble=bad)
    run.bench.run()
    assert not run.of(BlockFailed)
    assert {one.query for one in run.of(QueryFailed)} == {*REFUSED, *HUNG}
    assert {(one.block, one.label, one.phase) for one in run.of(QueryFailed)} == {
        (0, "spark/wim", "warm-up")
    }
    # Each was sent once in the whole run; the good ones twice in each of ten deployments.
    sent = Counter(
        sql for streams in run.engines.asked.values() for stream in streams for sql in stream
    )
    assert all(sent[query] <= 1 for query in (*REFUSED, *HUNG))
    summary = summarise(run.results)
    assert len(summary.queries) == 90 and len(summary.left_out) == 10
    assert verdicts.state(summary) == "5 complete blocks, 10 queries left out, run complete"
    speedup = verdicts.speedup_of(summary.entrants[1], "geomean")
    assert speedup is not None and speedup.blocks == 5 and speedup.interval is not None
    with fails(EngineFailed, count=10, of="100 queries", first="q4"):
        require_answers(summary)


def test_a_failure_is_reported_at_once() -> None:
    def trouble(label: str, sql: str) -> None:
        if sql == "q1" and len(run.ticks) > 2:
            assert run.ticks[2].doing.startswith("left out")
        bad(label, sql)

    run = Run(header(WIM, queries=("q4", "q1"), blocks_asked=1))
    run.engines.trouble = trouble
    run.bench.run()
    (said,) = [tick.doing for tick in run.ticks if tick.doing.startswith("left out")]
    assert said == "left out: q4 failed (warm-up): line 1:8: Column 'q4' cannot be resolved"


def test_what_fails_under_one_entrant_is_run_by_none_from_then_on() -> None:
    """In block 2, in the measured pass of the first in turn."""
    turns = Counter[str]()

    def trouble(label: str, sql: str) -> None:
        if label == "spark/wic" and sql == "q6":
            turns[label] += 1
            if turns[label] == 4:
                raise EngineFailed("out of memory")

    run = Run(header(blocks_asked=4), trouble=trouble)
    run.bench.run()
    assert left_out(run) == [(1, "spark/wic", "measured", "q6")]
    asked = {(one.block, one.label) for one in run.of(QueryTime) if one.query == "q6"}
    assert asked == {(0, "spark/wim"), (0, "spark/wic"), (1, "spark/wic")}
    assert len(run.of(PassDone)) == 8, "no block fails"
    wim, wic = summarise(run.results).entrants
    assert (wim.blocks_done, wic.blocks_done) == (4, 4)
    for one, blocks in ((wim, 3), (wic, 2)):
        assert verdicts.times_of(one, "q6") is None
        whole = verdicts.times_of(one, "pass")
        # Only passes without the query: it made others longer, and one of them failed in it.
        assert whole is not None and whole.max_s == pytest.approx(1.0)
        assert whole.blocks == blocks


def test_if_every_query_fails_the_first_error_ends_the_run() -> None:
    run = Run(header(queries=REFUSED), trouble=bad)
    with fails(EngineFailed, query="q4", label="spark/wim", why="Column 'q4' cannot be resolved"):
        run.bench.run()
    (end,) = run.of(RunEnd)
    assert end.status == "stopped" and "every query failed" in end.reason
    assert run.engines.log == ["up spark/wim", "down spark/wim"]


def test_a_query_that_kills_a_worker_fails_its_block_which_names_it() -> None:
    def trouble(label: str, sql: str) -> None:
        if label == "spark/wic" and sql == "q6" and run.engines.turns[label] == 1:
            raise EngineFailed("lost an executor")

    run = Run(dead=lambda label, turn: label == "spark/wic" and turn == 0)
    run.engines.trouble = trouble
    run.bench.run()
    (failed,) = run.of(BlockFailed)
    assert failed.label == "spark/wic"
    assert failed.error == "q6: lost an executor; then worker-1 died (killed by SIGKILL)"
    assert not run.of(QueryFailed)
    assert len(run.of(PassDone)) == 3


def test_a_lost_server_fails_the_block_which_names_the_query() -> None:
    def trouble(label: str, sql: str) -> None:
        if sql == "q6" and run.engines.turns[label] == 1:
            raise ServerGone("it hung up")

    run = Run(header(WIM))
    run.engines.trouble = trouble
    run.bench.run()
    assert [one.error for one in run.of(BlockFailed)] == ["q6: it hung up"]
    assert not run.of(QueryFailed) and len(run.of(PassDone)) == 1


def test_a_query_that_loses_its_server_twice_is_left_out() -> None:
    """Once may be chance, and a bench of two such queries still comes to its end."""

    def trouble(label: str, sql: str) -> None:
        if sql in ("q6", "q9"):
            raise ServerGone("it hung up")

    run = Run(header(WIM, queries=("q1", "q6", "q9"), blocks_asked=6), trouble=trouble)
    run.bench.run()
    assert [(one.block, one.error) for one in run.of(BlockFailed)] == [
        (0, "q6: it hung up"),
        (1, "q6: it hung up"),
        (2, "q9: it hung up"),
        (3, "q9: it hung up"),
    ]
    assert [(one.block, one.query) for one in run.of(QueryFailed)] == [(1, "q6"), (3, "q9")]
    assert [one.block for one in run.of(PassDone)] == [4, 5]


def test_what_fails_in_a_pass_that_does_not_finish_is_sent_twice_at_most() -> None:
    def trouble(label: str, sql: str) -> None:
        if sql == "q6":
            raise ServerGone("it hung up")
        bad(label, sql)

    run = Run(header(WIM, queries=("q20", "q6", "q1"), blocks_asked=3), trouble=trouble)
    run.bench.run()
    assert [(one.block, one.query, one.error) for one in run.of(QueryFailed)] == [
        (1, "q20", "no answer within 60 s; the query was cancelled"),
        (1, "q6", "the engine was lost during it 2 times"),
    ]
    assert [one.block for one in run.of(PassDone)] == [2]


def test_a_stream_skips_what_failed_in_another() -> None:
    run = Run(header(entrant("duckdb", Policy.WIC, 2, streams=2), blocks_asked=1), trouble=bad)
    run.bench.header = run.bench.header.model_copy(update={"queries": ("q4", "q1", "q2", "q3")})
    run.bench.run()
    assert [one.query for one in run.of(QueryFailed)] == ["q4"]
    (streams,) = run.engines.asked.values()
    assert sum(stream.count("q4") for stream in streams) <= 2
    measured = [one for one in run.of(QueryTime) if one.phase == "measured"]
    assert Counter(one.query for one in measured) == {"q1": 2, "q2": 2, "q3": 2}


@dataclass
class Closing(FakeClient):
    """As real clients: after a query past its limit it answers nothing any more."""

    is_closed: bool = False

    def execute(self, sql: str, *, timeout_s: float) -> QueryResult:
        if self.is_closed:
            raise EngineFailed("the connection was closed")
        try:
            return super().execute(sql, timeout_s=timeout_s)
        except EngineFailed:
            self.is_closed = True
            raise

    def close(self) -> None:
        self.is_closed = True


def hanging(sql: str) -> None:
    if sql == "slow":
        raise EngineFailed("no answer within 60 s; the query was cancelled")


def one_pass(reconnect: Callable[[int], Client], host: FakeHost) -> tuple[list[str], list[str]]:
    order = ["q1", "slow", "q2", "slow", "q3"]
    ran = run_pass(
        [Closing(host, trouble=hanging)], [order], str, limit_s=60, host=host, reconnect=reconnect
    )
    assert ran.fault is None
    return [one.query for one in ran.answers], [one.query for one in ran.unanswered]


def test_after_a_query_past_its_limit_the_stream_has_a_new_connection() -> None:
    host = FakeHost(IDLE)
    assert one_pass(lambda stream: Closing(host, trouble=hanging), host) == (
        ["q1", "q2", "q3"],
        ["slow"],
    )


def test_a_pass_given_up_leaves_no_stream_that_goes_on() -> None:
    """Its clients are closed then, which a stream must not take for a failed query."""
    host = FakeHost(IDLE)
    clients = [Closing(host), Closing(host)]

    def lost(sql: str) -> None:
        raise ServerGone("it hung up")

    clients[1].trouble = lost
    asked: list[int] = []

    def reconnect(stream: int) -> Client:
        asked.append(stream)
        return clients[stream]

    ran = run_pass(clients, [[], ["q1"]], str, limit_s=60, host=host, reconnect=reconnect)
    assert isinstance(ran.fault, ServerGone) and asked == []


# ---- how long, how often -------------------------------------------------------------------------


def test_as_many_blocks_as_fit_into_the_time() -> None:
    """A pass takes 2 s, a block of two entrants with a warm-up 8 s and the waits for quiet."""
    run = Run(header(blocks_asked=None))
    run.bench.time_s = 60.0
    run.bench.run()
    blocks = {one.block for one in run.of(PassDone)}
    taken = run.host.now_s
    assert len(blocks) > 2 and taken <= 60.0 < taken * (1 + 1 / len(blocks))
    assert {tick.blocks for tick in run.ticks} == {None}
    short = Run(header(blocks_asked=None))
    short.bench.time_s = 0.1
    short.bench.run(first_block=3)
    assert {one.block for one in short.of(PassDone)} == {3}, "at least one"


@pytest.mark.parametrize("warmups", [0, 3])
def test_warm_up_passes_are_counted(warmups: int) -> None:
    run = Run(header(WIM, blocks_asked=1, warmups=warmups))
    run.bench.run()
    phases = Counter(one.phase for one in run.of(QueryTime))
    assert phases == Counter({"warm-up": 2 * warmups, "measured": 2})


# ---- what users read -----------------------------------------------------------------------------


def failing() -> Results:
    gone = query_failed(0, "spark/wic", "q6")
    return results([gone, *(one for one in lines() if getattr(one, "query", "") != "q6")])


def printed(summary: BenchSummary) -> str:
    out = io.StringIO()
    Console(file=out, width=80).print(bench_text(summary))
    return " ".join(out.getvalue().split())


def test_every_format_names_the_query_and_its_error() -> None:
    found = failing()
    summary = summarise(found)
    words = "q6 failed on spark/wic in block 1 (warm-up) and is left out: no table of q6"
    assert [one.message for one in summary.warnings if one.code == "query-failed"] == [words]
    assert words in printed(summary)
    assert words in render(found, "html")
    assert "no table of q6" in render(found, "md")
    rows = [
        row for row in csv.DictReader(io.StringIO(render(found, "csv"))) if row["query"] == "q6"
    ]
    assert [(row["answer"], row["used"], row["detail"]) for row in rows] == [
        ("failed", "no", "no table of q6")
    ]


def test_right_answers_are_reported() -> None:
    assert "All answers were right (24 checked)." in printed(summarise(results()))
    assert "All answers were right" in render(results(), "md")
    own = results(head=header(scale_factor=None, answers_known=False))
    assert verdicts.answers(summarise(own)) == "All answers to a query were the same (24 compared)."
    changed = [
        one.model_copy(update={"answer": "changed"})
        if isinstance(one, QueryTime) and one.block == 0
        else one
        for one in lines()
    ]
    unknown = header(scale_factor=None, answers_known=False)
    said = verdicts.answers(summarise(results(changed, unknown)))
    assert said == "4 of 24 answers differed from the first answer to its query."


# ---- the exit code -------------------------------------------------------------------------------


def test_slower_is_only_what_is_slower_beyond_doubt() -> None:
    slow = {"spark/wim": 1.0, "spark/wic": 1.5}
    sure = summarise(results(lines(seconds=slow)))
    require_speed(sure, 1.6)
    with fails(CheckFailed, label="spark/wic", base="spark/wim", value="1.50", allowed="1.2"):
        require_speed(sure, 1.2)
    require_speed(summarise(results()), 1.0)  # faster
    require_speed(summarise(results(lines(seconds=slow, blocks=4))), 1.2)  # cannot tell
    noisy = [
        one.model_copy(update={"seconds": one.seconds * (0.5 if one.block % 2 else 2.0)})
        if isinstance(one, QueryTime) and one.label == "spark/wic"
        else one
        for one in lines(seconds=slow)
    ]
    require_speed(summarise(results(noisy)), 1.2)


def test_without_a_second_one_nothing_can_be_slower() -> None:
    require_pairs(header(WIM, WIC))
    mark = header().fingerprint.model_copy(update={"emulated": True})
    for head in (header(WIM), header(WIM, WIC, fingerprint=mark)):
        with fails(UsageError, option="--fail-if-slower"):
            require_pairs(head)


def test_one_block_is_no_evidence() -> None:
    summary = summarise(results(lines(blocks=1)))
    (said,) = verdicts.verdicts(summary)
    assert said.startswith("Cannot tell whether spark/wic is faster than spark/wim: ~2.00×")
    for kind in ("html", "md"):
        text = render(results(lines(blocks=1)), kind)
        assert "cannot tell" in text and "~2.00×" in text
        assert "2.00×" not in text.replace("~2.00×", "")
    assert "2.00×" not in printed(summary).replace("~2.00×", "")


def test_percentiles_need_enough_runs() -> None:
    def runs(count: int) -> BenchSummary:
        streams = [
            query_time(0, "spark/wim", "q1", 1.0 + stream).model_copy(update={"stream": stream})
            for stream in range(count)
        ]
        one = WIM.model_copy(update={"streams": count})
        return summarise(
            results(
                [*streams, PassDone(block=0, label="spark/wim", seconds=9.0)],
                header(one, queries=("q1",)),
            )
        )

    for count, p95, p99 in ((19, None, None), (20, 19.0, None), (100, 95.0, 99.0)):
        summary = runs(count)
        q1 = verdicts.times_of(summary.entrants[0], "q1")
        assert q1 is not None and (q1.runs, q1.p95_s, q1.p99_s) == (count, p95, p99)
        assert ("p95" in printed(summary)) == (p95 is not None)
