"""Thread placement on a machine with chiplets: which CPU each thread has, looked at from outside.

One instance has the whole machine and a quarter as many threads as cores, so that dense and sparse
differ. The judge goes by the topology file and by the kernel's masks. Each thread that runs tasks
is alone on a CPU: under dense on as few nodes and chiplets as can hold them, under sparse on as
many as there are. All other threads may use all CPUs of the slot. `atoll verify` finds nothing.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from atoll.guest.guest import Guest
from tests.parts.postgresql import ORDINARY_USER, empty_template
from tests.vm import expected

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 900.0
THREADS = 4
CASES = (("duckdb:dense", "postgresql:sparse"), ("duckdb:sparse", "postgresql:dense"))

RUNS_TASKS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "duckdb": lambda thread: thread["name"] == "duckdb-task",
    "postgresql": lambda thread: (
        "parallel worker" in thread["title"] or thread["title"].endswith("[local] SELECT")
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("guest", ["milan2"], indirect=True)
@pytest.mark.parametrize("cases", CASES, ids=["duckdb-dense", "duckdb-sparse"])
def test_each_thread_that_runs_tasks_is_alone_on_a_cpu_near_or_far(
    guest: Guest, cases: tuple[str, ...]
) -> None:
    empty_template()
    answer = guest.share / "placement.json"
    argv = [sys.executable, "-m", "tests.vm.inside.placement", str(answer), str(THREADS), *cases]
    # Deployments of other tests must not be met there.
    folders = {"XDG_STATE_HOME": "/run/placement-state", "XDG_RUNTIME_DIR": "/run"}
    done = guest.run(
        [*ORDINARY_USER, *argv], timeout_s=PATIENCE_S, env={**os.environ, **folders}, cwd=ROOT
    )
    assert done.returncode == 0, done.stdout + done.stderr
    layout = expected.layout(guest.topology)
    for case, seen in json.loads(answer.read_text()).items():
        assert [seen[step][0] for step in ("plan", "up", "down")] == [0, 0, 0], (case, seen)
        engine, placement = case.split(":")
        where = (case, seen["threads"])
        masks = [one["mask"] for one in seen["threads"] if RUNS_TASKS[engine](one)]
        others = [one["mask"] for one in seen["threads"] if not RUNS_TASKS[engine](one)]
        assert others and all(mask == seen["cpus"] for mask in others), where
        assert all(len(mask) == 1 for mask in masks), where
        cpus = {mask[0] for mask in masks}
        assert len(cpus) == len(masks) == THREADS, where
        chiplets = sum(bool(chiplet & cpus) for chiplet in layout.chiplets)
        nodes = len({layout.node_of[cpu] for cpu in cpus})
        fewest = -(-THREADS // len(layout.chiplets[0]))
        assert (chiplets, nodes) == (
            (fewest, 1) if placement == "dense" else (THREADS, guest.topology.cpu_nodes)
        ), where
        assert (seen["drift"], seen["left"]) == ([], [])
        assert seen["bound"] >= THREADS, case
