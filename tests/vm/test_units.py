"""Rendered systemd units under a real systemd, in the guest: each server in its slot's place.

The units are installed and enabled as the rendered page says. Every thread of every process has its
slot's CPUs, every mapping its slot's memory policy, the cgroup both; a process that is given all
CPUs gets its slot's; `systemctl stop` of the target ends all.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from atoll.engines.postgresql.engine import PostgreSQLEngine
from atoll.guest.guest import Guest
from atoll.host.local import LocalHost
from atoll.schema.cpulist import parse_cpulist
from tests.parts.postgresql import empty_template

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 600.0


# Everything here is done by them: there is nothing to look at without.
@pytest.mark.long
@pytest.mark.skipif(
    not Path("/lib/systemd/systemd").exists() or shutil.which("nsenter") is None,
    reason="systemd is not installed (Debian's packages systemd, util-linux)",
)
@pytest.mark.parametrize("guest", ["smt:units"], indirect=True)
def test_rendered_units_hold_their_servers(guest: Guest) -> None:
    _, home = PostgreSQLEngine().find(LocalHost())
    answer = guest.share / "units.json"
    argv = [sys.executable, "-m", "tests.vm.inside.units", str(answer), home, empty_template()]
    done = guest.run(argv, timeout_s=PATIENCE_S, env=dict(os.environ), cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    seen = json.loads(answer.read_text())
    slots, instances = seen["slots"], seen["instances"]
    assert len(slots) == len(instances) == guest.topology.cpu_nodes > 1
    for slot, instance in zip(slots, instances, strict=True):
        where = f"slot {slot['index']}"
        assert instance["answer"] == [["500500"]], where
        (node,) = slot["memory_nodes"]
        assert len(instance["processes"]) > 4, where  # a server has more than its first
        for process in instance["processes"].values():
            assert all(mask == slot["cpus"] for mask in process["allowed"]), where
            assert process["policies"] == [f"bind:{node}"], where
            assert process["user"] == 4242, where
        assert instance["widened"] == slot["cpus"], where
        assert set(instance["shared"]) == {str(node)}, where
        assert list(parse_cpulist(instance["cpus"])) == slot["cpus"], where
        assert list(parse_cpulist(instance["told"].replace(" ", ","))) == slot["cpus"], where
        assert instance["nodes"] == str(node), where
    assert seen["ended"] == ["success"] * len(slots)
    assert "".join(seen["left"]) == ""
