"""`atoll tune --engine` on real engines, to the plan that `atoll up` takes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from atoll.schema.base import parse
from atoll.schema.plan import Plan
from atoll.schema.tuning import Tuning
from atoll.store.plan_file import read_plan
from tests.parts.postgresql import ORDINARY_USER

ATOLL = (sys.executable, "-m", "atoll")


@pytest.mark.long
@pytest.mark.parametrize("engine", ["duckdb", "postgresql"])
def test_an_engine_is_tuned_over_a_suite(engine: str, tmp_path: Path) -> None:
    """The values of one factor: 20 runs at least. 22 queries in 5 streams have a p99."""
    path = tmp_path / "plan.json"
    done = subprocess.run(
        [
            *(*ORDINARY_USER, *ATOLL, "tune", "--engine", engine, "--sf", "0.01", "--json"),
            *("--streams", "5", "--metric", "p99", "--time", "8m", "--factors", "workers"),
            *("-o", str(path)),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=900,
    )
    found = parse(Tuning, done.stdout, where="stdout")
    assert found.command == ("atoll", "up", engine) and "tpch SF 0.01" in found.suite
    assert {one.setting["workers"] for one in found.effects} and not found.left_out
    plan: Plan = read_plan(str(path))
    assert plan.engine == engine
    subprocess.run(
        [*ORDINARY_USER, *ATOLL, "up", str(path), "--dry-run"], capture_output=True, check=True
    )
