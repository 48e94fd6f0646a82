"""A JVM's placement flags: UseNUMA only where it stays on, and the heap touched at the start."""

from __future__ import annotations

import pytest

from atoll.plan import make_plan
from atoll.plan.jvm import placement_flags
from atoll.schema.machine import Machine
from atoll.schema.plan import MemoryPolicy, Plan
from tests.parts.machines import NodeShape, build, milan, plain
from tests.parts.plan import DISTRIBUTED, SINGLE

NUMA = "-XX:+UseNUMA"
TWO_NODES = milan(2)
FOUR_NODES = plain(8, nodes=4)
LOSES = "a JVM would turn it off"


def flags(plan: Plan) -> list[list[str]]:
    return [placement_flags(slot, plan) for slot in plan.slots]


@pytest.mark.parametrize(
    ("machine", "policy", "count", "memory", "on"),
    [
        (TWO_NODES, "wim", None, None, True),  # no masks: both are the whole machine
        (TWO_NODES, "wim", None, MemoryPolicy.INTERLEAVE, True),
        (TWO_NODES, "wim", None, MemoryPolicy.PREFERRED, False),  # it would override the wish
        (TWO_NODES, "win", None, None, False),  # one node: the JVM turns it off
        (TWO_NODES, "spmwin", None, None, True),
        (TWO_NODES, "win", 1, MemoryPolicy.FIRST_TOUCH, True),
        (FOUR_NODES, "win", 2, None, True),  # two nodes each, interleaved over these
        (FOUR_NODES, "win", 2, MemoryPolicy.BIND, True),
        (FOUR_NODES, "win", 2, MemoryPolicy.FIRST_TOUCH, False),  # memory of all four
        (FOUR_NODES, "win", 2, MemoryPolicy.INTERLEAVE, False),  # over all four
        (FOUR_NODES, "win", None, MemoryPolicy.INTERLEAVE, False),
        (plain(4), "wim", None, None, False),
    ],
)
def test_numa_is_used_where_cpus_and_memory_have_the_same_nodes(
    machine: Machine, policy: str, count: int | None, memory: MemoryPolicy | None, on: bool
) -> None:
    plan = make_plan(machine, DISTRIBUTED, policy, count=count, memory=memory)
    assert {NUMA in found for found in flags(plan)} == {on}


def test_masks_that_differ_are_warned_of_at_plan_time() -> None:
    lost = make_plan(FOUR_NODES, DISTRIBUTED, "win", memory=MemoryPolicy.INTERLEAVE)
    assert any(LOSES in warning for warning in lost.warnings)
    for plan in (
        make_plan(FOUR_NODES, DISTRIBUTED, "win"),
        make_plan(FOUR_NODES, DISTRIBUTED, "wim"),
        make_plan(FOUR_NODES, SINGLE, "win", memory=MemoryPolicy.INTERLEAVE),  # no JVM
    ):
        assert not any(LOSES in warning for warning in plan.warnings)


def test_heaps_are_touched_where_it_decides_on_their_node_the_same_under_every_policy() -> None:
    for policy in ("wim", "win", "spmwin"):
        plan = make_plan(TWO_NODES, DISTRIBUTED, policy)
        for slot, found in zip(plan.slots, flags(plan), strict=True):
            assert "-XX:+AlwaysPreTouch" in found
            assert f"-Xms{slot.heap_bytes >> 20}m" in found, "only what is there can be touched"
    for found in flags(make_plan(plain(4), DISTRIBUTED, "wic")):
        assert found == ["-XX:ActiveProcessorCount=1"]


def test_unequal_slots_get_their_own() -> None:
    machine = build([[NodeShape((), 2, 32)], [NodeShape((), 6, 96)]])
    small, large = flags(make_plan(machine, DISTRIBUTED, "win"))
    assert "-XX:ActiveProcessorCount=2" in small and "-XX:ActiveProcessorCount=6" in large
