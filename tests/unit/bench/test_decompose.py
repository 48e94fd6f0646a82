"""The chain from WIM to bound instances: what is equal, what each step changes, when it is refused;
and what the report says of it."""

from __future__ import annotations

import dataclasses

import pytest
from rich.console import Console

from atoll.bench.analysis import summarise
from atoll.bench.decompose import chain_plans, decomposition
from atoll.bench.entrants import make_chain
from atoll.bench.results import Results
from atoll.bench.sameness import same_deployment
from atoll.errors import UsageError
from atoll.plan.jvm import placement_flags
from atoll.report.bench.markdown import markdown
from atoll.report.bench.page import html
from atoll.report.bench.text import bench_text
from atoll.schema.plan import MemoryPolicy, Plan, Policy
from tests.parts.bench import (
    DUCKDB_TRAITS as DUCKDB,
)
from tests.parts.bench import (
    SPARK_TRAITS as SPARK,
)
from tests.parts.bench import (
    entrant,
    header,
    lines,
    results,
)
from tests.parts.bench_plans import machine
from tests.parts.faults import fails
from tests.parts.machines import NodeShape, build

TWO_NODES = build([[NodeShape((2, 2)), NodeShape((2, 2))]])
LABELS = ("spark/wim", "spark/spmwin", "spark/win/first-touch", "spark/win/bind")


def plans(count: int | None = None) -> list[Plan]:
    labelled, _ = chain_plans(TWO_NODES, SPARK, count)
    assert tuple(label for label, _ in labelled) == LABELS
    return [plan for _, plan in labelled]


@pytest.mark.parametrize("count", [None, 2, 4])
def test_all_that_is_no_placement_is_equal(count: int | None) -> None:
    found = plans(count)
    assert len({plan.total_heap_bytes for plan in found}) == 1
    assert len({plan.total_threads for plan in found}) == 1
    assert len({plan.shuffle_partitions for plan in found}) == 1


@pytest.mark.parametrize("count", [None, 2, 4])
def test_each_step_changes_one_thing(count: int | None) -> None:
    wim, spmwin, touch, bound = plans(count)
    instances = count or 2
    assert [len(plan.slots) for plan in (wim, spmwin, touch, bound)] == [1, *[instances] * 3]
    # Several processes, each with cores of both nodes still; no memory is set.
    assert all(slot.nodes == (0, 1) for slot in spmwin.slots)
    # The cores of one node each.
    assert all(len(slot.nodes) == 1 for slot in touch.slots)
    assert {slot.heap_bytes for slot in touch.slots} == {slot.heap_bytes for slot in spmwin.slots}
    for plan in (wim, spmwin, touch):
        assert {slot.memory_policy for slot in plan.slots} == {MemoryPolicy.FIRST_TOUCH}
    # And its memory: nothing else.
    assert [slot.cpus for slot in bound.slots] == [slot.cpus for slot in touch.slots]
    assert all(slot.memory_policy is MemoryPolicy.BIND for slot in bound.slots)
    assert all(slot.memory_nodes == slot.nodes for slot in bound.slots)


def test_one_node_is_refused_or_divided_and_that_is_said() -> None:
    with fails(UsageError, engine="spark", use="-n 2"):
        chain_plans(machine(), SPARK, None)
    with fails(UsageError, engine="spark", asked="-n 1", use="-n 2"):
        chain_plans(TWO_NODES, SPARK, 1)
    labelled, notes = chain_plans(machine(), SPARK, 2)
    assert [len(plan.slots) for _, plan in labelled] == [1, 2, 2, 2]
    assert "one NUMA node" in notes[0] and "changes nothing" in notes[0]


def test_instances_over_several_nodes_are_said() -> None:
    labelled, notes = chain_plans(build([[NodeShape((3,))] * 3]), SPARK, 2)
    assert any(len(slot.nodes) > 1 for slot in labelled[-1][1].slots)
    assert "several nodes" in notes[-1]


# Of 48 CPUs a JVM has 33 GC threads, of 24 it has 18.
LARGE = build([[NodeShape((8, 8, 8)), NodeShape((8, 8, 8))]])


def test_gc_threads_are_a_step_where_several_jvms_have_more_in_sum() -> None:
    labelled, notes = chain_plans(LARGE, SPARK, None)
    assert [label for label, _ in labelled] == [LABELS[0], "spark/wim/gc-threads", *LABELS[1:]]
    wim, more, *instances = [plan for _, plan in labelled]
    assert "33 GC threads" in notes[0]
    flags = placement_flags(more.slots[0], more)
    assert {"-XX:ParallelGCThreads=36", "-XX:ConcGCThreads=10"} <= set(flags)
    # Nothing else of it, and nothing of all others.
    assert set(placement_flags(wim.slots[0], wim)) == set(flags) - {
        "-XX:ParallelGCThreads=36",
        "-XX:ConcGCThreads=10",
    }
    assert not any(
        "GCThreads" in flag
        for plan in instances
        for slot in plan.slots
        for flag in placement_flags(slot, plan)
    )
    everything = [wim, more, *instances]
    for one in ("total_heap_bytes", "total_threads", "shuffle_partitions"):
        assert len({getattr(plan, one) for plan in everything}) == 1
    assert not same_deployment(wim, more, LARGE)


def test_instances_have_all_cpus_as_wim_has() -> None:
    labelled, _ = chain_plans(build([[NodeShape((4,))] * 2], smt=2), SPARK, None)
    for _, plan in labelled:
        assert plan.total_threads == 16
        assert all(slot.cpus is None or len(slot.cpus) == slot.threads for slot in plan.slots)


