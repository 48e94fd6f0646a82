"""Placements: what must hold of each, whatever the graph, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.errors import UsageError
from atoll.operators.place import place
from atoll.schema.machine import Machine
from atoll.schema.operator_graph import Known, OperatorGraph, Source
from atoll.schema.placement import Placement
from atoll.store.operator_files import read_graph
from tests.parts.faults import fails
from tests.parts.machines import NodeShape, build, milan, plain, restrict
from tests.parts.operators import graph, graphs, operator, random_graph
from tests.parts.paths import GOLDEN

TPCW = GOLDEN / "operators" / "tpcw-44.json"
_ENOUGH = build([[NodeShape((4, 4))] * 2] * 2 + [[NodeShape((), 40)]])
_CLOSE = 2e-5  # rounded duties


def magny_cours() -> Machine:
    """The poster's machine: 8 nodes of 6 cores."""
    return build([[NodeShape((), 6, 16)] * 2] * 4)


def opened(items: Sequence[tuple[str, float]]) -> OperatorGraph:
    return graph([operator(name, duty) for name, duty in items])


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_every_unit_is_on_one_core_and_the_caps_hold(operators: OperatorGraph) -> None:
    found = place(operators, _ENOUGH)
    parts: dict[str, list[tuple[int, int]]] = {}
    for unit in found.units:
        for one in unit.operators:
            parts.setdefault(one, []).append((unit.replica, unit.replicas))
    assert set(parts) == {one.id for one in operators.operators}
    for one, replicas in parts.items():
        assert sorted(replicas) == [(at, len(replicas)) for at in range(len(replicas))], one
    duty = {one.id: one.activity.duty.value for one in operators.operators if one.activity}
    for core in found.cores:
        units = [unit for unit in found.units if unit.cpu == core.cpu]
        assert core.duty is not None
        assert core.duty == pytest.approx(sum(unit.duty or 0 for unit in units))
        alone = len(units) == 1 and len(units[0].operators) == 1
        assert core.duty <= 0.8 + _CLOSE or alone
    for unit in found.units:
        assert unit.duty == pytest.approx(sum(duty[one] for one in unit.operators) / unit.replicas)
    assert found.bound is not None
    assert found.bound.cores <= len(found.cores) and found.bound.nodes <= len(found.nodes)
    assert len({core.cpu for core in found.cores}) == len(found.cores)
    for node in found.nodes:
        assert node.cores == sum(core.node == node.node for core in found.cores)


@settings(max_examples=30, deadline=None)
@given(graphs(), st.randoms(use_true_random=False))
def test_the_order_in_the_file_does_not_matter(operators: OperatorGraph, random: object) -> None:
    shuffled = list(operators.operators), list(operators.edges)
    for one in shuffled:
        random.shuffle(one)  # type: ignore[attr-defined]  # hypothesis gives a Random
    again = operators.model_copy(
        update={"operators": tuple(shuffled[0]), "edges": tuple(shuffled[1])}
    )
    assert place(again, _ENOUGH) == place(operators, _ENOUGH)


@settings(max_examples=30, deadline=None)
@given(graphs())
def test_new_names_change_only_names(operators: OperatorGraph) -> None:
    def named(old: str) -> str:
        return f"other-{old}"

    renamed = operators.model_copy(
        update={
            "operators": tuple(
                one.model_copy(update={"id": named(one.id)}) for one in operators.operators
            ),
            "edges": tuple(
                one.model_copy(update={"giver": named(one.giver), "taker": named(one.taker)})
                for one in operators.edges
            ),
        }
    )
    before, after = place(operators, _ENOUGH), place(renamed, _ENOUGH)
    assert [(one.cpu, tuple(map(named, one.operators))) for one in before.units] == [
        (one.cpu, one.operators) for one in after.units
    ]
    assert before.cores == after.cores


@settings(max_examples=30, deadline=None)
@given(graphs(most=16), st.integers(0, 40))
def test_more_of_each_core_never_needs_more_cores(operators: OperatorGraph, percent: int) -> None:
    less, more = (place(operators, _ENOUGH, headroom=one) for one in (0.5, percent / 100))
    assert len(more.cores) <= len(less.cores)


def test_more_nodes_never_need_more_cores() -> None:
    operators = random_graph(5, 60, 0.3)
    small, large = plain(20, nodes=2), plain(20, nodes=4)
    assert len(place(operators, small).cores) == len(place(operators, large).cores)


def test_new_numbers_of_nodes_change_only_numbers() -> None:
    operators = random_graph(6, 60, 0.3)
    machine = build([[NodeShape((), 6)], [NodeShape((), 10)], [NodeShape((), 4)]])
    swapped = build([[NodeShape((), 4)], [NodeShape((), 6)], [NodeShape((), 10)]])
    new = {0: 1, 1: 2, 2: 0}
    before, after = place(operators, machine), place(operators, swapped)
    assert sorted((new[one.node], one.cores) for one in before.nodes) == sorted(
        (one.node, one.cores) for one in after.nodes
    )


