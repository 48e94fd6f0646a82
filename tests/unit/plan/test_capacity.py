"""A plan never exceeds the machine's memory, and warns if a query exceeds an instance's memory."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.engines import registry
from atoll.errors import UsageError
from atoll.plan import make_plan
from atoll.plan.capacity import Demand, need_bytes, room_bytes
from atoll.plan.coordinator import CoordinatorChoice
from atoll.plan.sizing import beside_heap_bytes
from atoll.schema.machine import Machine
from atoll.schema.plan import CoordinatorKind, EngineTraits, MemoryPolicy, Plan, Policy
from atoll.schema.size import parse_size
from tests.parts.faults import fails
from tests.parts.machines import GIB, MIB, NodeShape, build, milan, plain, restrict
from tests.parts.plan import DISTRIBUTED, SINGLE, shapes

ENGINES = [registry.get(name).traits for name in registry.names()]
invented = st.builds(
    lambda ratio, off_heap, page_cache, overhead, asked, coordinator, jvm: DISTRIBUTED.model_copy(
        update={
            "heap_ratio": ratio,
            "off_heap_ratio": off_heap,
            "page_cache_ratio": page_cache,
            "overhead_bytes": overhead,
            "asked_bytes": asked,
            "coordinator_bytes": coordinator,
            "coordinator_overhead_bytes": coordinator // 3,
            "coordinator_ratio": page_cache,
            "jvm": jvm,
        }
    ),
    st.floats(0.05, 0.95),
    st.floats(0, 1.5),
    st.floats(0, 0.5),
    st.integers(0, GIB),
    st.integers(0, 8 * GIB),
    st.integers(0, 3 * GIB),
    st.booleans(),
)
coordinators = st.one_of(
    st.none(),
    st.just(CoordinatorChoice(CoordinatorKind.IN_WORKER)),
    st.builds(CoordinatorChoice, st.just(CoordinatorKind.RESERVED), st.integers(1, 4)),
)


@given(
    shapes,
    st.one_of(st.sampled_from(ENGINES), invented),
    st.sampled_from(Policy),
    st.one_of(st.none(), st.integers(1, 12)),
    st.one_of(st.none(), st.sampled_from(MemoryPolicy)),
    coordinators,
    st.one_of(st.none(), st.integers(1, 300)),
)
@settings(max_examples=300, deadline=None)
def test_a_plan_never_exceeds_the_machines_memory(
    shape: list[list[NodeShape]],
    traits: EngineTraits,
    policy: Policy,
    count: int | None,
    memory: MemoryPolicy | None,
    coordinator: CoordinatorChoice | None,
    cgroup_gib: int | None,
) -> None:
    machine = build(shape)
    if cgroup_gib is not None:
        machine = restrict(machine, memory_max_bytes=cgroup_gib * GIB)
    try:
        plan = make_plan(
            machine, traits, policy, count=count, memory=memory, coordinator=coordinator
        )
    except UsageError:
        return  # refused, so nothing is exceeded
    limit = min(sum(node.memory_bytes for node in machine.nodes), (cgroup_gib or 1 << 20) * GIB)
    aside = 0
    if plan.coordinator:
        aside = plan.coordinator.heap_bytes + traits.coordinator_overhead_bytes
    assert sum(taken_bytes(plan, traits)) + aside <= limit
    assert sum(slot.memory_bytes for slot in plan.slots) + aside <= limit
    for slot, taken in zip(plan.slots, taken_bytes(plan, traits), strict=True):
        assert taken <= slot.memory_bytes
    for node, bound in bound_bytes(plan, machine, aside).items():
        assert bound <= machine.node_by_os_index[node].memory_bytes, f"node {node}"


def taken_bytes(plan: Plan, traits: EngineTraits) -> list[Fraction]:
    """Heap, off-heap memory and what is kept for the page cache, slot by slot."""
    ratio = Fraction(round(traits.page_cache_ratio * 10**6), 10**6)
    return [
        slot.heap_bytes + beside_heap_bytes(slot.heap_bytes, traits) + ratio * slot.memory_bytes
        for slot in plan.slots
    ]


def bound_bytes(plan: Plan, machine: Machine, aside: int) -> Counter[int]:
    """What is bound to one node only; a coordinator's part of it too."""
    bound: Counter[int] = Counter()
    for slot in plan.slots:
        if slot.memory_policy is MemoryPolicy.BIND and len(slot.memory_nodes) == 1:
            bound[slot.memory_nodes[0]] += slot.memory_bytes
    place = plan.coordinator
    if place is not None and len(place.memory_nodes) == 1:
        bound[place.memory_nodes[0]] += aside
    return bound


