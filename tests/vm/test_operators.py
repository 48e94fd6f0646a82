"""Operators in the guest, which has the nodes that most machines lack: plans that need 1, 2, 3 and
4 of them, each operator's thread and memory looked at, and a drift.

The judge goes by the topology file and the kernel's words. Each operator is alone on a CPU, ran
there last, and its memory is on that CPU's node: what it touches from then on, and if it is a
process also what it had touched before. The nodes are those that are nearest to each other.
"""

from __future__ import annotations

import json
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from atoll.guest.guest import Guest
from tests.vm import expected
from tests.vm.inside.operator_program import PAGES
from tests.vm.landing import Layout

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 1800.0


def run(guest: Guest, *arguments: str) -> dict[str, Any]:
    answer = guest.share / "operators.json"
    argv = [sys.executable, "-m", "tests.vm.inside.operators", str(answer), *arguments]
    done = guest.run(argv, timeout_s=PATIENCE_S, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    seen = json.loads(answer.read_text())
    assert isinstance(seen, dict)
    return seen


def is_in_place(found: dict[str, Any], nodes: int, layout: Layout) -> None:
    cpus: dict[str, int] = found["cpus"]
    assert len(set(cpus.values())) == len(cpus) == len(found["seen"])
    for name, seen in found["seen"].items():
        where = (name, cpus[name], seen)
        assert (seen["mask"], seen["cpu"]) == (str(cpus[name]), cpus[name]), where
        node = str(layout.node_of[cpus[name]])
        assert seen["late"] == {node: PAGES}, where
        assert seen["early"] in (None, {node: PAGES}), where
    assert sum(seen["early"] is not None for seen in found["seen"].values()) > 0
    used = {layout.node_of[cpu] for cpu in cpus.values()}
    assert len(used) == nodes

    def apart(some: tuple[int, ...]) -> int:
        return sum(layout.distances[pair] for pair in combinations(some, 2))

    assert apart(tuple(sorted(used))) == min(map(apart, combinations(layout.home_nodes, nodes)))
    assert (found["faults"], found["idle"]) == ([], 0)
    assert found["local"] == 1


@pytest.mark.parametrize("guest", ["milan4"], indirect=True)
def test_a_plan_of_three_nodes_is_in_place(guest: Guest) -> None:
    is_in_place(run(guest, "3")["3"], 3, expected.layout(guest.topology))


@pytest.mark.long
@pytest.mark.parametrize("guest", ["milan2", "milan4", "milan8"], indirect=True)
def test_plans_of_one_to_four_nodes_are_in_place(guest: Guest) -> None:
    layout = expected.layout(guest.topology)
    counts = range(1, min(4, len(layout.home_nodes)) + 1)
    found = run(guest, ",".join(map(str, counts)))
    for nodes in counts:
        is_in_place(found[str(nodes)], nodes, layout)


@pytest.mark.long
@pytest.mark.parametrize("guest", ["milan2"], indirect=True)
def test_an_operator_that_drifts_for_a_minute_gets_a_new_plan_offered(guest: Guest) -> None:
    found = run(guest, "1", "drift")["drift"]
    assert found["calm"], found
    assert found["drifted"] == ["op-0"], found
    assert found["after_s"] >= 60
    assert found["cores"] >= 1
    assert found["masks"] == [str(cpu) for cpu in found["cpus"]]  # offered, and not enacted
