"""The bench with real DuckDB: whole, resumed, interrupted, with deaths and wrong answers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from atoll.bench.job import NAME, Job
from atoll.bench.results import read_results
from atoll.bench.runner import Tick, WrongAnswer
from atoll.bench.suite_work import SuiteWork
from atoll.engines.duckdb.engine import DuckDBEngine
from atoll.errors import EngineFailed
from atoll.host.local import LocalHost
from atoll.report.bench.render import render
from atoll.schema.base import parse
from atoll.schema.results import (
    BlockFailed,
    DeploymentUp,
    PassDone,
    QueryTime,
    SchedulerRan,
    VerifyResult,
)
from atoll.schema.summary import BenchSummary
from atoll.supervise import records
from tests.parts.bench_jobs import run, small_job

ATOLL = (sys.executable, "-m", "atoll", "bench", "duckdb", "--policies", "wim,wic")
SMALL = ("--sf", "0.01", "--queries", "1,6")


def atoll(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*ATOLL, *SMALL, *arguments], capture_output=True, text=True, timeout=300, check=False
    )


@pytest.fixture
def job() -> Job:
    return small_job("duckdb", "1,6")


def test_a_whole_bench_then_resumed(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    done = atoll("--blocks", "2", "-o", str(path), "--json")
    assert done.returncode == 0, done.stderr
    summary = parse(BenchSummary, done.stdout, where="stdout")
    assert [one.label for one in summary.entrants] == ["duckdb/wim", "duckdb/wic"]
    assert [one.blocks_done for one in summary.entrants] == [2, 2]
    assert len({(one.threads, one.heap_bytes, one.streams) for one in summary.entrants}) == 1

    found = read_results(path)
    ups = [line for line in found.lines if isinstance(line, DeploymentUp)]
    assert [(up.block, up.label) for up in ups] == [
        (0, "duckdb/wim"),
        (0, "duckdb/wic"),
        (1, "duckdb/wic"),
        (1, "duckdb/wim"),
    ]
    times = [line for line in found.lines if isinstance(line, QueryTime)]
    servers = max(one.instances or 0 for one in summary.entrants)
    assert len(times) == 2 * 2 * 2 * 2 * servers  # blocks, entrants, phases, queries, streams
    assert {line.answer for line in times} == {"ok"}
    looks = [line for line in found.lines if isinstance(line, VerifyResult)]
    assert len(looks) == 4
    assert all(look.threads > 0 and look.drifted == 0 for look in looks)

    # Cut it off in the middle of a line of the second block, as a power cut would.
    whole = path.read_bytes()
    second = whole.index(b'"block":1')
    path.write_bytes(whole[: second + 40])
    again = atoll("--blocks", "2", "-o", str(path), "--resume")
    assert again.returncode == 0, again.stderr
    resumed = read_results(path)
    assert resumed.whole_blocks == 2
    assert resumed.header == found.header
    assert resumed.lines[:4] == found.lines[:4]
    assert sum(isinstance(line, PassDone) for line in resumed.lines) == 4

    refused = atoll("--blocks", "2", "-o", str(path))
    assert refused.returncode == 2
    assert "--resume" in refused.stderr
    other = subprocess.run(
        [*ATOLL, "--sf", "0.01", "--queries", "1", "-o", str(path), "--resume"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert other.returncode == 2
    assert "queries" in other.stderr
    assert len(other.stderr.strip().splitlines()[0]) < 400


def test_both_schedulers_in_the_same_blocks(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    both = ("--policies", "wim", "--scheduler", "duckdb,atoll", "-o", str(path))
    done = atoll(*both, "--blocks", "1", "--json")
    assert done.returncode == 0, done.stderr
    summary = parse(BenchSummary, done.stdout, where="stdout")
    assert [(one.label, one.scheduler, one.baseline) for one in summary.entrants] == [
        ("duckdb/wim", "duckdb", None),
        ("duckdb/wim/atoll", "atoll", "duckdb/wim"),
    ]
    own, mine = summary.entrants
    assert own.threads == mine.threads and own.heap_bytes == mine.heap_bytes
    assert mine.speedups and mine.spread is not None
    assert 1 <= mine.spread.lowest <= mine.spread.highest <= mine.spread.chiplets

    found = read_results(path)
    (ran,) = [line for line in found.lines if isinstance(line, SchedulerRan)]
    assert (ran.label, ran.slot, ran.state.policy) == ("duckdb/wim/atoll", 0, "adaptive")
    assert sum(seat.role == "worker" for seat in ran.state.threads) == (mine.threads or 0) - 1
    may_use = os.sched_getaffinity(0)
    assert all(set(seat.cpus) <= may_use and seat.cpus for seat in ran.state.threads)
    (done_s,) = [
        line.seconds
        for line in found.lines
        if isinstance(line, PassDone) and line.label == ran.label
    ]
    assert ran.state.seconds > done_s
    assert 0 <= ran.state.spreads[0].t_s < ran.state.seconds - done_s
    looks = [line for line in found.lines if isinstance(line, VerifyResult)]
    assert [look.drifted for look in looks] == [0, 0], looks
    assert {line.answer for line in found.lines if isinstance(line, QueryTime)} == {"ok"}
    assert 'class="step ' in render(found, "html")

    alone = atoll("--policies", "wim", "--scheduler", "atoll", "-o", str(path), "--resume")
    assert alone.returncode == 2
    assert "it differs in its entrants" in alone.stderr


def test_decomposed_on_one_node_or_more(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "atoll", "decompose", "duckdb", "-n", "2"),
            *(*SMALL, "--blocks", "1", "-o", str(path), "--json"),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if "usable cores" in done.stderr:
        pytest.skip("two instances want two usable cores, and there is one")
    assert done.returncode == 0, done.stderr
    summary = parse(BenchSummary, done.stdout, where="stdout")
    labels = ["duckdb/wim", "duckdb/spmwin", "duckdb/win/first-touch", "duckdb/win/bind"]
    assert [one.label for one in summary.entrants] == labels
    assert len({(one.threads, one.heap_bytes, one.streams) for one in summary.entrants}) == 1
    assert [one.instances for one in summary.entrants] == [1, 2, 2, 2]
    (found,) = summary.decompositions
    assert [step.before for step in found.steps] == labels[:-1]
    assert [step.after for step in found.steps] == labels[1:]
    assert "5 blocks" in found.why_no_shares
    looks = [line for line in read_results(path).lines if isinstance(line, VerifyResult)]
    assert [look.drifted for look in looks] == [0] * 4, looks


def test_atolls_scheduler_that_cannot_be_had_is_found_before_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("atoll.duckdb.opening.SUPPORTED", ("0.0.1",))
    with pytest.raises(EngineFailed, match=r"only 0\.0\.1;"):
        DuckDBEngine("atoll").locate(LocalHost())
    assert DuckDBEngine("duckdb").locate(LocalHost()).version


def test_a_worker_that_dies_fails_its_block_only(job: Job, tmp_path: Path) -> None:
    killed: list[int] = []

    def kill(tick: Tick) -> None:
        if tick.doing == "measuring" and not killed:
            record = records.read(NAME)
            assert record is not None
            victim = record.processes[-1].id
            assert victim is not None
            os.kill(victim.pid, signal.SIGKILL)
            killed.append(victim.pid)

    path = tmp_path / "r.jsonl"
    run(job, path, kill)
    found = read_results(path)
    failed = [line for line in found.lines if isinstance(line, BlockFailed)]
    assert [line.label for line in failed] == ["duckdb/wim"]
    assert "SIGKILL" in failed[0].error
    assert [line.label for line in found.lines if isinstance(line, PassDone)] == ["duckdb/wic"]
    assert found.end is not None and found.end.status == "complete"
    assert records.names() == []


def test_a_wrong_answer_fails_the_bench(job: Job, tmp_path: Path) -> None:
    assert isinstance(job.work, SuiteWork)
    answer = job.work.answers["q6"]
    forged = replace(answer, rows=[("1.0",)])
    bad = replace(job, work=replace(job.work, answers={**job.work.answers, "q6": forged}))
    path = tmp_path / "r.jsonl"
    with pytest.raises(WrongAnswer) as caught:
        run(bad, path)
    assert caught.value.exit_code == 1
    assert "expected (1.0)" in caught.value.detail
    found = read_results(path)
    assert found.end is not None and found.end.status == "stopped"
    assert any(isinstance(line, QueryTime) and line.answer == "wrong" for line in found.lines)
    assert records.names() == []


def test_a_bench_whose_queries_never_end_exits_5(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    done = atoll("--blocks", "2", "-o", str(path), "--query-limit", "0.0001")
    assert done.returncode == 5, done.stderr
    assert "every query failed, first q" in done.stderr.strip().splitlines()[-1]
    found = read_results(path)
    assert found.queries == () and len(found.left_out) == len(found.header.queries)
    assert records.names() == []


@pytest.mark.parametrize(
    ("number", "point"),
    [
        (signal.SIGTERM, b'"record":"header"'),  # starting
        (signal.SIGINT, b'"record":"up"'),  # measuring
        *(
            pytest.param(signal.SIGINT, point, marks=pytest.mark.long)
            for point in (b'"record":"query"', b'"record":"profile"')  # warming up, the end
        ),
    ],
)
def test_interruption_keeps_results_and_leaves_nothing(
    tmp_path: Path, number: int, point: bytes
) -> None:
    path = tmp_path / "r.jsonl"
    process = subprocess.Popen(
        [*ATOLL, *SMALL, "--blocks", "50", "-o", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while not (path.exists() and point in path.read_bytes() and records.names()):
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        process.send_signal(number)
        _, errors = process.communicate(timeout=300)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130, errors
    last = f"atoll: interrupted; to go on, repeat the command with -o {path} --resume"
    assert errors.strip().splitlines()[-1] == last
    end = json.loads(path.read_text().splitlines()[-1])
    assert (end["record"], end["status"]) == ("end", "stopped")
    assert records.names() == []


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["duckdb", "--policies", "wimm"], 2, "wimm"),
        (["mysql"], 2, "mysql"),
        (["duckdb", "--queries", "23"], 2, "q22"),
        (["duckdb", "--policies", ","], 2, "--policies"),
        (["duckdb", "--resume"], 2, "-o"),
        (["duckdb", "--scheduler", ","], 2, "--scheduler"),
        (["duckdb", "--scheduler", "atoll,cfs"], 2, "'cfs'"),
        (["spark", "--scheduler", "atoll"], 2, "spark has only its own scheduler"),
        (["no/such/plan.json"], 2, "cannot be read"),
        (["duckdb", "--blocks", "0"], 2, "0"),
        (["duckdb", "--suite", "tests"], 2, "put one query into each file"),
        (["duckdb", "duckdb", "--sf", "0.01"], 2, "twice"),
    ],
)
def test_wrong_use_is_one_line(arguments: list[str], code: int, words: str) -> None:
    is_one_line(["bench", *arguments], code, words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["duckdb", "-n", "1"], "-n 1"),
        (["duckdb", "--scheduler", "duckdb,atoll"], "'duckdb,atoll'"),
        (["here/plan.json"], "here/plan.json"),
    ],
)
def test_a_decomposition_that_cannot_be_is_one_line(arguments: list[str], words: str) -> None:
    is_one_line(["decompose", *arguments], 2, words)


def is_one_line(arguments: list[str], code: int, words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "atoll", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("atoll: ")
