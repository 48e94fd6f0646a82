"""Backends of a real PostgreSQL as operators: profiled, packed, placed, watched, compared."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from atoll.operators.judge import judge
from atoll.schema.operator_runs import OperatorRuns
from tests.parts.backends_run import KINDS
from tests.parts.postgresql import ORDINARY_USER

pytestmark = pytest.mark.installed


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*ORDINARY_USER, sys.executable, "-m", *argv], capture_output=True, text=True, timeout=300
    )


def test_backends_are_placed_and_restored(tmp_path: Path) -> None:
    done = run("tests.parts.backends_run", str(tmp_path))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["operators"] == found["seen"] == sorted(KINDS)
    assert all(duty > 0 for duty in found["duties"])
    assert found["cores"] == 1
    assert found["faults"] == []
    assert found["windows"] == 3
    assert found["rate"] > 0
    for command in ("profile", "plan", "apply", "watch", "undo"):
        assert found[command].startswith("0\n"), (command, found[command])
    assert len(found["bound"]) == len(KINDS)
    assert len({tuple(cpus) for cpus in found["bound"]}) == 1
    assert len(found["bound"][0]) == 1
    assert found["restored"] == [found["cpus"]] * len(KINDS)
    assert list((tmp_path / "run").iterdir()) == []


def test_deployments_are_compared(tmp_path: Path) -> None:
    output = tmp_path / "runs.json"
    done = run(
        *("atoll", "operators", "compare", "postgresql", "--deployments", "os,packed"),
        *("--seconds", "2", "--warmup", "1", "--blocks", "1", "-o", str(output)),
    )
    assert done.returncode == 0, done.stderr
    found = OperatorRuns.model_validate_json(output.read_text())
    (only,) = found.rounds
    assert [one.deployment for one in only.runs] == ["os", "packed"]
    assert [one.drifted for one in only.runs] == [0, 0], [one.drift for one in only.runs]
    assert [one.threads for one in only.runs] == [24, 24]
    assert all(sum(one.per_window) > 0 for one in only.runs)
    assert judge(only) is None  # without an operator per core there is nothing to compare with