@pytest.mark.parametrize("count", [1, 2, 9])
def test_a_chain_of_idle_operators_is_one_unit(count: int) -> None:
    names = [f"op{one}" for one in range(count)]
    idle = graph([operator(name, 0.001) for name in names], list(pairwise(names)))
    found = place(idle, plain(2))
    assert [unit.operators for unit in found.units] == [tuple(names)]


def test_operators_of_a_core_each_need_a_core_each() -> None:
    found = place(opened([(f"op{one}", 0.8) for one in range(7)]), plain(8))
    assert len(found.cores) == 7
    assert found.bound is not None and found.bound.cores == 7


def test_the_posters_case_is_six_cores_of_one_node() -> None:
    found = place(read_graph(str(TPCW)), magny_cours())
    assert (len(found.cores), len(found.nodes)) == (6, 1)
    assert found.bound is not None and (found.bound.cores, found.bound.nodes) == (6, 1)
    assert found.crossing_bytes_per_s == 0


def test_an_operator_above_one_core() -> None:
    """It becomes replicas if it can be divided; else it is alone, and named."""
    operators = graph(
        [operator("wide", 2.0, parallel=True, memory_gbs=3), operator("tall", 1.5)],
        {("wide", "tall"): 6.0},
    )
    found = place(operators, plain(8))
    wide = [unit for unit in found.units if unit.operators == ("wide",)]
    assert [(unit.replica, unit.replicas, unit.memory_gbs) for unit in wide] == [
        (at, 3, 1.0) for at in range(3)
    ]
    tall = next(unit for unit in found.units if unit.operators == ("tall",))
    assert sum(unit.cpu == tall.cpu for unit in found.units) == 1
    assert any("bottleneck: tall needs 1.50 cores" in one for one in found.warnings)


def test_an_operator_that_cannot_be_divided_keeps_one_core_busy_at_most() -> None:
    found = place(opened([("tall", 3.0)]), plain(8))
    assert found.bound is not None and found.bound.cores == 1
    assert "keep 1.00 cores busy" in found.bound.reason


def test_a_unit_has_the_largest_peak_and_the_sum_of_averages() -> None:
    operators = graph(
        [
            operator("a", 0.3, peak=0.9, memory_gbs=2, blocking=True, cache_bytes=10),
            operator("b", 0.2, peak=0.5, memory_gbs=5, cache_bytes=20),
        ],
        [("a", "b")],
    )
    (unit,) = place(operators, plain(2)).units
    assert (unit.operators, unit.peak, unit.memory_gbs) == (("a", "b"), 0.9, 7)
    assert unit.duty == pytest.approx(0.5)


def test_the_peaks_of_operators_that_may_run_at_once_add() -> None:
    """a and c are joined because b hardly ever runs; nothing says that they take turns."""
    operators = graph(
        [
            operator(name, duty, peak=peak)
            for name, duty, peak in (("a", 0.2, 0.8), ("b", 0.001, 0.1), ("c", 0.2, 0.7))
        ],
        [("a", "b"), ("b", "c")],
    )
    (unit,) = place(operators, plain(2)).units
    assert unit.operators == ("a", "b", "c")
    assert unit.peak == pytest.approx(1.5)


def test_two_edges_between_neighbours_are_one() -> None:
    """A table joined with itself: the join is the scan's only consumer."""
    once = graph(
        [operator("scan", 0.2, blocking=True), operator("join", 0.2)], {("scan", "join"): 5.0}
    )
    twice = once.model_copy(update={"edges": once.edges * 2})
    assert [unit.operators for unit in place(twice, plain(2)).units] == [("scan", "join")]


def test_a_chain_is_cut_where_it_carries_least() -> None:
    operators = graph(
        [operator(name, 0.4, blocking=True) for name in "abcd"],
        {("a", "b"): 10.0, ("b", "c"): 1.0, ("c", "d"): 10.0},
    )
    found = place(operators, plain(2))
    assert sorted(unit.operators for unit in found.units) == [("a", "b"), ("c", "d")]


def test_a_chain_is_cut_if_that_saves_a_core() -> None:
    """0.5 + 0.3 and 0.5 + 0.3 fit two cores; the chain b-c of 0.6 would need a third."""
    operators = graph(
        [
            operator("a", 0.5),
            operator("b", 0.3, blocking=True),
            operator("c", 0.3),
            operator("d", 0.5),
        ],
        [("b", "c")],
    )
    found = place(operators, plain(4))
    assert len(found.cores) == 2 and len(found.units) == 4


@pytest.mark.parametrize(
    ("overlap", "blocking", "units"),
    [(0.05, False, 1), (0.5, True, 2), (None, True, 1), (None, False, 2)],
)
def test_a_measured_overlap_decides_before_what_is_known(
    overlap: float | None, blocking: bool, units: int
) -> None:
    operators = graph(
        [operator("a", 0.2, blocking=blocking), operator("b", 0.2)],
        [("a", "b")],
        None if overlap is None else {("a", "b"): overlap},
    )
    assert len(place(operators, plain(2)).units) == units


