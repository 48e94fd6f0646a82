"""What the system takes away is obeyed, and never passed over in silence: a cgroup that shrinks
the machine, and CPUs that go offline between the plan and the start. In guests, where both are
real.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from atoll.guest.guest import Guest
from tests.vm import expected
from tests.vm.landing import plan_faults
from tests.vm.proof import ROOT, ask, case, judge, landing_steps, online, product, weights

LAUNCHER = str(ROOT / ".venv/bin/atoll-exec")
NOT_PERMITTED, USAGE = 4, 2  # docs/index.md
EXEC_FAILED = 125  # docs/exec.md
MASK = ("grep", "Cpus_allowed_list", "/proc/self/status")
MIB = 2**20


def _launch(*flags: str) -> tuple[str, list[str]]:
    return ("run", [LAUNCHER, *flags, "--", "echo", "ran"])


def _assert_refused(answer: Sequence[Any], status: int, *words: str) -> None:
    """The documented status, one line beside warnings with these words, and nothing ran."""
    found, out, err = answer
    assert (found, out) == (status, ""), answer
    faults = [line for line in err.splitlines() if not line.startswith("atoll: warning: ")]
    assert len(faults) == 1, err
    for word in words:
        assert word in err, err


# ---- A cgroup --------------------------------------------------------------------------------

# Parts of all nodes and of most chiplets; memory of the two middle nodes only.
CGROUP_CPUS, CGROUP_NODES, CGROUP_BYTES = (1, 2, 3, 4, 5, 6, 9, 14), (1, 2), 500 * MIB
CGROUP = {
    "cpuset.cpus": "1-6,9,14",
    "cpuset.mems": "1-2",
    "memory.max": str(CGROUP_BYTES),
}
REFUSED_IN_CGROUP = {
    # what is asked for -> what the line names
    ("-C", "0"): "0",
    ("-C", "0-1"): "0",
    ("-C", "14-15"): "15",
    ("-N", "3"): "3",  # as numactl: its memory is closed
    ("-m", "0"): "0",
    ("-m", "0-1"): "0",
    ("-i", "0-3"): "0",
    ("-p", "3"): "3",
    ("-w", "2-3"): "3",
    ("chiplet:0",): "CPUs 0 are",
    ("numa:3",): "CPUs 12-13,15 are",
    ("core:all",): "CPUs 0,7-8,10-13,15 are",
    ("0x8001",): "CPUs 0,15 are",
}
TAKEN_IN_CGROUP = {
    # what is asked for -> the CPUs that are left of it
    ("-C", "1-6"): "1-6",
    ("-N", "1"): "4-6",
    ("-m", "1", "chiplet:1"): "2-3",
    ("-i", "all", "all"): "1-6,9,14",
    ("chiplet:0-2", "xall"): "1-5",
}


@pytest.mark.parametrize("guest", ["milan4"], indirect=True)
def test_a_cgroup_that_shrinks_the_machine_is_obeyed(guest: Guest) -> None:
    whole = expected.layout(guest.topology)
    left = whole.limited(CGROUP_CPUS, CGROUP_NODES)
    shares = weights(left)
    path = str(guest.share / "plan.json")
    tools = ("nproc", "hwloc-calc -N pu all", "hwloc-calc -N core all", "numactl --show")
    cases = [case("win"), case("wicp", "bind"), case("wicp-mixed", "interleave"), case("wim")]
    steps: list[tuple[str, Any]] = [
        ("atoll", ["plan", "postgresql", "--policy", "win", "-o", path]),
        ("enter", CGROUP),
        ("atoll", ["topo", "--json"]),
        ("atoll", ["plan", "postgresql", "--policy", "win", "--json"]),
        ("atoll", ["plan", "postgresql", "--policy", "wic", "--json"]),
        ("atoll", ["up", path]),
        ("left_over", None),
        ("plans", product(left)),
        *(("run", tool.split()) for tool in tools),
        *(_launch(*flags) for flags in REFUSED_IN_CGROUP),
        *(("run", [LAUNCHER, *flags, "--", *MASK]) for flags in TAKEN_IN_CGROUP),
        *landing_steps(cases, shares),
        ("leave", None),
        ("enter", {"cpuset.mems": "1-3"}),
        ("atoll", ["up", path]),
        ("leave", None),
        ("atoll", ["topo", "--json"]),
    ]
    answers = iter(ask(guest, steps))
    planned, _, topo, plan, too_many, up, left_over, plans = (next(answers) for _ in range(8))
    assert planned[0] == 0, planned

    machine = json.loads(topo[1])
    assert machine["allowed"] == {
        "pus": list(CGROUP_CPUS),
        "nodes": list(CGROUP_NODES),
        "memory_max_bytes": CGROUP_BYTES,
    }
    assert len(machine["cores"]) == len(whole.cores)  # the machine is whole, and says what is left
    said = {tool: next(answers)[1] for tool in tools}
    assert int(said["nproc"]) == int(said["hwloc-calc -N pu all"]) == machine["summary"]["pus"]
    assert int(said["hwloc-calc -N core all"]) == machine["summary"]["cores"]
    assert f"physcpubind: {' '.join(map(str, CGROUP_CPUS))}" in said["numactl --show"]

    slots = json.loads(plan[1])["slots"]
    assert {cpu for slot in slots for cpu in slot["cpus"]} == set(CGROUP_CPUS)
    assert {node for slot in slots for node in slot["memory_nodes"]} == set(CGROUP_NODES)
    assert 0.9 * CGROUP_BYTES < sum(slot["memory_bytes"] for slot in slots) <= CGROUP_BYTES
    _assert_refused(too_many, USAGE, "8 instances do not fit in", "the cgroup's memory.max")
    for answer in plans:
        asked = answer["case"]
        assert not plan_faults(
            answer["plan"], left, asked["policy"], asked["memory"], smt=asked["smt"]
        )

    _assert_refused(up, NOT_PERMITTED, "CPUs 0,7-8,10-13,15 of the plan", "cgroup")
    assert left_over == []
    for flags, named in REFUSED_IN_CGROUP.items():
        _assert_refused(next(answers), EXEC_FAILED, *flags[-1:], named)
    for flags, cpus in TAKEN_IN_CGROUP.items():
        assert next(answers) == [0, f"Cpus_allowed_list:\t{cpus}\n", ""], flags

    *_, landed = (next(answers) for _ in range(3))
    for one in judge(landed, left, shares):
        assert not one.plan_faults, one.case
        assert not one.verdict.faults, (one.case, one.verdict.faults[:10])
        assert one.verdict.threads >= len(CGROUP_CPUS)
    next(answers), next(answers)
    _assert_refused(next(answers), NOT_PERMITTED, "memory nodes 0 of the plan", "cpuset.mems")
    next(answers)
    assert json.loads(next(answers)[1])["allowed"]["pus"] == list(whole.cpus)


# ---- CPUs that go offline --------------------------------------------------------------------


@pytest.mark.parametrize("guest", ["milan2"], indirect=True)
def test_a_cpu_that_goes_offline_after_the_plan_is_caught(guest: Guest) -> None:
    """CPU 5 is the second core of chiplet 2."""
    plan, wim, machine = (str(guest.share / name) for name in ("p.json", "w.json", "m.json"))
    dry = [LAUNCHER, "--dry-run", "chiplet:2", "--", "echo"]
    steps: list[tuple[str, Any]] = [
        ("atoll", ["plan", "postgresql", "--policy", "wicp", "-o", plan]),
        ("atoll", ["plan", "postgresql", "--policy", "wim", "-o", wim]),
        ("atoll", ["topo", "--json"]),
        ("run", dry),
        online(5, on=False),
        ("atoll", ["up", plan]),
        ("atoll", ["up", wim]),
        ("left_over", None),
        _launch("-C", "5"),
        _launch("-C", "4-5"),
        _launch("-N", "0"),
        _launch("--machine", machine, "chiplet:2"),
        ("run", dry),
        ("atoll", ["topo", "--json"]),
        online(5, on=True),
        _launch("-C", "4-5"),
        _launch("--machine", machine, "chiplet:2"),
        ("run", dry),
        ("atoll", ["topo", "--json"]),
    ]
    Path(machine).write_text(ask(guest, [("atoll", ["topo", "--json"])])[0][1])
    answers = ask(guest, steps)
    planned, planned_wim, topo, placed, _, up, up_wim, left_over = answers[:8]
    alone, partly, by_node, from_file, live, topo_without, _, *after = answers[8:]
    assert (planned[0], planned_wim[0]) == (0, 0), (planned, planned_wim)
    assert "cpus     4-5\n" in placed[1]

    _assert_refused(up, NOT_PERMITTED, "CPUs 5 of the plan are offline", "online: 0-4,6-15")
    # Nothing in this plan names the CPU, but its threads and memory were counted with it.
    _assert_refused(up_wim, USAGE, "another machine", "CPUs 5 offline", "atoll plan")
    assert left_over == []
    _assert_refused(alone, EXEC_FAILED, "5")
    _assert_refused(partly, EXEC_FAILED, "CPUs 5", "offline")
    assert by_node[:2] == [0, "ran\n"]
    _assert_refused(from_file, EXEC_FAILED, "chiplet:2", "CPUs 5", "offline")

    # A live place means what `atoll topo` shows now: CPU 4 alone is no chiplet.
    without = json.loads(topo_without[1])
    assert without["offline_cpus"] == [5]
    now = expected.layout(replace(guest.topology, offline=(5,)))
    assert [frozenset(chiplet["pus"]) for chiplet in without["chiplets"]] == list(now.chiplets)
    assert "cpus     6-7\n" in live[1]

    assert [answer[:2] for answer in after[:2]] == [[0, "ran\n"]] * 2
    assert after[2] == placed
    assert json.loads(after[3][1])["cores"] == json.loads(topo[1])["cores"]
