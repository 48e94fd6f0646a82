"""The rules about allocators and JVMs, with and without drift."""

from __future__ import annotations

from dataclasses import replace

import pytest

from atoll.inspect.clues import Clues
from atoll.inspect.drift_runtime import jvm_findings, malloc_findings, thp_findings
from atoll.schema.inspection import Finding, JvmLook, MallocLook, Severity
from atoll.schema.plan import HugePages, Malloc
from tests.parts.inspect import GIVEN, MACHINE, ONE_NODE, PLANNED, context, thread

JEMALLOC = "/usr/lib/libjemalloc.so.2"
JVM = JvmLook(
    version="17.0.15+6",
    use_numa=True,
    use_numa_asked=True,
    processors=4,
    processors_asked=None,
    collector="G1",
    max_heap_bytes=1 << 30,
    large_pages=False,
    transparent_huge_pages=False,
)
WITH_LIBNUMA = Clues(libnuma=True)


def malloc(**changes: object) -> MallocLook:
    look = MallocLook(preload=(JEMALLOC,), loaded=("libjemalloc.so.2",), reached="libjemalloc.so.2")
    return look.model_copy(update=changes)


def test_a_preload_that_is_reached_is_no_finding() -> None:
    assert malloc_findings(malloc(), context()) == []
    assert malloc_findings(None, context()) == []


@pytest.mark.parametrize(
    ("fault", "remedy"),
    [
        ("no such file", "full path"),
        ("the program is statically linked: it loads nothing", "link the allocator"),
        ("the program runs with raised rights (AT_SECURE), so the linker", "ld.so.preload"),
        ("libc.so.6 comes before it", "before the others"),
        ("the program has its own malloc, which comes first", "without its own malloc"),
        ("defines no malloc; preload libtbbmalloc_proxy.so.2 instead", "preload that library"),
    ],
)
def test_a_preload_without_effect_has_its_reason(fault: str, remedy: str) -> None:
    look = malloc(loaded=(), reached="libc.so.6", preload_faults={JEMALLOC: fault})
    (found,) = malloc_findings(look, context())
    assert (found.code, found.severity) == ("preload-without-effect", Severity.DRIFT)
    assert found.expected == f"LD_PRELOAD={JEMALLOC}"
    assert (found.cause, remedy in found.remedy) == (fault, True)


JEMALLOC_PLANNED = context(replace(PLANNED, malloc=Malloc.JEMALLOC))


def test_the_planned_malloc_is_called_or_the_drift_says_why_not() -> None:
    assert malloc_findings(malloc(), JEMALLOC_PLANNED) == []
    unreadable = malloc(reached=None, unknown="not permitted")
    assert malloc_findings(unreadable, JEMALLOC_PLANNED) == [], "at least it is mapped"
    fault = malloc(loaded=(), reached="libc.so.6", preload_faults={JEMALLOC: "no such file"})
    (found,) = malloc_findings(fault, JEMALLOC_PLANNED)
    assert found.code == "preload-without-effect", "one finding, with the reason"
    (found,) = malloc_findings(malloc(preload=(), loaded=(), reached="libc.so.6"), JEMALLOC_PLANNED)
    assert (found.code, found.severity) == ("malloc-unplanned", Severity.DRIFT)
    assert (found.expected, found.found) == ("malloc of jemalloc", "malloc of libc.so.6")
    assert "environment of its own" in found.cause
    look = malloc(reached="libmimalloc.so.2", loaded=("libmimalloc.so.2", "libjemalloc.so.2"))
    (found,) = malloc_findings(look, JEMALLOC_PLANNED)
    assert "another library" in found.cause


def test_huge_pages_are_off_if_the_plan_says_so() -> None:
    never = context(replace(PLANNED, thp=HugePages.NEVER))
    assert thp_findings(False, never) == thp_findings(None, never) == []
    assert thp_findings(True, context()) == []
    (found,) = thp_findings(True, never)
    assert (found.code, found.severity) == ("thp-on", Severity.DRIFT)
    asking = JVM.model_copy(update={"transparent_huge_pages": True})
    (found,) = jvm_findings(asking, "", [thread(1)], never)
    assert (found.code, "--thp never" in found.cause) == ("jvm-thp-off", True)


