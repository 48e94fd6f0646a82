"""What the user decides: heaps, the page cache, a reserve for other services, malloc and huge
pages; and how `auto` weighs the heap that small instances lose."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.engines import registry
from atoll.errors import UsageError
from atoll.plan import comparable, make_plan
from atoll.plan.request import Choices
from atoll.plan.sizing import PageCache, beside_heap_bytes, parse_page_cache
from atoll.schema.machine import Notice
from atoll.schema.plan import EngineTraits, HugePages, Malloc, Plan, Policy
from tests.parts.faults import fails
from tests.parts.machines import GIB, MIB, NodeShape, build, milan, plain
from tests.parts.plan import DISTRIBUTED, SINGLE, shapes

ENGINES = [registry.get(name).traits for name in registry.names()]
TRINO = registry.get("trino").traits
# Two packages of four nodes with 128 GiB and two chiplets each.
BIG = build([[NodeShape((8, 8), memory_gib=128)] * 4] * 2)


def reason(plan: Plan, rule: str) -> str:
    return next(one.text for one in plan.reasons if one.rule.startswith(rule))


def test_auto_gives_no_third_of_the_heap_away() -> None:
    wicp, win = (make_plan(BIG, TRINO, policy) for policy in ("wicp", "win"))
    assert wicp.total_heap_bytes == 16 * 31 * GIB < 0.75 * win.total_heap_bytes
    assert "-n 32 would use all of it" in wicp.warnings[0]
    plan = make_plan(BIG, TRINO, "auto")
    assert plan.total_heap_bytes == win.total_heap_bytes
    assert plan.policy is Policy.WICP and len(plan.slots) == 32
    assert all(len(slot.chiplets) == 1 for slot in plan.slots)
    assert plan.reasons[0].rule == "auto picks two instances per chiplet"
    assert "496 GiB in total instead of 744 GiB" in plan.reasons[0].text
    assert "section 4.5.1" in plan.reasons[0].source
    assert plan.coincides_with == (), "-n 32 was auto's own choice"


def test_auto_gives_up_less_heap_than_a_chiplet_gains() -> None:
    heavy = DISTRIBUTED.model_copy(update={"overhead_bytes": 5 * GIB})
    light = DISTRIBUTED.model_copy(update={"overhead_bytes": GIB})
    machine = milan(2, 8, 8, memory_gib=80)
    assert make_plan(machine, light, "auto").policy is Policy.WICP
    plan = make_plan(machine, heavy, "auto")
    assert plan.policy is Policy.WIN
    assert "page cache would get the difference" in plan.reasons[0].text
    too_heavy = DISTRIBUTED.model_copy(update={"overhead_bytes": 11 * GIB})
    plan = make_plan(machine, too_heavy, "auto")
    assert plan.policy is Policy.WIN
    assert plan.reasons[0].text.startswith("One instance per chiplet does not fit: slot 0 would")


def test_a_heap_is_each_instances_and_is_not_cut() -> None:
    plan = make_plan(BIG, TRINO, "wicp", heap_bytes=40 * GIB)
    assert {slot.heap_bytes for slot in plan.slots} == {40 * GIB}
    assert "compressed pointers" in plan.warnings[0]
    assert "as requested" in reason(plan, "heap")
    with fails(UsageError, asked="600 GiB", share="124 GiB", most="123 GiB"):
        make_plan(BIG, TRINO, "win", heap_bytes=600 * GIB)
    (slot,) = make_plan(plain(2, memory_gib=17), SINGLE, "wim", heap_bytes=16 * GIB).slots
    assert slot.heap_bytes == 16 * GIB
    with fails(UsageError, asked="64 GiB", share="16 GiB", most="15 GiB"):
        make_plan(plain(2, memory_gib=16), SINGLE, "wim", heap_bytes=64 * GIB)
    for heap, asked in ((256 * MIB, "256 MiB"), (0, "0 B")):
        with fails(UsageError, asked=asked, needs="512 MiB"):
            make_plan(BIG, TRINO, "win", heap_bytes=heap)


def test_compared_plans_keep_the_heaps_that_the_user_chose() -> None:
    planners = [partial(make_plan, BIG, TRINO, one, heap_bytes=8 * GIB) for one in ("wim", "win")]
    plans = comparable(planners)
    assert [plan.total_heap_bytes for plan in plans] == [8 * GIB, 64 * GIB]


def test_what_the_page_cache_gives_up_the_heaps_get() -> None:
    heap = [
        make_plan(BIG, TRINO, "win", page_cache=parse_page_cache(text)).total_heap_bytes
        for text in ("0", "10%", "400GiB")
    ]
    default = make_plan(BIG, TRINO, "win")
    budget = sum(slot.memory_bytes for slot in default.slots)
    assert heap[0] == pytest.approx(0.85 * budget, rel=1e-3), "the most that Trino's manual allows"
    assert heap[1] == default.total_heap_bytes
    assert heap[2] == pytest.approx(0.85 * budget - 400 * GIB, rel=1e-3)
    kept = make_plan(BIG, TRINO, "win", page_cache=parse_page_cache("400GiB"))
    assert "the user" in next(one.source for one in kept.reasons if one.rule == "heap")
    with fails(UsageError, asked="90 %", size="992 GiB", most="85 %"):
        make_plan(BIG, TRINO, "win", page_cache=PageCache(share=0.9))


def test_postgresql_without_a_page_cache_is_not_larger_than_the_machine() -> None:
    traits = registry.get("postgresql").traits
    (slot,) = make_plan(plain(4, memory_gib=64), traits, "wim", page_cache=PageCache()).slots
    assert 22 * GIB < slot.heap_bytes <= 32 * GIB, "as much again is for its work"


@pytest.mark.parametrize("text", ["", "x", "10%%", "-1%", "101 GiB%", "1000%"])
def test_a_nonsense_page_cache_is_refused(text: str) -> None:
    with fails(UsageError, text=repr(text)):
        parse_page_cache(text)


def test_a_reserve_is_taken_from_all_nodes_and_the_first_cores() -> None:
    plan = make_plan(BIG, TRINO, "win", reserve_bytes=256 * GIB, reserve_cores=4)
    assert plan.slots[0].cpus == tuple(range(4, 16))
    whole = sum(slot.memory_bytes for slot in make_plan(BIG, TRINO, "win").slots)
    coordinators_too = 256 * GIB * (1 - 1 / 32)
    assert sum(slot.memory_bytes for slot in plan.slots) == pytest.approx(
        whole - coordinators_too, rel=1e-2
    )
    assert "256 GiB and the machine's first 4 cores" in reason(plan, "other services")
    assert "256 GiB for other services" in reason(plan, "heap")
    one = make_plan(BIG, TRINO, "win", reserve_cores=1)
    assert "The machine's first core reserved" in reason(one, "other services")
    wim = make_plan(BIG, TRINO, "wim", reserve_cores=4)
    assert "may also run on the cores of --reserve-cores" in wim.warnings[0]
    with fails(UsageError, asked="2 TiB", size="1 TiB"):
        make_plan(BIG, TRINO, "win", reserve_bytes=2048 * GIB)
    with fails(UsageError, asked="--reserve-cores 128", cores="128 usable"):
        make_plan(BIG, TRINO, "win", reserve_cores=128)


def test_malloc_and_huge_pages_are_of_the_deployment() -> None:
    choices = Choices(malloc=Malloc.JEMALLOC, thp=HugePages.NEVER)
    plan = make_plan(milan(), DISTRIBUTED, "win", **choices)
    assert (plan.malloc, plan.thp) == (Malloc.JEMALLOC, HugePages.NEVER)
    assert "Every process preloads jemalloc" in reason(plan, "allocation")
    assert any("a JVM's heap is not allocated with malloc" in one for one in plan.warnings)
    duckdb = make_plan(milan(), registry.get("duckdb").traits, "win", **choices)
    assert any("has its own jemalloc" in one for one in duckdb.warnings)
    assert not make_plan(milan(), SINGLE, "wim", **choices).warnings


def test_only_an_engine_that_shuffles_has_partitions() -> None:
    assert make_plan(milan(), TRINO, "win").shuffle_partitions is None
    spark = make_plan(milan(), registry.get("spark").traits, "win")
    assert spark.shuffle_partitions == 2 * spark.total_threads


def test_sizes_that_the_system_contradicts_are_warned_of() -> None:
    message = "the NUMA nodes hold 13.8 GiB but /proc/meminfo says 23.5 GiB; do not rely on it"
    machine = plain(2).model_copy(
        update={"warnings": (Notice(code="memory-mismatch", message=message),)}
    )
    (warning,) = make_plan(machine, DISTRIBUTED, "wim").warnings
    assert warning.startswith("the NUMA nodes hold 13.8 GiB but /proc/meminfo says 23.5 GiB; heaps")
    assert not make_plan(machine, DISTRIBUTED, "wim", heap_bytes=GIB).warnings


@given(
    shapes,
    st.sampled_from(ENGINES),
    st.sampled_from(["auto", *Policy]),
    st.integers(0, 64),
    st.integers(0, 3),
    st.one_of(st.none(), st.builds(PageCache, st.integers(0, 64 * GIB), st.floats(0, 1))),
    st.one_of(st.none(), st.integers(1, 64 * GIB)),
)
@settings(max_examples=120, deadline=None)
def test_whatever_is_chosen_the_machine_has_it(
    shape: list[list[NodeShape]],
    traits: EngineTraits,
    policy: str,
    reserve_gib: int,
    cores: int,
    page_cache: PageCache | None,
    heap: int | None,
) -> None:
    machine = build(shape)
    choices = Choices(
        reserve_bytes=reserve_gib * GIB, reserve_cores=cores, page_cache=page_cache, heap_bytes=heap
    )
    try:
        plan = make_plan(machine, traits, policy, **choices)
    except UsageError:
        return  # refused, so nothing is exceeded
    whole = sum(node.memory_bytes for node in machine.nodes)
    beside = [beside_heap_bytes(slot.heap_bytes, traits) for slot in plan.slots]
    taken = sum(slot.heap_bytes for slot in plan.slots) + sum(beside) + reserve_gib * GIB
    if plan.coordinator:
        taken += plan.coordinator.heap_bytes + traits.coordinator_overhead_bytes
    assert taken <= whole
    if page_cache is not None:
        divided = sum(slot.memory_bytes for slot in plan.slots)
        kept = page_cache.size_bytes + page_cache.share * divided
        # Ratios are in millionths.
        assert taken + kept <= whole + 4e-6 * whole + len(plan.slots)
    if heap is not None:
        assert {slot.heap_bytes for slot in plan.slots} == {heap // MIB * MIB}
    assert sum(slot.cores for slot in plan.slots) == len(machine.cores) - cores
    assert make_plan(machine, traits, policy, **choices) == plan