def test_what_does_not_fit_one_l3_gets_two_chiplets() -> None:
    """Chiplets of 32 MiB."""
    small, large = (
        place(
            graph([operator(f"op{one}", 0.7, cache_bytes=size << 20) for one in range(3)]), milan()
        )
        for size in (10, 14)
    )
    assert [len({core.chiplet for core in found.cores}) for found in (small, large)] == [1, 2]


def test_siblings_and_forbidden_cpus_stay_idle() -> None:
    machine = restrict(plain(4, smt=2), pus=[1, 2, 3, 5, 6, 7])
    found = place(opened([(f"op{one}", 0.7) for one in range(3)]), machine)
    assert [core.cpu for core in found.cores] == [1, 2, 3]


def test_the_other_deployments() -> None:
    operators = opened([("a", 0.1), ("b", 1.4), ("c", 0.2)])
    machine = plain(2, nodes=2)
    free = place(operators, machine, deployment="os")
    assert (free.units, len(free.cores), len(free.nodes)) == ((), 4, 2)
    single = place(operators, machine, deployment="per-core")
    assert [(unit.operators, unit.cpu) for unit in single.units] == [
        (("a",), 0), (("b",), 1), (("c",), 2)
    ]  # fmt: skip
    assert single.bound is None
    unknown = graph([operator("a", None)])
    assert place(unknown, machine, deployment="per-core").cores[0].duty is None


def test_a_core_per_operator_is_on_the_node_of_its_data() -> None:
    fixed = graph([operator("a", 0.1), operator("b", 0.1, node=1), operator("c", 0.1, node=0)])
    units = place(fixed, plain(2, nodes=2), deployment="per-core").units
    assert {unit.operators[0]: unit.cpu for unit in units} == {"c": 0, "a": 1, "b": 2}


def test_the_bound_holds_however_an_operator_is_divided() -> None:
    """In halves, `wide` needs two cores of its own; as 0.8 and 0.2 only one."""
    whole = [operator(name, 0.6) for name in "abc"]
    found = place(graph([operator("wide", 1.0, parallel=True), *whole]), plain(8))
    assert found.bound is not None and (len(found.cores), found.bound.cores) == (5, 4)


def test_estimates_and_gaps_are_said() -> None:
    guess = Known(value=0.1, source=Source.ESTIMATED)
    one = operator("a", 0.1)
    assert one.activity is not None
    one = one.model_copy(update={"activity": one.activity.model_copy(update={"duty": guess})})
    found = place(graph([one, operator("b", 0.1, memory_gbs=1)]), plain(2))
    assert any("an estimate" in warning for warning in found.warnings)
    assert any("was not measured" in warning for warning in found.warnings)


# ---- Bad input ------------------------------------------------------------------------------


def test_operators_in_a_circle() -> None:
    operators = graph(
        [operator(name, 0.1) for name in "abcd"], [("a", "b"), ("b", "c"), ("c", "b")]
    )
    with fails(UsageError, circle="b -> c -> b"):
        place(operators, plain(2))


def test_missing_activities() -> None:
    operators = graph([operator("a", 0.1), operator("b", None), operator("c", None)])
    with fails(UsageError, names="b, c"):
        place(operators, plain(2))


def test_a_machine_that_is_too_small() -> None:
    """By the sum of the duties, and by their sizes."""
    for duty in (0.7, 0.5):
        with fails(UsageError, needed="3 cores", headroom="20 %", usable=2, missing=1):
            place(opened([("a", duty), ("b", duty), ("c", duty)]), plain(2))


def test_very_many_replicas_are_refused_before_they_are_made() -> None:
    needed = "12499843752 cores"
    with fails(UsageError, needed=needed, headroom="20 %", usable=2, missing=12499843750):
        place(graph([operator("wide", 1e10, parallel=True)]), plain(2))


def test_a_core_per_operator_needs_the_cores() -> None:
    with fails(UsageError, needed="3 cores", usable=2, missing=1):
        place(opened([("a", 0), ("b", 0), ("c", 0)]), plain(2), deployment="per-core")


def test_a_node_that_is_missing_or_too_small() -> None:
    with fails(UsageError, operator="a", node=3):
        place(graph([operator("a", 0.1, node=3)]), plain(2))
    fixed = graph([operator(name, 0.7, node=1) for name in "abcdef"])
    with fails(UsageError, node=1, needed="6 cores", usable=2, missing=4):
        place(fixed, build([[NodeShape((), 8)], [NodeShape((), 2)]]))
    with fails(UsageError, operator="c", node=1):
        place(fixed, build([[NodeShape((), 8)], [NodeShape((), 2)]]), deployment="per-core")


def test_a_placement_reads_as_it_was_written() -> None:
    found = place(random_graph(1, 40, 0.4), plain(24, nodes=2))
    assert Placement.model_validate_json(found.model_dump_json()) == found
