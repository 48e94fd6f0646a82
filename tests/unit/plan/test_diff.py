"""The differences of two plans."""

from __future__ import annotations

from atoll.plan import make_plan
from atoll.plan.diff import compare
from atoll.plan.network import Place
from atoll.schema.plan import Placement
from tests.parts.machines import milan, plain
from tests.parts.plan import DISTRIBUTED

MACHINE = milan(1, 2, 4)


def test_a_plan_does_not_differ_from_itself() -> None:
    plan = make_plan(MACHINE, DISTRIBUTED, "wicp")
    assert compare(plan, plan) == []


def test_slots_are_compared_one_by_one() -> None:
    old = make_plan(MACHINE, DISTRIBUTED, "wicp")
    new = make_plan(MACHINE, DISTRIBUTED, "wicp", count=3)
    lines = [str(change) for change in compare(old, new)]
    assert "~ slot 0 cpus: 0-3 -> 0-2" in lines
    assert any(line.startswith("+ slot 2: CPUs ") for line in lines)
    back = [str(change) for change in compare(new, old)]
    assert any(line.startswith("- slot 2: CPUs ") for line in back)


def test_a_mask_that_goes_is_a_change_of_the_slot_not_its_end() -> None:
    old = make_plan(MACHINE, DISTRIBUTED, "win")
    new = make_plan(MACHINE, DISTRIBUTED, "wim")
    assert "~ slot 0 cpus: 0-7 -> no mask" in [str(change) for change in compare(old, new)]


def test_one_of_a_kind_is_in_the_singular() -> None:
    one, two = (make_plan(plain(2, nodes=nodes), DISTRIBUTED, "wim") for nodes in (1, 2))
    (line,) = [str(change) for change in compare(one, two) if change.where == "machine"]
    assert line == (
        "~ machine: 1 package, 1 NUMA node, 0 chiplets, 0 L3s, 2 cores, 2 PUs -> "
        "2 packages, 2 NUMA nodes, 0 chiplets, 0 L3s, 4 cores, 4 PUs"
    )


def test_an_address_and_threads_are_shown_in_words() -> None:
    traits = DISTRIBUTED.model_copy(update={"listens": True})
    old = make_plan(MACHINE, traits, "wicp")
    new = make_plan(
        MACHINE,
        traits,
        "wicp",
        listen=(Place("10.0.0.5", "eth0"),),
        placement=Placement.DENSE,
    )
    lines = {change.where: str(change) for change in compare(old, new)}
    assert lines["task_threads"] == "~ task_threads: none -> named task"
    assert lines["coordinator"].endswith(", at 10.0.0.5")
    assert lines["slot 0 address"] == "~ slot 0 address: none -> 10.0.0.5"
