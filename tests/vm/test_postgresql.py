"""PostgreSQL servers in the guest, one to a node and one to a chiplet: up, busy, verify, down.

The plan's promise is judged here from what the guest saw. Every thread of every process (the
postmaster, background processes, sessions, parallel workers) has its slot's mask, and every mapping
its slot's memory policy; every page of shared_buffers and of the processes' heaps lies on its
slot's node; `atoll verify` says the same; after `atoll down` nothing is left.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from atoll.guest.guest import Guest
from atoll.schema.cpulist import format_cpulist
from tests.parts.postgresql import ORDINARY_USER, empty_template

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 1800.0  # three minutes on two cores of CI
POLICIES = ("win", "wicp")
KINDS = {
    "postmaster",
    "checkpointer",
    "background writer",
    "walwriter",
    "autovacuum launcher",
    "client backend",
    "parallel worker",
}


@pytest.fixture(scope="module")
def _template() -> None:
    empty_template()


def lives(guest: Guest) -> dict[str, Any]:
    answer = guest.share / "postgresql.json"
    argv = [sys.executable, "-m", "tests.vm.inside.postgresql", str(answer), *POLICIES]
    # Deployments of the tests here must not be met there.
    folders = {"XDG_STATE_HOME": "/run/postgresql-state", "XDG_RUNTIME_DIR": "/run"}
    done = guest.run(
        [*ORDINARY_USER, *argv], timeout_s=PATIENCE_S, env={**os.environ, **folders}, cwd=ROOT
    )
    assert done.returncode == 0, done.stdout + done.stderr
    seen = json.loads(answer.read_text())
    assert isinstance(seen, dict)
    return seen


@pytest.mark.long
@pytest.mark.usefixtures("_template")
@pytest.mark.parametrize("guest", ["smt", "milan4"], indirect=True)
def test_servers_sit_on_their_nodes_and_chiplets(guest: Guest) -> None:
    for policy, seen in lives(guest).items():
        status, _, said = seen["up"]
        assert status == 0, f"{policy}: {said}"
        slots, instances = seen["slots"], seen["instances"]
        expected = (
            guest.topology.cpu_nodes
            if policy == "win"
            else guest.topology.packages * guest.topology.l3
        )
        assert len(slots) == len(instances) == expected
        for slot, instance in zip(slots, instances, strict=True):
            where = f"{policy}, slot {slot['index']}"
            assert slot["memory_policy"] == "bind"
            processes = instance["processes"]
            assert len(instance["running"]) == slot["threads"] > 1, where
            assert set(map(str, instance["running"])) <= set(processes), where
            assert set(instance["kinds"].values()) >= KINDS, where
            nodes = format_cpulist(slot["memory_nodes"])
            for pid, process in processes.items():
                assert all(mask == slot["cpus"] for mask in process["allowed"]), (where, pid)
                assert process["policies"] == [f"bind:{nodes}"], (where, pid)
            privates = (process["private"] for process in processes.values())
            for pages in (instance["shared"], *privates):
                assert sum(pages.values()) > 100, where
                assert set(map(int, pages)) <= set(slot["memory_nodes"]), (where, pages)
            lived = {int(pid) for pid in processes} & set(seen["still there"])
            assert lived <= set(seen["looked at"]), where
            assert len(lived) >= slot["threads"], where
        assert seen["drift"] == []
        if "verify" in seen:
            assert seen["verify"][0] == 0, seen["verify"]
        assert seen["down"][0] == 0, seen["down"]
        assert seen["left"] == []
