"""The policies: disjoint slots that cover the machine, each policy's own shape, the choice of
`auto`, and policies that coincide."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.errors import UsageError
from atoll.plan import machine_id, make_plan
from atoll.plan.coordinator import CoordinatorChoice, parse_coordinator
from atoll.schema.base import parse
from atoll.schema.machine import Machine
from atoll.schema.plan import (
    CoordinatorKind,
    EngineTraits,
    MemoryPolicy,
    Placement,
    Plan,
    Policy,
)
from tests.parts.faults import fails
from tests.parts.machines import NodeShape, build, milan, plain, restrict
from tests.parts.plan import DISTRIBUTED, SERIAL, SINGLE, shapes


def cpus_of(plan: Plan) -> list[int]:
    return [cpu for slot in plan.slots for cpu in slot.cpus or ()]


def reasons(plan: Plan) -> set[str]:
    return {reason.rule for reason in plan.reasons}


@given(shapes, st.sampled_from(Policy), st.integers(1, 2), st.booleans(), st.data())
@settings(max_examples=120)
def test_slots_are_disjoint_and_all_of_the_machine(
    shape: list[list[NodeShape]], policy: Policy, threads: int, smt: bool, data: st.DataObject
) -> None:
    machine = build(shape, smt=threads)
    if policy is Policy.WIM:
        return
    count = data.draw(st.none() | st.integers(1, len(machine.cores)))
    reserved = data.draw(st.integers(0, max(0, len(machine.cores) - (count or 1))))
    reserved = min(reserved, len(machine.cores) - 1)
    choice = CoordinatorChoice(CoordinatorKind.RESERVED, reserved) if reserved else None
    plan = make_plan(machine, DISTRIBUTED, policy, count=count, smt=smt, coordinator=choice)
    used = cpus_of(plan)
    if plan.coordinator and plan.coordinator.cpus:
        used += plan.coordinator.cpus
    usable = [pu for core in machine.cores for pu in (core.pus if smt else core.pus[:1])]
    assert sorted(used) == sorted(usable), "not every usable CPU exactly once"
    assert sum(slot.cores for slot in plan.slots) == len(machine.cores) - reserved
    assert plan.total_threads == sum(len(slot.cpus or ()) for slot in plan.slots)
    if count is not None:
        assert len(plan.slots) == count
        sizes = {slot.cores for slot in plan.slots}
        assert max(sizes) - min(sizes) <= 1
    assert make_plan(machine, DISTRIBUTED, policy, count=count, smt=smt, coordinator=choice) == plan


def test_win_takes_unequal_nodes_as_they_are() -> None:
    machine = build([[NodeShape((8, 8)), NodeShape((8, 6))]])
    plan = make_plan(machine, DISTRIBUTED, "win")
    assert [slot.cores for slot in plan.slots] == [16, 14]
    assert [slot.nodes for slot in plan.slots] == [(0,), (1,)]


def test_wicp_gives_cores_outside_chiplets_a_slot_per_node() -> None:
    machine = build([[NodeShape((8, 6), rest=3), NodeShape((8,), rest=2)]])
    plan = make_plan(machine, DISTRIBUTED, "wicp")
    assert [slot.cores for slot in plan.slots] == [8, 6, 3, 8, 2]
    assert [slot.chiplets for slot in plan.slots] == [(0,), (1,), (), (2,), ()]
    assert "cores outside chiplets" in reasons(plan)


def test_wicp_mixed_spreads_each_slot_over_its_nodes_chiplets() -> None:
    plan = make_plan(milan(2, 8, 8), DISTRIBUTED, "wicp-mixed")
    assert len(plan.slots) == 16
    for slot in plan.slots:
        assert slot.cores == 8
        assert len(slot.chiplets) == 8, "one core of each chiplet of the node"
        assert len(slot.nodes) == 1


@given(shapes)
@settings(max_examples=60)
def test_wicp_mixed_takes_an_even_share_of_every_chiplet(shape: list[list[NodeShape]]) -> None:
    machine = build(shape)
    mixed = make_plan(machine, DISTRIBUTED, "wicp-mixed")
    assert len(mixed.slots) == len(make_plan(machine, DISTRIBUTED, "wicp").slots)
    for chiplet in machine.chiplets:
        slots = [slot for slot in mixed.slots if slot.nodes == (chiplet.node,)]
        shares = [len(set(chiplet.pus).intersection(slot.cpus or ())) for slot in slots]
        assert max(shares) - min(shares) <= 1


def test_spmwin_spreads_as_many_slots_as_win_over_all_nodes() -> None:
    machine = plain(16, nodes=4)
    plan = make_plan(machine, DISTRIBUTED, "spmwin")
    assert len(plan.slots) == 4
    for slot in plan.slots:
        of_node = Counter(machine.cores[cpu].node for cpu in slot.cpus or ())
        assert of_node == {0: 4, 1: 4, 2: 4, 3: 4}
        assert slot.memory_policy is MemoryPolicy.INTERLEAVE
        assert slot.memory_nodes == (0, 1, 2, 3)


def test_wim_sets_nothing() -> None:
    (slot,) = make_plan(milan(), DISTRIBUTED, "wim").slots
    assert slot.cpus is None
    assert slot.memory_policy is MemoryPolicy.FIRST_TOUCH
    assert slot.memory_nodes == ()
    assert slot.threads == slot.cores == 128


def test_one_thread_per_core_unless_smt_is_asked_for() -> None:
    machine = milan(1, 2, 2, smt=2)
    assert cpus_of(make_plan(machine, DISTRIBUTED, "wicp")) == [0, 1, 2, 3]
    assert sorted(cpus_of(make_plan(machine, DISTRIBUTED, "wicp", smt=True))) == list(range(8))


def test_only_allowed_cpus_are_used_and_the_lowest_of_a_core() -> None:
    machine = restrict(milan(1, 2, 4, smt=2), pus=(1, 8, 9, 12))
    plan = make_plan(machine, DISTRIBUTED, "wicp")
    assert [slot.cpus for slot in plan.slots] == [(1, 8), (12,)]
    smt = make_plan(machine, DISTRIBUTED, "wicp", smt=True)
    assert [slot.cpus for slot in smt.slots] == [(1, 8, 9), (12,)]


@pytest.mark.parametrize(
    ("machine", "traits", "policy"),
    [
        (milan(), DISTRIBUTED, Policy.WICP),
        (plain(28, nodes=2), DISTRIBUTED, Policy.WIN),
        (plain(2), DISTRIBUTED, Policy.WIN),
        (milan(), SERIAL, Policy.WIC),
        (milan(), SINGLE, Policy.WIM),
    ],
)
def test_auto_takes_the_policy_of_the_papers(
    machine: Machine, traits: EngineTraits, policy: Policy
) -> None:
    plan = make_plan(machine, traits, "auto")
    assert plan.policy is policy
    assert plan.asked == "auto"
    assert plan.reasons[0].rule.startswith("auto picks")
    assert plan.reasons[0].source


def test_auto_interleaves_a_single_server_over_nodes_only() -> None:
    (slot,) = make_plan(milan(2), SINGLE, "auto").slots
    assert (slot.cpus, slot.memory_policy, slot.memory_nodes) == (
        None,
        MemoryPolicy.INTERLEAVE,
        (0, 1),
    )
    (slot,) = make_plan(milan(1), SINGLE, "auto").slots
    assert slot.memory_policy is MemoryPolicy.FIRST_TOUCH


def test_more_single_servers_are_copies_and_the_plan_says_so() -> None:
    plan = make_plan(milan(2), SINGLE, "auto", count=4)
    assert len(plan.slots) == 4
    assert "copies" in reasons(plan)
    assert {slot.memory_policy for slot in plan.slots} == {MemoryPolicy.BIND}


def test_policies_that_coincide_are_named() -> None:
    plan = make_plan(plain(2), DISTRIBUTED, "auto")
    assert plan.coincides_with == (Policy.WICP, Policy.WICP_MIXED, Policy.SPMWIN)
    (mask,) = [reason for reason in plan.reasons if reason.rule == "only the mask differs"]
    assert "every CPU" in mask.text
    smt = make_plan(plain(2, smt=2), DISTRIBUTED, "auto")
    (mask,) = [reason for reason in smt.reasons if reason.rule == "only the mask differs"]
    assert "excludes CPUs" in mask.text


def test_policies_that_differ_are_not_said_to_coincide() -> None:
    plan = make_plan(milan(), DISTRIBUTED, "auto")
    assert plan.coincides_with == ()
    assert not {"no choice", "only the mask differs"} & reasons(plan)


def test_with_a_count_the_local_policies_are_one() -> None:
    plan = make_plan(milan(), DISTRIBUTED, "win", count=8)
    assert plan.coincides_with == (Policy.WICP, Policy.WIC)


def test_sub_numa_chiplets_make_wicp_and_win_coincide() -> None:
    machine = build([[NodeShape((14,))] * 4] * 2)
    assert Policy.WIN in make_plan(machine, DISTRIBUTED, "wicp").coincides_with


@pytest.mark.parametrize(
    ("policy", "count", "fields"),
    [
        ("wic", 129, {"asked": 129, "cores": 128}),
        ("win", 0, {"asked": 0}),
        ("wim", 2, {"asked": 2}),
        ("nonsense", None, {"policy": "'nonsense'"}),
    ],
)
def test_what_the_machine_cannot_hold_is_refused(
    policy: str, count: int | None, fields: dict[str, object]
) -> None:
    with fails(UsageError, **fields):
        make_plan(milan(), DISTRIBUTED, policy, count=count)


def test_thread_placement_orders_a_slots_cpus() -> None:
    machine = milan(2, 2, 2, smt=2)
    (slot,) = make_plan(
        machine, DISTRIBUTED, "win", count=1, smt=True, placement=Placement.DENSE
    ).slots
    assert slot.thread_cpus[:4] == (0, 8, 1, 9)
    (slot,) = make_plan(
        machine, DISTRIBUTED, "win", count=1, smt=True, placement=Placement.SPARSE
    ).slots
    assert slot.thread_cpus == (0, 4, 2, 6, 1, 5, 3, 7, 8, 12, 10, 14, 9, 13, 11, 15)
    with fails(UsageError, placement="dense"):
        make_plan(machine, DISTRIBUTED, "wim", placement=Placement.DENSE)


def test_thread_placement_is_refused_for_threads_that_cannot_be_bound() -> None:
    reason = "they have no names"
    unnamed = DISTRIBUTED.model_copy(update={"task_threads": reason})
    assert make_plan(milan(), unnamed, "win").task_threads is None
    with fails(UsageError, placement="dense", engine="engine", reason=reason):
        make_plan(milan(), unnamed, "win", placement=Placement.DENSE)
    plan = make_plan(milan(), DISTRIBUTED, "win", placement=Placement.DENSE)
    assert plan.task_threads == DISTRIBUTED.task_threads


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"task_threads": None}, {"field": "task_threads"}),
        ({"thread_cpus": ()}, {"slot": 1, "field": "thread_cpus"}),
        ({"thread_cpus": (64, 64)}, {"slot": 1, "field": "thread_cpus"}),
        ({"thread_cpus": (0, 64)}, {"slot": 1, "field": "thread_cpus"}),
        ({"cpus": None}, {"slot": 1, "field": "thread_cpus"}),
    ],
)
def test_an_edited_plan_whose_threads_cannot_be_placed_is_refused(
    change: dict[str, object], named: dict[str, object]
) -> None:
    plan = make_plan(milan(), DISTRIBUTED, "win", placement=Placement.SPARSE)
    raw = plan.model_dump(mode="json")
    (raw if "task_threads" in change else raw["slots"][1]).update(change)
    with fails(UsageError, path="plan.json", **named):
        parse(Plan, json.dumps(raw), where="plan.json")


@given(shapes, st.sampled_from([Placement.DENSE, Placement.SPARSE]))
@settings(max_examples=40)
def test_thread_placement_is_a_permutation(
    shape: list[list[NodeShape]], placement: Placement
) -> None:
    for slot in make_plan(build(shape, smt=2), DISTRIBUTED, "win", placement=placement).slots:
        assert tuple(sorted(slot.thread_cpus)) == slot.cpus


def test_a_reserved_coordinator_takes_the_last_cores() -> None:
    choice = parse_coordinator("reserved:8")
    plan = make_plan(milan(), DISTRIBUTED, "wicp", coordinator=choice)
    assert plan.coordinator is not None
    assert plan.coordinator.cpus == tuple(range(120, 128))
    assert plan.coordinator.memory_nodes == (1,)
    assert len(plan.slots) == 15, "the last chiplet is the coordinator's"
    with fails(UsageError, asked=128, limit=127):
        make_plan(milan(), DISTRIBUTED, "wicp", coordinator=parse_coordinator("reserved:128"))


def test_the_coordinator_is_its_own_choice() -> None:
    shared = make_plan(milan(), DISTRIBUTED, "wic")
    assert shared.coordinator is not None and shared.coordinator.cpus is None
    inside = make_plan(milan(), DISTRIBUTED, "wic", coordinator=parse_coordinator("in-worker"))
    assert inside.coordinator is not None
    assert inside.coordinator.cpus == inside.slots[0].cpus
    assert any("0.65x" in warning for warning in inside.warnings)
    with fails(UsageError, engine=SINGLE.name):
        make_plan(milan(), SINGLE, "wim", coordinator=parse_coordinator("shared"))


@pytest.mark.parametrize("text", ["", "shared:1", "reserved", "reserved:", "reserved:-1", "else"])
def test_a_nonsense_coordinator_is_refused(text: str) -> None:
    with fails(UsageError, text=f"--coordinator {text}:"):
        parse_coordinator(text)


def test_machine_id_knows_the_machine_and_not_its_limits() -> None:
    machine = milan()
    assert machine_id(machine) == machine_id(restrict(machine, pus=(0, 1), nodes=(0,)))
    assert machine_id(machine) != machine_id(milan(2, 16, 4))
    assert make_plan(machine, DISTRIBUTED, "win").machine_id == machine_id(machine)
