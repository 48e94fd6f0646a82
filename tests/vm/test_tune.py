"""`atoll tune` as root on two nodes with SMT: what it turns is really turned, and turned back."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from atoll.guest.guest import Guest
from atoll.schema.base import parse
from atoll.schema.tuning import Tuning, Verdict
from tests.vm.proof import ROOT

pytestmark = pytest.mark.parametrize("guest", ["smt"], indirect=True)

FIRST_TOUCH, INTERLEAVE = "0", "3"  # of get_mempolicy(2)
FREE, CLOSE, SPREAD = "0", "3", "4"  # of omp_get_proc_bind


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("tuned") / "tuned"
    source = ROOT / "tests/vm/subject/tuned.cpp"
    subprocess.run(["c++", "-O1", "-fopenmp", "-o", path, source], check=True)
    return str(path)


def ran(guest: Guest, program: str, scenario: str, timeout_s: float) -> dict[str, Any]:
    argv = [sys.executable, "-m", "tests.vm.inside.tune", program, str(guest.share), scenario]
    done = guest.run(argv, timeout_s=timeout_s, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


@pytest.mark.long
def test_each_factor_is_turned_and_turned_back(guest: Guest, program: str) -> None:
    told = ran(guest, program, "whole", 1800)
    assert told["status"] == 0 and told["restored"], told
    found = parse(Tuning, told["found"], where="stdout")
    assert not found.left_out
    seen = {tuple(line.split()) for line in told["log"]}
    cpus = str(len(guest.topology.online()))
    half = str(len(guest.topology.online()) // 2)
    as_it_is = ("1", FIRST_TOUCH, FREE, cpus)
    assert as_it_is in seen
    alone = {
        "autonuma": ("0", FIRST_TOUCH, FREE, cpus),
        "memory": ("1", INTERLEAVE, FREE, cpus),
        "sparse": ("1", FIRST_TOUCH, SPREAD, half),  # a place is a core
        "dense": ("1", FIRST_TOUCH, CLOSE, half),
        "smt": ("1", FIRST_TOUCH, FREE, half),
    }
    assert {name for name, state in alone.items() if state in seen} == set(alone)
    by_factor = {next(iter(one.setting)): one for one in found.effects if len(one.setting) == 1}
    assert set(by_factor) == {"autonuma", "memory", "placement", "smt"}
    assert by_factor["autonuma"].verdict is Verdict.BETTER
    assert found.best["autonuma"] == "0" and found.knobs == {"numa-balancing": "0"}


@pytest.mark.long
@pytest.mark.parametrize("scenario", ["killed", "both"])
def test_after_kill_9_no_switch_stays_turned(guest: Guest, program: str, scenario: str) -> None:
    """By the runner at once, or by the next `atoll tune` if the runner was killed too."""
    told = ran(guest, program, scenario, 900)
    assert told["turned"] == "0\n", told
    assert told["left"] == ("1\n" if scenario == "killed" else "0\n"), told
    assert told["after"] == "1\n" and not told["note"] and not told["runs"], told
    assert told["then"] == 2  # 'false' cannot be measured


@pytest.mark.long
def test_a_command_that_needs_more_memory_than_there_is_is_refused(
    guest: Guest, program: str
) -> None:
    told = ran(guest, program, "large", 900)
    assert told["status"] == 2 and "memory is short" in told["said"], told
