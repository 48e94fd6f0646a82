"""The place and size of memory: bind, interleave, nodes without memory, heaps with the same total
under every policy."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given, settings

from atoll.errors import UsageError
from atoll.plan import comparable, make_plan, planner
from atoll.plan.cores import Group
from atoll.plan.policies import divide
from atoll.schema.machine import Distances
from atoll.schema.plan import EngineTraits, MemoryPolicy, Policy
from tests.parts.faults import fails
from tests.parts.machines import GIB, NodeShape, build, milan, plain, restrict
from tests.parts.plan import DISTRIBUTED, SINGLE, shapes

HEAVY = DISTRIBUTED.model_copy(update={"min_heap_bytes": GIB, "overhead_bytes": GIB // 2})
NATIVE = DISTRIBUTED.model_copy(update={"jvm": False})


def test_slots_are_bound_where_nodes_are_several() -> None:
    plan = make_plan(milan(2), DISTRIBUTED, "wicp")
    for slot in plan.slots:
        assert slot.memory_policy is MemoryPolicy.BIND
        assert slot.memory_nodes == slot.nodes
    (slot, *_) = make_plan(milan(1), DISTRIBUTED, "wicp").slots
    assert slot.memory_policy is MemoryPolicy.FIRST_TOUCH


def test_a_mask_on_one_node_of_two_is_still_bound() -> None:
    machine = restrict(milan(2, 2, 2), pus=(0, 1, 2, 3))
    (slot,) = make_plan(machine, DISTRIBUTED, "win").slots
    assert (slot.memory_policy, slot.memory_nodes) == (MemoryPolicy.BIND, (0,))


def test_a_slot_over_several_nodes_interleaves_over_its_own() -> None:
    plan = make_plan(plain(4, nodes=4), DISTRIBUTED, "win", count=2)
    assert [slot.memory_nodes for slot in plan.slots] == [(0, 1), (2, 3)]
    assert {slot.memory_policy for slot in plan.slots} == {MemoryPolicy.INTERLEAVE}


@pytest.mark.parametrize(
    ("asked", "nodes"),
    [
        (MemoryPolicy.LOCAL, ()),
        (MemoryPolicy.FIRST_TOUCH, ()),
        (MemoryPolicy.BIND, (1,)),
        (MemoryPolicy.PREFERRED, (1,)),
        (MemoryPolicy.INTERLEAVE, (0, 1)),
        (MemoryPolicy.WEIGHTED_INTERLEAVE, (0, 1)),
    ],
)
def test_what_is_asked_for_is_set(asked: MemoryPolicy, nodes: tuple[int, ...]) -> None:
    plan = make_plan(milan(2), DISTRIBUTED, "win", memory=asked)
    assert plan.slots[1].memory_policy is asked
    assert plan.slots[1].memory_nodes == nodes


def test_preferred_is_one_node_also_over_several() -> None:
    machine = build([[NodeShape((), 2), NodeShape((), 6)]])
    (slot,) = make_plan(machine, DISTRIBUTED, "win", count=1, memory=MemoryPolicy.PREFERRED).slots
    assert slot.memory_nodes == (1,), "the node with most of the slot's cores"


def test_cores_of_a_node_without_memory_take_the_nearest() -> None:
    machine = build(
        [[NodeShape((), 4, 64), NodeShape((), 4, 0)], [NodeShape((), 4, 64)]],
    ).model_copy(
        update={
            "distances": Distances(
                nodes=(0, 1, 2), values=((10, 30, 20), (30, 10, 16), (20, 16, 10))
            )
        }
    )
    plan = make_plan(machine, DISTRIBUTED, "win")
    assert [slot.memory_nodes for slot in plan.slots] == [(0,), (2,), (2,)]
    assert any("node 1 has no memory" in warning for warning in plan.warnings)
    assert plan.slots[1].memory_bytes * 2 <= 64 * GIB, "two nodes' cores share node 2"


def test_memory_that_the_cgroup_forbids_is_never_bound() -> None:
    machine = restrict(milan(2), nodes=(1,))
    plan = make_plan(machine, DISTRIBUTED, "win")
    bound = {node for slot in plan.slots for node in slot.memory_nodes}
    assert bound <= {1}


def test_nodes_without_cpus_get_no_slot_and_no_interleaving() -> None:
    machine = build([[NodeShape((4,), 0, 64), NodeShape((4,), 0, 64), NodeShape((), 0, 256)]])
    plan = make_plan(machine, DISTRIBUTED, "win")
    assert [slot.nodes for slot in plan.slots] == [(0,), (1,)]
    (slot,) = make_plan(machine, SINGLE, "auto").slots
    assert slot.memory_nodes == (0, 1)


def test_weighted_interleave_takes_slower_memory_too_but_not_a_gpus() -> None:
    machine = build(
        [
            [
                NodeShape((4,), 0, 64),
                NodeShape((4,), 0, 64),
                NodeShape((), 0, 256, "CXL-DRAM"),
                NodeShape((), 0, 16, "GPUMemory"),
            ]
        ]
    )
    weighted = MemoryPolicy.WEIGHTED_INTERLEAVE
    (slot,) = make_plan(machine, SINGLE, "win", count=1, memory=weighted).slots
    assert slot.memory_nodes == (0, 1, 2)


@given(shapes)
@settings(max_examples=60)
def test_heap_and_threads_do_not_depend_on_the_policy(shape: list[list[NodeShape]]) -> None:
    machine = build(shape)
    plans = [make_plan(machine, NATIVE, policy) for policy in Policy]
    assert len({plan.total_heap_bytes for plan in plans}) == 1
    assert len({plan.total_threads for plan in plans}) == 1
    assert len({plan.shuffle_partitions for plan in plans}) == 1
    memory = sum(node.memory_bytes for node in machine.nodes)
    for plan in plans:
        assert sum(slot.memory_bytes for slot in plan.slots) <= memory - GIB
        for slot in plan.slots:
            assert slot.heap_bytes < slot.memory_bytes
        assert plan.total_heap_bytes == sum(slot.heap_bytes for slot in plan.slots)


def test_shares_follow_the_node_not_the_machine() -> None:
    machine = build([[NodeShape((), 4, 32), NodeShape((), 4, 96)]])
    first, second = make_plan(machine, NATIVE, "win").slots
    assert second.memory_bytes == pytest.approx(3 * first.memory_bytes, rel=1e-6)


def test_a_cgroup_limit_cuts_all_shares() -> None:
    plan = make_plan(restrict(milan(2), memory_max_bytes=65 * GIB), NATIVE, "win")
    assert sum(slot.memory_bytes for slot in plan.slots) == 64 * GIB
    assert plan.total_heap_bytes == 48 * GIB


def test_a_jvm_heap_keeps_its_compressed_pointers() -> None:
    def heap(memory_gib: float, traits: EngineTraits) -> float:
        (slot,) = make_plan(plain(4, memory_gib=memory_gib + 1), traits, "wim").slots
        return slot.heap_bytes / GIB

    assert heap(40, DISTRIBUTED) == 30
    assert heap(48, DISTRIBUTED) == 31, "36 GiB would hold less than 31"
    assert heap(42.65, DISTRIBUTED) == 31, "31.99 GiB has none either"
    assert heap(48, NATIVE) == 36
    assert heap(80, DISTRIBUTED) == 60


def test_comparable_plans_have_one_sum_of_heaps() -> None:
    machine = milan(2)  # 48 GiB a chiplet: heaps of 48 GiB a slot are cut, those of wim are not
    alone = {make_plan(machine, DISTRIBUTED, policy).total_heap_bytes for policy in ("wim", "wicp")}
    assert len(alone) == 2
    plans = comparable(
        [partial(make_plan, machine, DISTRIBUTED, one) for one in ("wim", "win", "wicp", "wic")]
    )
    assert {plan.total_heap_bytes for plan in plans} == {min(alone)}


def test_too_many_instances_name_how_many_would_fit() -> None:
    machine = plain(64, memory_gib=17)
    with pytest.raises(UsageError) as refused:
        make_plan(machine, HEAVY, "wic")
    fitting = int(str(refused.value).rsplit("-n ", 1)[1].split()[0])
    assert len(make_plan(machine, HEAVY, "wic", count=fitting).slots) == fitting
    with pytest.raises(UsageError):
        make_plan(machine, HEAVY, "wic", count=fitting + 1)


def test_a_refusal_divides_the_machine_only_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of divisions of a large machine take minutes."""
    asked: list[int | None] = []

    def counting(policy: Policy, places: Group, count: int | None) -> list[Group]:
        asked.append(count)
        return divide(policy, places, count)

    monkeypatch.setattr(planner, "divide", counting)
    with fails(UsageError, asked="512 instances", fitting="-n 10"):
        make_plan(plain(512, memory_gib=17), HEAVY, "wic")
    assert len(asked) <= 11


def test_a_machine_too_small_for_one_instance_is_refused() -> None:
    with fails(UsageError, heap="510 MiB"):
        make_plan(plain(2, memory_gib=2), HEAVY, "wim")
    with fails(UsageError, have="512 MiB"):
        make_plan(plain(2, memory_gib=0.5), HEAVY, "wim")
    with fails(UsageError):
        make_plan(plain(2, memory_gib=0), HEAVY, "wim")
