"""The real atoll-probe under the real run, with budgets of milliseconds: checks that every thread
is in its place and nothing stays behind, never how fast it was."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from atoll.host.local import LocalHost
from atoll.host.topology import read_machine
from atoll.probing.budget import budget
from atoll.probing.errors import ProbeDied, ProbeHung
from atoll.probing.pairs import measure_bandwidth, measure_latency
from atoll.probing.probe import Probe, find_probe
from atoll.probing.requests import Sampling, Spin
from atoll.probing.run import Run
from atoll.schema.profile import Kind, Mode

# Half a minute of sampling that nothing settles.
LONG = Spin(cpus=(min(os.sched_getaffinity(0)),), budget_s=30.0)
NEVER = Sampling(settle=0.0, samples=1_000_000)


def test_pairs_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    host, machine = LocalHost(), read_machine()
    cpus = sorted(os.sched_getaffinity(0))[:2]
    plan = budget(Mode.QUICK, [Kind.LATENCY, Kind.BANDWIDTH], machine, cpus)
    # A machine that stands still for a while leaves nothing out here.
    plan = replace(plan, total_s=180.0, grace_s=60.0)
    monkeypatch.setattr("atoll.probing.run._PATIENCE_S", 60.0)
    with Run(
        host,
        machine,
        program=find_probe(),
        cpus=cpus,
        budget=plan,
        started_s=host.monotonic(),
    ) as run:
        with run.measuring(Kind.LATENCY):
            cas, store = measure_latency(run)
        with run.measuring(Kind.BANDWIDTH):
            bandwidth = measure_bandwidth(run)
    assert run.hello.clock in ("tsc", "cntvct", "monotonic")
    if len(cpus) < 2:
        assert {notice.code for notice in run.left_out} == {"one-cpu"}
        return
    assert not run.left_out
    for matrix in (cas, store, bandwidth):
        assert matrix is not None and matrix.pus == tuple(cpus) and matrix.samples >= 3
        assert all(
            value is not None and value > 0 for value in (matrix.values[0][1], matrix.values[1][0])
        )
    for watch in run.watches:
        assert watch.misplaced_threads == watch.misplaced_pages == 0
        assert watch.frequency_drift is not None


def test_a_probe_in_the_middle_of_a_kernel_ends_with_its_parent() -> None:
    request = json.dumps(LONG.fields(NEVER, most_s=LONG.budget_s))
    parent = LocalHost().converse(
        [
            sys.executable,
            "-S",
            "-c",
            "import sys, time\nsys.path[:0] = " + repr(sys.path) + "\n"
            "from atoll.host.conversation import LocalConversation\n"
            f"child = LocalConversation([{find_probe()!r}], {{}})\n"
            f"child.send({request!r})\n"
            "print(child.pid, flush=True)\ntime.sleep(600)",
        ],
        env={},
    )
    probe = Path(f"/proc/{parent.receive(timeout_s=60)}")
    assert probe.exists()
    parent.close()
    deadline = time.monotonic() + 60
    while probe.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not probe.exists()


def test_a_probe_that_takes_too_long_is_killed() -> None:
    with Probe(LocalHost(), find_probe()) as probe:
        with pytest.raises(ProbeHung):
            probe.ask(LONG, NEVER, most_s=LONG.budget_s, timeout_s=0.05)
        assert not Path(f"/proc/{probe.pid}").exists()
        with pytest.raises(ProbeDied):
            probe.ask(LONG, NEVER, most_s=1, timeout_s=1)
