"""`atoll tune` on real commands of this machine: short ones, since they run many times."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

import pytest

from atoll.bench.job import Job, Length
from atoll.cli import run
from atoll.schema.advice import Advice
from atoll.schema.base import parse
from atoll.schema.plan import Plan, Policy
from atoll.schema.tuning import Tuning, Verdict
from atoll.stats.paired import Interval
from atoll.store.plan_file import read_plan
from atoll.tune import search
from atoll.tune.conduct import Found
from tests.parts.bench import FakeWork, header
from tests.parts.bench import entrant as planned
from tests.parts.faults import check_complaint

Capture = pytest.CaptureFixture[str]
SLEEP = ("--", "sleep", "0.1")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--factors", "cache", *SLEEP], {"factor": "cache"}),
        (["--factors", "malloc,", *SLEEP], {"option": "--factors"}),
        (["--metric", "p99", *SLEEP], {"metric": "p99"}),
        (["--time", "never", *SLEEP], {"time": "never"}),
        (["-o", "no/such/folder/plan.json", *SLEEP], {"path": "no/such/folder/plan.json"}),
        (["-o", "/tmp", *SLEEP], {"path": "/tmp"}),
        ([], {}),
        (["--engine", "duckdb", *SLEEP], {}),
        (["--sf", "1", *SLEEP], {"option": "--sf"}),
        (["--engine", "no-such-engine"], {"engine": "no-such-engine"}),
        (["--engine", "duckdb", "--metric", "rss"], {"metric": "rss"}),
        (["--", "no-such-program"], {"program": "no-such-program"}),
        (["--factors", "malloc", "--", "false"], {"command": "false"}),
    ],
)
def test_wrong_usage_is_one_line(
    arguments: list[str], named: dict[str, str], capsys: Capture
) -> None:
    assert run(["tune", *arguments]) == 2
    check_complaint(capsys.readouterr().err, **named)


def test_a_factor_without_meaning_here_is_said_and_runs_nothing(capsys: Capture) -> None:
    """One CPU has no second hardware thread, and 'true' would be too short."""
    assert run(["tune", "--factors", "smt", "--", "atoll-exec", "-C", "0", "--", "true"]) == 0
    said = capsys.readouterr()
    assert "Left out: smt:" in said.out and "Leave it" in said.out


def test_a_whole_tune(tmp_path: Path) -> None:
    """Writes the result, and a plan that `atoll apply` follows; progress goes to stderr."""
    plan = tmp_path / "plan.json"
    tune = [sys.executable, "-m", "atoll", "tune", "--time", "1m", "--factors", "smt,malloc,memory"]
    done = subprocess.run(
        [*tune, "-o", str(plan), "--json", *SLEEP], capture_output=True, text=True, check=True
    )
    found = parse(Tuning, done.stdout, where="stdout")
    assert found.command == ("sleep", "0.1")
    assert found.effects or found.left_out
    assert all(one.verdict is not None for one in found.effects)
    assert done.stderr.count("\n") <= 2  # one line a stage, since it is no terminal
    advice = parse(Advice, plan.read_text(), where="plan")
    assert [line.tuner for line in advice.lines] == ["smt", "malloc", "memory"]
    assert run(["apply", "--plan", str(plan), "--dry-run"]) == 0
    assert json.loads(plan.read_text())["prefix"] == found.prefix


def duckdb_job(monkeypatch: pytest.MonkeyPatch, queries: int) -> None:
    """Instead of one that generates data."""
    names = tuple(f"q{number + 1}" for number in range(queries))
    entrant = planned("duckdb", Policy.WIM)
    job = Job(header(entrant, queries=names), FakeWork(), lambda *_: never, Length())
    monkeypatch.setattr("atoll.cli.tune.make_job", lambda *_, **__: job)


def never(entrant: object) -> NoReturn:
    raise AssertionError("an engine was started")


def test_a_99th_percentile_of_too_few_queries_is_refused_before_the_engine_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    duckdb_job(monkeypatch, 99)
    assert run(["tune", "--engine", "duckdb", "--metric", "p99"]) == 2
    check_complaint(capsys.readouterr().err, metric="p99", queries="99")


@pytest.mark.parametrize("options", [[], ["--json"], ["-o", "plan.json"]])
def test_the_plan_that_keeps_the_gain_is_always_written(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """A number of cores has no option of `atoll up`."""
    duckdb_job(monkeypatch, 2)
    best = (("workers", "1"),)
    better = search.Judged(best, 1.5, Interval(1.4, 1.6), 12, Verdict.BETTER)
    found = Found(search.Outcome((better,), (), best, 1))
    monkeypatch.setattr("atoll.cli.tune.conduct", lambda *_: found)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    assert run(["tune", "--engine", "duckdb", *options]) == 0
    (path,) = tmp_path.rglob("*.json")
    plan: Plan = read_plan(str(path))
    assert [len(slot.cpus or ()) for slot in plan.slots] == [1]
    said = capsys.readouterr()
    name = path.name if "-o" in options else str(path)
    assert (f"plan: {name}" in said.err) == ("--json" in options)
    if "--json" not in options:
        assert f"\nTo keep it: atoll up {name}\n" in said.out


@pytest.mark.parametrize("runs", [1, 3, 12])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_runs_on_after_any_end(number: int, runs: int, tmp_path: Path) -> None:
    """While the command is tried out, and while its settings are compared."""
    pids = tmp_path / "pids"
    script = f"echo $$ >> {pids}; sleep 0.15; true"
    tune = subprocess.Popen(
        [
            *(sys.executable, "-m", "atoll", "tune", "--factors", "malloc,workers"),
            *("--", "sh", "-c", script),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not pids.exists() or pids.read_text().count("\n") < runs:
        assert tune.poll() is None
        time.sleep(0.01)
    tune.send_signal(number)
    _, said = tune.communicate(timeout=60)
    assert tune.returncode == (-9 if number == signal.SIGKILL else 130)
    assert "Traceback" not in said
    until = time.monotonic() + 20
    while any(Path("/proc", pid).exists() for pid in pids.read_text().split()):
        assert time.monotonic() < until
        time.sleep(0.02)
