"""The rules about threads, with and without drift, and the likely cause."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.inspect.clues import Clues
from atoll.inspect.drift_threads import thread_findings
from atoll.inspect.expectation import Expectation, as_given, home_nodes, is_team, pins_itself
from atoll.inspect.pinning import LIBRARIES
from atoll.inspect.policy import parse_policy
from atoll.schema.cpulist import format_cpulist, parse_cpulist
from atoll.schema.inspection import Severity, ThreadLook
from tests.parts.inspect import GIVEN, MACHINE, NODE_CPUS, PID, PLANNED, context, team, thread

EVERYTHING = frozenset(range(8))


def test_threads_in_their_place_are_no_finding() -> None:
    assert thread_findings(team("0-3", "0-3"), context()) == []
    dense = replace(PLANNED, exact=False)
    assert thread_findings(team("0-3", "0", "1"), context(dense)) == []


def test_a_thread_outside_is_named_alone() -> None:
    (found,) = thread_findings(team("0-3", "0-3", "7"), context())
    assert (found.code, found.severity, found.tid) == ("thread-outside", Severity.DRIFT, PID + 2)
    assert (found.expected, found.found) == ("CPUs 0-3", "CPUs 7")
    assert "sched_setaffinity" in found.cause
    assert f"taskset -c -p 0-3 {PID + 2}" in found.remedy


def test_a_narrower_thread_is_drift_where_the_plan_leaves_threads_alone() -> None:
    (found,) = thread_findings(team("0-3", "0"), context())
    assert (found.code, found.severity) == ("thread-narrower", Severity.DRIFT)
    # Nobody promised anything about it.
    (found,) = thread_findings(team("0-3", "0"), context(GIVEN))
    assert (found.code, found.severity) == ("thread-narrower", Severity.NOTE)


@pytest.mark.parametrize(
    ("masks", "clues", "cause"),
    [
        (("0", "0", "1"), Clues(pinning=LIBRARIES[0]), "pin_threads"),
        (("0", "1-2"), Clues(pinning=LIBRARIES[0]), "the thread set its own mask"),
        (("0", "0", "1"), Clues(openmp="OMP_PROC_BIND=close"), "OMP_PROC_BIND=close"),
        (
            ("0", "0", "1"),
            Clues(cpuset=frozenset({1}), cpuset_name="/box"),
            "/box allows only CPUs 1",
        ),
        (("0", "0-7", "0-7"), Clues(), "only the main thread"),
        (("1", "1", "1"), Clues(), "the whole process"),
        (("0", "0", "1", "1"), Clues(), "it and 1 more"),
        (("0", "0", "1"), Clues(), "the thread set its own mask"),
    ],
)
def test_causes_are_told_apart(masks: tuple[str, ...], clues: Clues, cause: str) -> None:
    one_cpu = replace(GIVEN, cpus=frozenset({0}))
    found = thread_findings(team(*masks), context(one_cpu, clues=clues))
    assert found and all(cause in finding.cause for finding in found), found


def test_io_uring_s_workers_are_known_by_name() -> None:
    threads = [thread(), thread(PID + 1, "0-7", comm="iou-wrk-100")]
    (found,) = thread_findings(threads, context())
    assert "io_uring" in found.cause


def test_a_cpu_that_went_offline_is_the_cause() -> None:
    gone = replace(MACHINE, online=frozenset(range(1, 8)))
    (found,) = thread_findings(team("1-3"), context(machine=gone))
    assert found.code == "thread-narrower" and "CPUs 0 went offline" in found.cause


def test_a_cpuset_that_closes_the_memory() -> None:
    (found,) = thread_findings([thread(nodes="1")], context())
    assert (found.code, found.severity) == ("cpuset-differs", Severity.DRIFT)
    (found,) = thread_findings([thread(), thread(PID + 1, nodes="1")], context(GIVEN))
    assert (found.severity, found.tid) == (Severity.NOTE, PID + 1)
    assert thread_findings([thread(nodes="0-1"), thread(PID + 1, nodes="")], context()) == []


# ---- what a process was given


def expected_of(
    threads: list[ThreadLook],
    *,
    parent: frozenset[int] = EVERYTHING,
    openmp: bool = False,
    library: bool = False,
) -> Expectation:
    return as_given(
        "x",
        threads,
        PID,
        policy="default",
        parent_cpus=parent,
        node_cpus=NODE_CPUS,
        pins_itself=pins_itself(threads, openmp=openmp, library=library),
    )


def given_by(*masks: str, **changes: Any) -> str:
    return format_cpulist(expected_of(team(*masks), **changes).cpus)


@pytest.mark.parametrize(
    ("masks", "cpus"),
    [
        (("0-7", "0-7"), "0-7"),
        (("0-7", "0", "1"), "0-7"),
        (("0", "0", "1"), "0"),  # started under taskset, one thread moved
        (("0", "0-7", "0-7"), "0"),  # taskset -p without -a
        (("0", "1"), "0"),  # two may be a moved thread; only three are a team
        (("0", "1", "2", "3"), "0-7"),  # OpenMP with OMP_PROC_BIND, Seastar, DPDK
        (("0", "0", "1", "2", "3"), "0"),  # DuckDB under taskset: its main thread is no worker
    ],
)
def test_the_main_thread_has_what_was_asked(masks: tuple[str, ...], cpus: str) -> None:
    assert given_by(*masks) == cpus


def test_a_team_under_a_narrow_parent_is_held_against_it() -> None:
    assert given_by("0", "1", "2", parent=frozenset(range(4))) == "0-3"
    # It is not where its parent is: nothing but the main thread is left to go by.
    assert given_by("0", "1", "2", parent=frozenset({0})) == "0"


def test_openmp_s_threads_are_a_team_of_any_size() -> None:
    assert given_by("0", "1", openmp=True) == "0-7"
    assert given_by("0", "0", "1", openmp=True) == "0-7"


def test_duckdb_s_pinned_workers_are_no_team() -> None:
    """Its main thread may have a CPU of its own by chance: taskset -c 3 with three workers."""
    assert given_by("3", "0", "1", "2") == "0-7"
    assert given_by("3", "0", "1", "2", library=True) == "3"


def seated(governor: str, *masks: str) -> list[ThreadLook]:
    """A process with Atoll's runtime: its main thread first."""
    main, *workers = masks
    names = enumerate(workers, start=2)
    return [
        thread(PID, main),
        thread(PID + 1, governor, comm="atoll-governor"),
        *(thread(PID + number, mask, comm="atoll-duck-1") for number, mask in names),
    ]


