"""The rules about memory, with and without drift, their thresholds and likely causes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.inspect.clues import Clues
from atoll.inspect.drift_memory import (
    SOFT_BYTES,
    STRICT_BYTES,
    UNEVEN_BYTES,
    memory_findings,
    page_cache_findings,
    policy_findings,
)
from atoll.inspect.expectation import Expectation
from atoll.inspect.rule_context import RuleContext
from atoll.schema.inspection import Finding, MappingKind, MemoryLook, Severity
from tests.parts.inspect import (
    GIVEN,
    MACHINE,
    MIB,
    ONE_NODE,
    PID,
    PLANNED,
    cached,
    context,
    mapping,
    memory,
    thread,
)

FIRST_TOUCH = replace(PLANNED, policy="default")


def found_in(
    look: MemoryLook, where: RuleContext | None = None, policy: str = "bind:0", **weights: int
) -> list[Finding]:
    by_node = {int(name[1:]): weight for name, weight in weights.items()}
    return memory_findings(look, policy, [thread()], where or context(), by_node)


def test_pages_on_their_node_are_no_finding() -> None:
    assert found_in(memory(mapping({0: 900 * MIB}))) == []
    assert found_in(memory(mapping({0: 900 * MIB, 1: STRICT_BYTES}))) == []


def test_under_bind_the_mapping_that_was_moved_is_named_alone() -> None:
    stays = mapping({0: 900 * MIB}, start=0x1000)
    moved = mapping({1: 1 * MIB}, start=0x2000)
    (found,) = found_in(memory(stays, moved))
    assert (found.code, found.severity) == ("memory-outside", Severity.DRIFT)
    assert (found.mapping, found.found) == ("anonymous 0x2000", "1 MiB on node 1")
    assert "move_pages" in found.cause and "before the policy was set" in found.cause
    assert found.remedy == "move the pages back: migratepages 100 1 0"


def test_memory_that_moved_as_a_whole_says_so() -> None:
    (found,) = found_in(memory(mapping({1: 64 * MIB})))
    assert found.cause.startswith("all of its memory was moved")
    (found,) = found_in(memory(mapping({1: 64 * MIB}), mapping({0: MIB}, start=0x1000)))
    assert found.cause.startswith("these pages were moved")


def test_one_node_has_no_elsewhere() -> None:
    assert found_in(memory(mapping({0: MIB})), context(machine=ONE_NODE)) == []


@pytest.mark.parametrize(
    ("kind", "name", "expectation", "counts"),
    [
        (MappingKind.HEAP, "[heap]", GIVEN, True),
        (MappingKind.STACK, "[stack]", GIVEN, True),
        (MappingKind.HUGETLB, "", GIVEN, True),
        (MappingKind.FILE, "/lib/libc.so.6", PLANNED, False),
        (MappingKind.KERNEL, "[vdso]", PLANNED, False),
        (MappingKind.SHARED, "/dev/zero (deleted)", GIVEN, True),  # inherited, so the family's own
        (MappingKind.SHARED, "/dev/shm/of-others", GIVEN, False),
        (MappingKind.SHARED, "/memfd:x", GIVEN, False),
        (MappingKind.SHARED, "/memfd:x", PLANNED, True),
        (MappingKind.SHARED, "/tmp/data.parquet", PLANNED, False),
    ],
)
def test_a_policy_holds_for_memory_of_the_process_s_own(
    kind: MappingKind, name: str, expectation: Expectation, counts: bool
) -> None:
    look = memory(mapping({1: 64 * MIB}, kind=kind, name=name))
    assert bool(found_in(look, context(expectation))) is counts


def test_first_touch_may_fall_back_a_little() -> None:
    for home, away, drift in (
        (900 * MIB, 40 * MIB, False),  # under 5 %
        (900 * MIB, 60 * MIB, True),
        (10 * MIB, SOFT_BYTES, False),
    ):
        look = memory(mapping({0: home, 1: away}, policy="default"))
        found = found_in(look, context(FIRST_TOUCH), policy="default")
        assert bool(found) is drift, (home, away)


def test_why_first_touch_went_elsewhere() -> None:
    def cause(where: RuleContext) -> str:
        (found,) = found_in(memory(mapping({1: 90 * MIB}, policy="default")), where, "default")
        return found.cause

    assert "AutoNUMA" not in cause(context(FIRST_TOUCH))
    assert "AutoNUMA" in cause(context(FIRST_TOUCH, replace(MACHINE, balancing=True)))
    full = Clues(free={0: (MIB, 1000 * MIB), 1: (900 * MIB, 1000 * MIB)})
    assert cause(context(FIRST_TOUCH, clues=full)).startswith("node 0 is full")
    cxl = replace(MACHINE, node_cpus={0: MACHINE.node_cpus[0], 1: frozenset()})
    demoted = cause(context(FIRST_TOUCH, cxl, Clues(demotion=True)))
    assert "demotion_enabled" in demoted


def test_a_closed_cpuset_is_the_cause() -> None:
    (found,) = memory_findings(
        memory(mapping({1: MIB})), "bind:0", [thread(nodes="1")], context(), {}
    )
    assert "cpuset.mems" in found.cause


def test_a_policy_of_the_mapping_s_own() -> None:
    look = memory(mapping({1: 64 * MIB}, policy="bind:1"))
    (found,) = found_in(look)  # planned: it has left its place
    assert "bind:1 (mbind)" in found.cause
    assert found_in(look, context(GIVEN)) == []  # nobody asked for another
    elsewhere = memory(mapping({0: 64 * MIB}, policy="bind:1"))
    (found,) = found_in(elsewhere, context(GIVEN))
    assert (found.expected, found.found) == ("nodes 1", "64 MiB on node 0")


def test_a_thread_that_has_a_policy_of_its_own_is_named() -> None:
    moved = memory(mapping({1: 64 * MIB}))
    threads = [thread(), thread(PID + 1, comm="loader"), thread(PID + 2)]
    clues = Clues(policies={PID: "bind:0", PID + 1: "bind:1", PID + 2: "bind:0"})
    (found,) = memory_findings(moved, "bind:0", threads, context(GIVEN, clues=clues), {})
    assert found.cause == (
        f"thread {PID + 1} (loader) has a policy of its own, bind:1 (set_mempolicy)"
    )
    both = Clues(policies={PID + 1: "bind:1", PID + 2: "interleave:0-1"})
    (found,) = memory_findings(moved, "bind:0", threads, context(GIVEN, clues=both), {})
    assert "(loader) and 1 more have policies of their own" in found.cause
    without = Clues(policies={PID + 1: "prefer:0"})  # not where the pages are
    (found,) = memory_findings(moved, "bind:0", threads, context(GIVEN, clues=without), {})
    assert "has a policy of its own" not in found.cause


def test_a_sample_knows_no_policy_and_says_what_else_it_may_be() -> None:
    sampled = memory(mapping({1: 2000 * MIB, 0: 8000 * MIB}, policy=""), sampled=True)
    for policy in ("bind:0", "default"):
        (found,) = memory_findings(
            sampled, policy, [thread()], context(replace(GIVEN, policy=policy)), {}
        )
        assert "(mbind)" in found.cause and "sample" in found.cause
        assert f"grep ^7f0000000000 /proc/{PID}/numa_maps; if" in found.remedy


# ---- policies


@pytest.mark.parametrize(
    ("policy", "drift"), [("bind:0", 0), ("bind=static:0", 0), ("", 0), ("default", 1)]
)
def test_the_process_s_own_policy(policy: str, drift: int) -> None:
    findings = policy_findings(policy, [thread()], context())
    assert [finding.code for finding in findings] == ["memory-policy"] * drift
    assert policy_findings("default", [thread()], context(GIVEN)) == []  # its own is the reference


def test_a_policy_that_a_cpuset_rewrote() -> None:
    (found,) = policy_findings("bind:1", [thread(nodes="1")], context())
    assert "cpuset.mems" in found.cause


# ---- interleave

INTERLEAVED = replace(PLANNED, policy="interleave:0-1", nodes=frozenset({0, 1}))
WEIGHTED = replace(INTERLEAVED, policy="weighted interleave:0-1")


@pytest.mark.parametrize(
    ("expectation", "sizes", "drift"),
    [
        (INTERLEAVED, {0: 100, 1: 100}, False),
        (INTERLEAVED, {0: 110, 1: 90}, False),
        (INTERLEAVED, {0: 190, 1: 10}, True),
        (INTERLEAVED, {0: 200}, True),
        (INTERLEAVED, {0: 10}, False),  # too little to tell
        (WEIGHTED, {0: 150, 1: 50}, False),
        (WEIGHTED, {0: 100, 1: 100}, True),
    ],
)
def test_interleaving_is_even(expectation: Expectation, sizes: dict[int, int], drift: bool) -> None:
    pages = {node: size * MIB for node, size in sizes.items()}
    look = memory(mapping(pages, policy=expectation.policy))
    found = found_in(look, context(expectation), expectation.policy, n0=3, n1=1)
    assert [one.code for one in found] == ["interleave-uneven"] * drift


@given(st.integers(1, 64), st.integers(2, 8))
def test_pages_that_take_turns_are_even(huge_pages: int, nodes: int) -> None:
    """Whatever the number of huge pages: turns differ by one at most."""
    policy = f"interleave:0-{nodes - 1}"
    expectation = replace(PLANNED, policy=policy, nodes=frozenset(range(nodes)))
    machine = replace(MACHINE, node_cpus={node: frozenset({node}) for node in range(nodes)})
    count = huge_pages + nodes * UNEVEN_BYTES // (2 * MIB)
    sizes = {node: 2 * MIB * len(range(node, count, nodes)) for node in range(nodes)}
    look = memory(mapping(sizes, policy=policy))
    assert found_in(look, context(expectation, machine), policy) == []


# ---- page cache


def test_a_file_that_is_cached_elsewhere_is_a_note() -> None:
    (found,) = page_cache_findings([cached({1: 100 * MIB})], context())
    assert (found.code, found.severity) == ("page-cache-elsewhere", Severity.NOTE)
    assert page_cache_findings([cached({0: 100 * MIB, 1: MIB})], context()) == []
    anywhere = replace(GIVEN, nodes=frozenset[int]())
    assert page_cache_findings([cached({1: 100 * MIB})], context(anywhere)) == []