def test_off_heap_memory_and_the_page_cache_are_kept_free() -> None:
    traits = DISTRIBUTED.model_copy(
        update={"off_heap_ratio": 0.5, "page_cache_ratio": 0.25, "overhead_bytes": GIB}
    )
    (slot,) = make_plan(plain(4, memory_gib=33), traits, "wim").slots
    # Of 32 GiB 8 are the page cache's and 1 the instance's: 23 hold a heap and half as much.
    assert slot.heap_bytes == pytest.approx(23 / 1.5 * GIB, abs=2 * MIB)


@pytest.mark.parametrize(("memory_gib", "heap_gib"), [(8, 1), (64, 2), (512, 16), (4096, 31)])
def test_a_coordinators_heap_grows_with_the_machine_and_not_with_the_policy(
    memory_gib: int, heap_gib: int
) -> None:
    traits = DISTRIBUTED.model_copy(update={"coordinator_ratio": 1 / 32})
    for policy in ("wim", "wic"):
        plan = make_plan(plain(4, memory_gib=memory_gib), traits, policy)
        assert plan.coordinator and plan.coordinator.heap_bytes == heap_gib * GIB
        (said,) = [each.text for each in plan.reasons if each.rule == "coordinator's heap"]
        assert said.startswith(f"{heap_gib} GiB: 1/32")
    small = restrict(plain(4, memory_gib=512), memory_max_bytes=64 * GIB)
    coordinator = make_plan(small, traits, "wim").coordinator
    assert coordinator and coordinator.heap_bytes == 2 * GIB, "the cgroup's part of it"


def test_a_coordinator_on_one_of_many_nodes_leaves_room_for_its_workers() -> None:
    traits = DISTRIBUTED.model_copy(update={"coordinator_ratio": 1 / 32})
    machine = plain(4, nodes=32, memory_gib=32)
    for kind in (CoordinatorKind.IN_WORKER, CoordinatorKind.RESERVED):
        for policy in ("win", "wic"):
            plan = make_plan(machine, traits, policy, coordinator=CoordinatorChoice(kind, 2))
            assert plan.coordinator and plan.coordinator.heap_bytes == 8 * GIB
    anywhere = make_plan(machine, traits, "wic").coordinator
    assert anywhere and anywhere.heap_bytes == 31 * GIB


def test_what_instances_weigh_besides_is_warned_of_where_fewer_would_help() -> None:
    traits = DISTRIBUTED.model_copy(update={"overhead_bytes": 3 * GIB})
    machine = plain(4, memory_gib=17)
    assert not make_plan(machine, traits, "wim").warnings
    (said,) = make_plan(machine, traits, "wic").warnings
    assert said.startswith("4 instances have a fixed overhead of 3 GiB each")
    heavy = traits.model_copy(update={"asked_bytes": 12 * GIB, "asked_source": "x"})
    assert not make_plan(machine, heavy, "wim").warnings, "no fewer than one"


