"""The first k cores: chiplet by chiplet, node by node; and the masks that they give to WIM."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.errors import UsageError
from atoll.plan import make_plan
from atoll.plan.coordinator import CoordinatorChoice
from atoll.plan.cores import first_cores, spread_cores, usable_places
from atoll.schema.plan import CoordinatorKind, MemoryPolicy, Placement, Plan, Policy
from tests.parts.faults import fails
from tests.parts.machines import NodeShape, build, milan
from tests.parts.plan import DISTRIBUTED, SINGLE, shapes

# Two packages of two nodes; a node has two chiplets of four cores, with two threads each.
BIG = build([[NodeShape((4, 4), memory_gib=32)] * 2] * 2, smt=2)


def cpus(plan: Plan) -> list[int]:
    return sorted(cpu for slot in plan.slots for cpu in slot.cpus or ())


@given(shapes, st.data())
@settings(max_examples=60, deadline=None)
def test_more_cores_contain_fewer_and_open_one_chiplet_at_a_time(
    shape: list[list[NodeShape]], data: st.DataObject
) -> None:
    places = usable_places(build(shape), smt=False)
    count = data.draw(st.integers(1, len(places)))
    first = first_cores(places, count)
    assert len(first) == count and set(first) <= set(places)
    if count > 1:
        assert set(first_cores(places, count - 1)) < set(first)
    for key in ("node", "chiplet"):
        taken = {getattr(place, key) for place in first} - {None}
        whole = [
            {place for place in places if getattr(place, key) == value} <= set(first)
            for value in taken
        ]
        assert whole.count(False) <= 1, f"a {key} is opened before the last one is full"


@given(shapes, st.data())
@settings(max_examples=60, deadline=None)
def test_spread_cores_lie_on_the_same_nodes_and_on_as_many_chiplets_as_they_can(
    shape: list[list[NodeShape]], data: st.DataObject
) -> None:
    places = usable_places(build(shape), smt=False)
    count = data.draw(st.integers(1, len(places)))
    first, spread = first_cores(places, count), spread_cores(places, count)
    assert len(spread) == len(set(spread)) == count and set(spread) <= set(places)
    assert sorted(str(one.node) for one in spread) == sorted(str(one.node) for one in first)
    for node in {one.node for one in spread}:
        mine = [one.chiplet for one in spread if one.node == node]
        known = {one.chiplet for one in places if one.node == node} - {None}
        assert len(set(mine) - {None}) == min(len(known), len(mine))


def test_spread_cores_are_the_plan() -> None:
    plan = make_plan(BIG, SINGLE, "wim", cores=2, spread=True)
    assert cpus(plan) == [0, 4] and plan.slots[0].chiplets == (0, 1)
    assert any("spread over all chiplets" in reason.text for reason in plan.reasons)


def test_hidden_chiplets_that_alternate_are_filled_one_by_one() -> None:
    places = [
        place._replace(chiplet=place.core % 2) for place in usable_places(milan(1, 1, 8), smt=False)
    ]
    assert [place.core for place in first_cores(tuple(places), 5)] == [0, 1, 2, 4, 6]


@pytest.mark.parametrize("policy", list(Policy))
def test_every_policy_gets_the_mask_of_the_first_cores(policy: Policy) -> None:
    plan = make_plan(BIG, DISTRIBUTED, policy, cores=6)
    assert plan.total_threads == 6 and len(cpus(plan)) == 6
    assert {chiplet for slot in plan.slots for chiplet in slot.chiplets} == {0, 1}
    assert {node for slot in plan.slots for node in slot.nodes} == {0}
    assert plan.coordinator is not None and sorted(plan.coordinator.cpus or ()) == cpus(plan)
    assert any(reason.rule == "masked" for reason in plan.reasons)


def test_a_masked_wim_sets_nothing_but_its_mask() -> None:
    plain, masked = (make_plan(BIG, SINGLE, "wim", mask=mask) for mask in (False, True))
    assert plain.slots[0].cpus is None
    assert len(cpus(masked)) == 32, "one CPU of each core"
    assert masked.slots[0].memory_policy is MemoryPolicy.FIRST_TOUCH
    assert masked.total_heap_bytes == plain.total_heap_bytes
    placed = make_plan(BIG, DISTRIBUTED, "wim", mask=True, placement=Placement.SPARSE)
    assert set(placed.slots[0].thread_cpus) == set(cpus(placed))
    asked = make_plan(BIG, SINGLE, "wim", mask=True, memory=MemoryPolicy.BIND)
    assert asked.slots[0].memory_policy is MemoryPolicy.BIND


def test_the_coordinators_own_cores_are_among_them() -> None:
    choice = CoordinatorChoice(CoordinatorKind.RESERVED, 1)
    plan = make_plan(BIG, DISTRIBUTED, "wim", cores=5, coordinator=choice)
    assert plan.total_threads == 4 and plan.coordinator is not None
    assert len(cpus(plan) + list(plan.coordinator.cpus or ())) == 5


@pytest.mark.parametrize("cores", [0, 33])
def test_more_cores_than_there_are_is_refused(cores: int) -> None:
    with fails(UsageError, cores=cores, least=1, most=32):
        make_plan(BIG, DISTRIBUTED, "wim", cores=cores)
