"""`atoll tune` on real commands of this machine: short ones, since they run many times."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from atoll.cli import run
from atoll.schema.advice import Advice
from atoll.schema.base import parse
from atoll.schema.tuning import Tuning
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