def test_an_allocator_of_its_own_matters_only_beside_a_preload() -> None:
    own = {"_duckdb.so": "its own jemalloc (duckdb_je_malloc)"}
    (found,) = malloc_findings(malloc(exceptions=own), context())
    assert (found.code, found.severity) == ("malloc-exception", Severity.NOTE)
    assert malloc_findings(malloc(preload=(), loaded=(), exceptions=own), context()) == []


# ---- JVM


def jvm(
    look: JvmLook,
    *,
    policy: str = "default",
    mask: str = "0-7",
    nodes: str = "0-1",
    machine: object = MACHINE,
    clues: Clues = WITH_LIBNUMA,
    cpus: int = 4,
) -> list[Finding]:
    assert machine in (MACHINE, ONE_NODE)
    expectation = replace(GIVEN, cpus=frozenset(range(cpus)))
    where = context(expectation, MACHINE if machine is MACHINE else ONE_NODE, clues)
    return jvm_findings(look, policy, [thread(cpus=mask, nodes=nodes)], where)


def test_a_jvm_that_got_what_it_asked_for() -> None:
    assert jvm(JVM) == []
    assert jvm(JVM.model_copy(update={"use_numa": False, "use_numa_asked": False})) == []
    assert jvm_findings(None, "", [], context()) == []


OFF = JVM.model_copy(update={"use_numa": False})


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        ({"policy": "bind:0"}, "bound to node 0 alone (its CPUs are on 0-1)"),
        ({"policy": "bind:0", "mask": "0-3"}, "bound to node 0 alone;"),
        ({"nodes": "1"}, "bound to node 1 alone (its CPUs are on 0-1)"),
        ({"mask": "0-3"}, "its memory on 0-1, which JDK 17"),
        ({"clues": Clues()}, "libnuma.so.1 is not installed"),
        ({}, "the JVM turned it off"),
    ],
)
def test_numa_off_has_its_reason(arguments: dict[str, object], cause: str) -> None:
    (found,) = jvm(OFF, **arguments)  # type: ignore[arg-type]  # one of its keywords
    assert (found.code, found.severity) == ("jvm-numa-off", Severity.DRIFT)
    assert cause in found.cause


def test_numa_off_on_one_node_is_a_note() -> None:
    (found,) = jvm(OFF, machine=ONE_NODE)
    assert (found.severity, found.cause) == (Severity.NOTE, "the machine has one memory node")


def test_a_collector_that_knows_no_nodes() -> None:
    (found,) = jvm(JVM.model_copy(update={"collector": "Serial"}))
    assert found.code == "jvm-numa-off" and "Serial collector" in found.cause


@pytest.mark.parametrize(
    ("has", "asked", "severity"),
    [
        (4, None, None),
        (8, None, Severity.DRIFT),
        (2, None, Severity.NOTE),
        (16, 16, None),  # as the user says
        (8, 16, Severity.DRIFT),
        (None, None, None),
    ],
)
def test_processors(has: int | None, asked: int | None, severity: Severity | None) -> None:
    found = jvm(JVM.model_copy(update={"processors": has, "processors_asked": asked}))
    assert [one.severity for one in found] == ([severity] if severity else [])
    assert all(one.code == "jvm-processors" for one in found)


def test_huge_pages_asked_of_a_kernel_that_gives_none() -> None:
    asked = JVM.model_copy(update={"transparent_huge_pages": True})
    for mode, count in (("never", 1), ("madvise", 0), ("", 0)):
        found = jvm_findings(asked, "", [thread()], context(PLANNED, replace(MACHINE, thp=mode)))
        assert [one.code for one in found] == ["jvm-thp-off"] * count