def test_a_coordinator_on_one_node_takes_that_nodes_memory() -> None:
    machine = milan(2)
    reserved = CoordinatorChoice(CoordinatorKind.RESERVED, 4)
    shared = make_plan(machine, DISTRIBUTED, "win")
    plan = make_plan(machine, DISTRIBUTED, "win", coordinator=reserved)
    assert [slot.memory_bytes for slot in plan.slots] == [
        pytest.approx(shared.slots[0].memory_bytes + GIB // 2, abs=100),
        pytest.approx(shared.slots[1].memory_bytes - GIB // 2, abs=100),
    ]


def test_a_node_too_small_for_its_coordinator_is_refused() -> None:
    machine = build([[NodeShape((), 4, 64), NodeShape((), 4, 1)]])
    with fails(UsageError, node="node 1", has="1 GiB"):
        make_plan(
            machine,
            DISTRIBUTED,
            "win",
            coordinator=CoordinatorChoice(CoordinatorKind.RESERVED, 1),
        )
    # All of it, so that no worker is there.
    with fails(UsageError, has="1 GiB"):
        make_plan(
            machine,
            DISTRIBUTED,
            "win",
            coordinator=CoordinatorChoice(CoordinatorKind.RESERVED, 4),
        )


# ---- what queries take ----------------------------------------------------------------------


def warned(plan: Plan) -> str:
    return " ".join(warning for warning in plan.warnings if "would spill" in warning)


def test_a_peak_is_divided_by_threads_and_a_broadcast_is_copied() -> None:
    demand = Demand(8 * GIB, GIB)
    assert need_bytes(4, 16, demand, DISTRIBUTED) == 3 * GIB
    assert need_bytes(4, 16, Demand(8 * GIB), SINGLE) == 8 * GIB, "a whole server has all of it"


def test_more_instances_copy_more_and_the_most_that_have_room_are_named() -> None:
    machine = plain(32, memory_gib=129)  # 96 GiB of heap
    for count in (1, 4):
        plan = make_plan(machine, DISTRIBUTED, "win", count=count, demand=Demand(0, 12 * GIB))
        assert not warned(plan)
    plan = make_plan(machine, DISTRIBUTED, "wic", demand=Demand(0, 12 * GIB, "seen in q9"))
    said = warned(plan)
    assert "12 GiB broadcast to each (seen in q9)" in said and "32 of 32 instances" in said
    fitting = int(said.split("-n ")[1].split()[0])
    for count, fits in ((fitting, True), (fitting + 1, False)):
        again = make_plan(machine, DISTRIBUTED, "wic", count=count, demand=Demand(0, 12 * GIB))
        assert bool(warned(again)) is not fits


def test_what_no_count_can_hold_is_said() -> None:
    machine = plain(8, memory_gib=17)
    (one,) = make_plan(machine, DISTRIBUTED, "wim", demand=Demand(99 * GIB)).warnings
    assert "more instances do not help" in one
    assert "fewer instances do not help" in warned(
        make_plan(machine, DISTRIBUTED, "wic", demand=Demand(99 * GIB))
    )


def test_room_is_the_engines_share_of_the_heap() -> None:
    traits = DISTRIBUTED.model_copy(update={"query_ratio": 0.6, "query_reserved_bytes": GIB})
    assert room_bytes(11 * GIB, traits) == 6 * GIB
    assert room_bytes(GIB // 2, traits) == 0


@given(st.integers(0, 64 * GIB), st.integers(0, 8 * GIB), st.lists(st.integers(1, 64), min_size=1))
def test_parts_of_a_peak_hold_all_of_it(peak: int, copied: int, threads: list[int]) -> None:
    needs = [need_bytes(own, sum(threads), Demand(peak, copied), DISTRIBUTED) for own in threads]
    assert 0 <= sum(needs) - peak - copied * len(threads) < len(threads)


def test_bound_servers_are_offered_preferred_and_heaps_of_jvms_are_not() -> None:
    demand = Demand(60 * GIB)
    machine = build([[NodeShape((), 4, 64)], [NodeShape((), 4, 64)]])
    assert "--memory preferred" in warned(make_plan(machine, SINGLE, "win", demand=demand))
    preferred = make_plan(machine, SINGLE, "win", memory=MemoryPolicy.PREFERRED, demand=demand)
    assert "--memory preferred" not in warned(preferred)
    jvm = make_plan(machine, DISTRIBUTED, "win", demand=Demand(200 * GIB))
    assert warned(jvm) and "--memory preferred" not in warned(jvm)


def test_a_roaming_coordinator_that_a_bound_node_cannot_hold_is_warned_of() -> None:
    machine = build([[NodeShape((), 1, 4)] * 4] * 2)
    tight = DISTRIBUTED.model_copy(update={"heap_ratio": 0.95, "coordinator_bytes": 2 * GIB})

    def said(**options: object) -> str:
        return " ".join(make_plan(machine, tight, "win", **options).warnings)  # type: ignore[arg-type]

    assert "coordinator (2 GiB) may run on any node" in said()
    assert "--memory preferred" in said() and "--coordinator reserved:K" in said()
    for options in (
        {"memory": MemoryPolicy.PREFERRED},
        {"coordinator": CoordinatorChoice(CoordinatorKind.RESERVED, 1)},
    ):
        assert "may run on any node" not in said(**options)


def test_whole_servers_broadcast_nothing() -> None:
    with fails(UsageError, engine=SINGLE.name):
        make_plan(plain(4), SINGLE, "wim", demand=Demand(0, GIB))


def test_every_reason_has_a_source() -> None:
    machines = (milan(2), plain(2))
    for machine, traits in itertools.product(machines, ENGINES):
        for policy in ("wim", "win"):
            plan = make_plan(machine, traits, policy, demand=Demand(GIB))
            rules = {reason.rule for reason in plan.reasons}
            assert {"heap", "reserved", "room for queries"} <= rules
            assert all(reason.text and reason.source for reason in plan.reasons)
            assert ("compressed pointers" in rules) is traits.jvm
            assert ("bound memory" in rules) is (plan.slots[0].memory_policy is MemoryPolicy.BIND)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512", 512),
        ("512B", 512),
        ("2K", 2048),
        ("1.5 GiB", 3 << 29),
        ("40GB", 40 * 10**9),
        ("1T", 1 << 40),
    ],
)
def test_sizes_as_people_write_them(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "GiB", "-1", "1e3", "1 2", "4XB", "1,5G", "٣G"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with fails(ValueError, text=repr(text)):
        parse_size(text)
