"""What bench, decompose and replay share: lengths, the summary, the exit code; no engine."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from atoll.bench.api import Server
from atoll.bench.job import Job, Length
from atoll.bench.results import ResultsWriter, read_results
from atoll.bench.runner import Tick
from atoll.cli import cli, run
from atoll.cli.measuring import RunOptions, measure
from atoll.errors import EngineFailed, UsageError
from atoll.host.local import LocalHost
from atoll.schema.results import Entrant, RunHeader
from tests.parts.bench import IDLE, WIM, FakeEngines, FakeWork, header, lines
from tests.parts.fake_host import FakeHost
from tests.parts.faults import check_complaint, fails

HOST = LocalHost()


def options(path: Path, fail_if_slower: float | None = None) -> RunOptions:
    return RunOptions(
        blocks=None,
        within_s=None,
        warmup=1,
        query_limit=60.0,
        output=path,
        resume=False,
        fail_if_slower=fail_if_slower,
        as_json=False,
    )


def job(head: RunHeader, length: Length | None = None) -> Job:
    """Query q6 fails."""

    def trouble(label: str, sql: str) -> None:
        if sql == "q6":
            raise EngineFailed("no such column")

    engines = FakeEngines(FakeHost(IDLE), trouble=trouble)
    return Job(head, FakeWork(), lambda *_: engines, length or Length(1), longest_wait_s=0.0)


def test_a_failed_query_is_the_last_line_after_the_summary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "r.jsonl"
    with fails(EngineFailed, count=1, of="2 queries", query="q6"):
        measure(job(header(WIM, blocks_asked=1)), options(path), HOST)
    told = capsys.readouterr()
    assert "1 complete block, 1 query left out" in told.out
    assert "left out: q6 failed (warm-up): no such column" in told.err


def test_an_interrupted_run_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def deploy(entrant: Entrant) -> AbstractContextManager[Server]:
        raise KeyboardInterrupt

    path = tmp_path / "my r.jsonl"
    head = header(WIM, blocks_asked=1)
    stopped = Job(head, FakeWork(), lambda *_: deploy, Length(1), longest_wait_s=0.0)
    monkeypatch.setattr(cli, "invoke", lambda _: measure(stopped, options(path), HOST))
    assert run(["bench", "duckdb"]) == 130
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == (f"atoll: interrupted; to go on, repeat the command with -o '{path}' --resume")


def test_nothing_starts_if_nothing_can_be_slower(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with fails(UsageError, option="--fail-if-slower"):
        measure(job(header(WIM)), options(path, fail_if_slower=1.1), HOST)
    assert not path.exists()


@pytest.mark.parametrize(
    ("length", "measured", "of"), [(Length(3), {1, 2}, 3), (Length(), set(range(1, 8)), 8)]
)
def test_a_file_of_eight_blocks_is_resumed_up_to_three(
    tmp_path: Path, length: Length, measured: set[int], of: int
) -> None:
    """It printed 'block 4/3' and measured all eight."""
    path = tmp_path / "r.jsonl"
    with ResultsWriter.create(path, header(WIM, blocks_asked=8)) as writer:
        for line in lines((WIM,), 1)[:-1]:
            writer.append(line)
    ticks: list[Tick] = []
    wanted = job(header(WIM, blocks_asked=length.blocks_asked), length)
    wanted.run(path, host=HOST, resume=True, tick=ticks.append, say=lambda line: None)
    assert {tick.block for tick in ticks} == measured
    assert {tick.blocks for tick in ticks} == {of}
    assert read_results(path).whole_blocks == of


def test_blocks_and_minutes_exclude_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--suite", str(tmp_path), "--blocks", "2", "--minutes", "1"]
    assert run(["replay", "trino", "http://h", *arguments]) == 2
    check_complaint(capsys.readouterr().err, option="--blocks", other="--within")


@pytest.mark.parametrize("ratio", ["0.9", "x"])
def test_a_ratio_is_at_least_one(ratio: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "duckdb", "--fail-if-slower", ratio]) == 2
    assert "--fail-if-slower" in capsys.readouterr().err


def test_a_folder_has_no_scale_factor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "q1.sql").write_text("select 1")
    assert run(["bench", "duckdb", "--suite", str(tmp_path), "--sf", "10"]) == 2
    check_complaint(capsys.readouterr().err, option="--sf", suite=tmp_path)