def test_where_atoll_seats_threads_its_governor_has_what_was_asked() -> None:
    # DuckDB's caller is bound for a while; workers are, where they should be.
    threads = seated("0-3", "0-1", "0-1", "2-3")
    expectation = expected_of(threads, library=True)
    assert expectation.cpus == {0, 1, 2, 3}
    assert thread_findings(threads, context(expectation)) == []
    # taskset -a moves the governor too; one that is left behind is drift, and not DuckDB's doing.
    threads = seated("4-7", "4-5", "0", "6-7")
    expectation = expected_of(threads, library=True)
    (found,) = thread_findings(threads, context(expectation, clues=Clues(pinning=LIBRARIES[0])))
    assert (found.code, found.tid, found.expected) == ("thread-outside", PID + 2, "CPUs 4-7")
    assert "pin_threads" not in found.cause


def test_a_dead_main_thread_leaves_the_others_to_go_by() -> None:
    assert expected_of([thread(PID + 1, "2"), thread(PID + 2, "2")]).cpus == {2}


@given(st.lists(st.sets(st.integers(0, 7), min_size=1), min_size=1, max_size=6))
def test_a_process_without_restriction_never_drifts(masks: list[set[int]]) -> None:
    """Whatever threads do among themselves, a main thread that may run everywhere has no drift."""
    threads = team("0-7", *map(format_cpulist, masks))
    expectation = expected_of(threads)
    found = thread_findings(threads, context(expectation))
    assert all(finding.severity is Severity.NOTE for finding in found)


@given(st.lists(st.sets(st.integers(0, 7), min_size=1), min_size=1, max_size=6))
def test_every_thread_that_may_leave_is_named_unless_they_are_a_team(masks: list[set[int]]) -> None:
    threads = team(*map(format_cpulist, masks))
    expectation = expected_of(threads)
    found = thread_findings(threads, context(expectation))
    outside = {finding.tid for finding in found if finding.code == "thread-outside"}
    if is_team(threads):
        assert outside == set()
    else:
        main = set(parse_cpulist(threads[0].cpus))
        assert outside == {t.tid for t in threads if not set(parse_cpulist(t.cpus)) <= main}


@pytest.mark.parametrize(
    ("policy", "cpus", "nodes"),
    [
        ("bind:1", {0}, {1}),
        ("interleave:0-1", {0}, {0, 1}),
        ("prefer (many):0-1", {0}, {0, 1}),
        ("default", {0, 1}, {0}),
        ("local", {5}, {1}),
        ("default", {0, 5}, set()),  # may run beside both: anywhere
        ("", {0}, set()),  # not known: no finding
    ],
)
def test_where_memory_belongs(policy: str, cpus: set[int], nodes: set[int]) -> None:
    assert home_nodes(parse_policy(policy), frozenset(cpus), NODE_CPUS) == nodes
