"""A server with transactions in the guest, on one chiplet and spread over both of a node."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from atoll.guest.guest import Guest
from atoll.schema.oltp import OltpRuns
from tests.parts.postgresql import ORDINARY_USER

ROOT = Path(__file__).resolve().parents[2]
MACHINE = str(Path(__file__).parent / "two_chiplets.toml")
PATIENCE_S = 1800.0  # five minutes on two loaded cores
RUN = (*ORDINARY_USER, sys.executable, "-m", "atoll", "oltp", "run", "ycsb", "--records", "2000")


@pytest.mark.long
@pytest.mark.parametrize("guest", [MACHINE], indirect=True, ids=["two-chiplets"])
def test_a_server_sits_packed_and_spread(guest: Guest) -> None:
    # The guest sees the host's cache, and loading takes minutes there.
    here = ("--cores", "1", "--seconds", "1", "--warmup", "1", "--blocks", "1")
    subprocess.run([*RUN, *here], check=True, cwd=ROOT, capture_output=True)
    output = guest.share / "runs.json"
    argv = [*RUN, "--cores", "2", "--seconds", "5", "--warmup", "60", "--blocks", "1"]
    folders = {"XDG_STATE_HOME": "/run/oltp-state", "XDG_RUNTIME_DIR": "/run"}
    done = guest.run(
        [*argv, "-o", str(output)], timeout_s=PATIENCE_S, env={**os.environ, **folders}, cwd=ROOT
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = OltpRuns.model_validate_json(output.read_text())
    assert found.emulated
    packed, spread = found.seats
    assert len(packed.chiplets) == 1 and len(spread.chiplets) == 2
    assert len(packed.cpus) == len(spread.cpus) == 2
    assert {*packed.driver_cpus}.isdisjoint({*packed.cpus, *spread.cpus})
    for run in found.runs:
        assert run.threads > 0 and run.drifted == 0, run.drift
        assert run.acknowledged == run.counted > 0