def test_what_a_plan_of_the_chain_warns_of_is_said() -> None:
    _, notes = make_chain(TWO_NODES, SPARK, None, None)
    (said,) = [note for note in notes if "without UseNUMA" in note]
    assert said.startswith("spark/win/first-touch: ")


def test_without_a_jvm_there_is_no_step_of_gc_threads() -> None:
    labelled, _ = chain_plans(LARGE, DUCKDB, None)
    assert len(labelled) == 4


def test_each_step_of_the_long_chain_is_told_by_its_change() -> None:
    entrants, _ = make_chain(LARGE, SPARK, None, None)
    assert [one.baseline for one in entrants] == [None, *["spark/wim"] * 4]
    labels = [one.label for one in entrants]
    means = {label: dict.fromkeys(range(6), 2.0**-place) for place, label in enumerate(labels)}
    found = decomposition("spark", labels, means)
    assert found is not None
    assert [step.changes for step in found.steps] == [
        "GC threads",
        "instances and their heaps",
        "CPU locality",
        "memory locality",
    ]
    assert [step.share for step in found.steps] == pytest.approx([0.25] * 4)


def test_too_many_instances_are_refused() -> None:
    with fails(UsageError, asked="-n 99"):
        chain_plans(TWO_NODES, SPARK, 99)


def test_speed_ups_are_over_wim_and_servers_share_the_streams() -> None:
    spark, _ = make_chain(TWO_NODES, SPARK, None, None)
    duckdb, notes = make_chain(TWO_NODES, DUCKDB, "atoll", None)
    assert [one.label for one in spark] == list(LABELS)
    assert [one.baseline for one in spark] == [None, *["spark/wim"] * 3]
    assert {one.streams for one in spark} == {1}
    assert [one.label for one in duckdb] == [
        "duckdb/wim/atoll",
        "duckdb/spmwin/atoll",
        "duckdb/win/first-touch/atoll",
        "duckdb/win/bind/atoll",
    ]
    assert {one.streams for one in duckdb} == {2}
    assert any("2 concurrent query streams" in note for note in notes)


def run(ratios: tuple[float, float, float], blocks: int = 6) -> Results:
    """Spark at 6 s under WIM, each step as given, in every block alike."""
    policies = (Policy.WIM, Policy.SPMWIN, Policy.WIN, Policy.WIN)
    entrants = [
        entrant("spark", policy, 1 if place == 0 else 2).model_copy(
            update={"label": LABELS[place], "baseline": LABELS[0] if place else None}
        )
        for place, policy in enumerate(policies)
    ]
    seconds, taken = {LABELS[0]: 6.0}, 6.0
    for label, ratio in zip(LABELS[1:], ratios, strict=True):
        taken /= ratio
        seconds[label] = taken
    head = header(*entrants, chains=(LABELS,), blocks_asked=blocks)
    return results(lines(entrants, blocks, seconds), head)


def terminal(found: Results) -> str:
    console = Console(width=100, file=None, record=True, highlight=False)
    with console.capture() as captured:
        console.print(bench_text(summarise(found)))
    return captured.get()


def test_steps_and_shares_are_told_everywhere() -> None:
    found = run((1.0, 2.0, 4.0))
    summary = summarise(found)
    (one,) = summary.decompositions
    assert one.engine == "spark" and one.why_no_shares == ""
    assert [step.changes for step in one.steps] == [
        "instances and their heaps",
        "CPU locality",
        "memory locality",
    ]
    assert [step.speedup.value for step in one.steps] == pytest.approx([1, 2, 4])
    assert [step.share for step in one.steps] == pytest.approx([0, 1 / 3, 2 / 3])
    assert one.whole.value == pytest.approx(8)
    # What the main table says of the last is the same as the whole.
    assert one.whole == summary.entrants[-1].speedups[0]

    shown = terminal(found)
    assert "33 %" in shown and "67 %" in shown and "memory locality" in shown
    assert "wim → spark/spmwin" in shown.partition("significant")[2]
    page = html(found.header, summary)
    assert 'class="decomposition"' in page and "67 %" in page
    assert "67 %" in markdown(summary)


def test_atolls_scheduler_is_told_once_and_each_change_still_known() -> None:
    entrants, _ = make_chain(LARGE, DUCKDB, "atoll", None)
    labels = tuple(one.label for one in entrants)
    seconds = {label: 2.0**-place for place, label in enumerate(labels)}
    found = results(lines(entrants, 6, seconds), header(*entrants, chains=(labels,)))
    _, steps = terminal(found).split("duckdb under Atoll's scheduler")
    told = [line.strip() for line in steps.splitlines() if line.startswith("  ") and line.strip()]
    assert told == ["instances and their heaps", "CPU locality", "memory locality", "all steps"]
    assert "win/first-touch → win/bind " in steps


def test_without_a_difference_there_are_no_shares_and_why_is_said() -> None:
    found = run((2.0, 0.5, 1.0))
    (one,) = summarise(found).decompositions
    assert [step.share for step in one.steps] == [None] * 3
    told = terminal(found)
    assert "No shares: the whole shows no significant difference" in told
    assert "67 %" not in told


def test_a_chain_without_a_common_block_has_no_decomposition() -> None:
    found = run((1.0, 2.0, 4.0))
    kept = tuple(one for one in found.lines if getattr(one, "label", "") != LABELS[1])
    assert summarise(dataclasses.replace(found, lines=kept)).decompositions == ()
