"""The cells of a grid: how many, their labels, the baseline; and those that coincide."""

from __future__ import annotations

from functools import cache
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.bench.axes import Axis, Grid, make_grid, parse_axis
from atoll.bench.cells import baseline_of, make_cells
from atoll.bench.entrants import make_entrants
from atoll.bench.sameness import coincide
from atoll.errors import UsageError
from atoll.host.topology import read_machine
from atoll.schema.machine import Machine
from atoll.schema.plan import Policy
from atoll.schema.results import Entrant
from tests.parts.faults import fails
from tests.parts.machines import NodeShape, build
from tests.parts.paths import GOLDEN
from tests.parts.plan import DISTRIBUTED, SERIAL, SINGLE

# Without the policies, which have rules of their own for n, memory and placement.
VALUES = {
    "n": ("1", "2", "3", "4"),
    "memory": ("first-touch", "bind", "interleave"),
    "smt": ("on", "off"),
    "cores": ("1", "2", "4", "all"),
    "malloc": ("system", "jemalloc", "tcmalloc"),
    "thp": ("system", "never"),
    "streams": ("4", "8"),
    "knob:swappiness": ("10", "60"),
}
BIG = build([[NodeShape((4, 4), memory_gib=64)] * 2] * 2, smt=2)


def some_of(name: str) -> st.SearchStrategy[Axis]:
    values = st.lists(st.sampled_from(VALUES[name]), min_size=1, unique=True)
    return values.map(lambda found: Axis(name, tuple(found)))


axes = st.lists(st.sampled_from(sorted(VALUES)), max_size=4, unique=True).flatmap(
    lambda names: st.tuples(*map(some_of, names))
)
grids = st.builds(lambda found, product: make_grid(found, product=product), axes, st.booleans())


def grid(*texts: str, product: bool = False) -> Grid:
    return make_grid(map(parse_axis, texts), product=product)


def labels(*texts: str, product: bool = False) -> list[str]:
    return [cell.label for cell in make_cells("spark", grid(*texts, product=product))]


@given(grids)
def test_the_number_of_cells_and_their_labels(grid: Grid) -> None:
    cells = make_cells("engine", grid)
    lengths = [len(axis.values) for axis in grid.varied]
    most = 1 + (prod(lengths) if grid.product else 1 + sum(lengths))
    assert len({cell.label for cell in cells}) == len(cells) <= most
    assert len(cells) > (prod(lengths) if grid.product else sum(lengths)) - 1
    assert cells[0].values == baseline_of(grid)
    measured = {pair for cell in cells for pair in cell.values.items()}
    assert measured >= {(axis.name, value) for axis in grid.varied for value in axis.values}
    base = cells[0].values
    for cell in cells[1:]:
        differing = {n for n, _ in cell.values.items() ^ base.items()}
        if not grid.product:
            own = differing - set(grid.fixed)
            assert len(own) <= 1, "one axis at a time"
        for name in differing - {"policy"}:
            if name in cell.values:
                assert f"{name}={cell.values[name]}" in cell.label


def test_labels_say_what_differs_from_the_baseline() -> None:
    assert labels("n=8", "memory=bind") == ["spark/wim", "spark/n=8/memory=bind"]
    assert labels("n=2,8", "memory=bind") == [
        "spark/wim",
        "spark/n=2/memory=bind",
        "spark/n=8/memory=bind",
    ]
    assert labels("malloc=jemalloc", "policy=wic,win") == ["spark/wim", "spark/wic", "spark/win"]
    assert labels("memory=bind,interleave") == [
        "spark/wim",
        "spark/wim/memory=bind",
        "spark/wim/memory=interleave",
    ]
    assert labels("cores=1,2", "policy=win") == [
        "spark/wim",
        "spark/win",
        "spark/win/cores=1",
        "spark/win/cores=2",
    ]
    assert labels("cores=1,2", "smt=off,on") == [
        "spark/wim",
        "spark/wim, masked/smt=off",
        "spark/wim/smt=on",
        "spark/wim, masked/cores=1",
        "spark/wim, masked/cores=2",
    ]


def test_a_product_has_the_baseline_of_each_condition() -> None:
    assert labels("cores=1,2", "policy=win,wic", product=True) == [
        "spark/wim",
        "spark/wim, masked/cores=1",
        "spark/wim, masked/cores=2",
        "spark/win/cores=1",
        "spark/win/cores=2",
        "spark/wic/cores=1",
        "spark/wic/cores=2",
    ]
    found, _ = make_entrants(BIG, [DISTRIBUTED], (), grid("cores=1,2", "policy=win", product=True))
    # One policy alone is not varied, so there is the baseline on all cores only.
    assert {one.baseline for one in found[1:]} == {"engine/wim"}
    both = grid("cores=4,8", "policy=wim,wic", product=True)
    found, _ = make_entrants(BIG, [DISTRIBUTED], (), both)
    bases = {one.label: one.baseline for one in found}
    assert bases["engine/wic/cores=4"] == "engine/wim, masked/cores=4"
    assert bases["engine/wim, masked/cores=4"] == "engine/wim"


def test_a_number_of_instances_that_holds_for_all_makes_no_cell_of_its_own() -> None:
    assert labels("policy=wim,win", "n=8") == ["spark/wim", "spark/win/n=8"]
    assert labels("policy=wim,spmwin", "n=2", "malloc=system,jemalloc") == [
        "spark/wim",
        "spark/spmwin/n=2",
        "spark/wim/malloc=system",
        "spark/wim/malloc=jemalloc",
    ]
    assert labels("policy=wim,win", "n=2,8") == [
        "spark/wim",
        "spark/win",
        "spark/n=2",
        "spark/n=8",
    ]


def test_in_a_product_the_baseline_differs_in_the_policy_only() -> None:
    given = grid("policy=wic", "malloc=system,jemalloc", product=True)
    found, _ = make_entrants(BIG, [DISTRIBUTED], (), given)
    assert {one.baseline for one in found[1:]} == {"engine/wim"}, "the only one"
    given = grid("policy=wim,wic", "malloc=system,jemalloc", "memory=bind,interleave", product=True)
    found, _ = make_entrants(BIG, [DISTRIBUTED], (), given)
    bases = {one.label: one.baseline for one in found}
    condition = "memory=bind/malloc=jemalloc"
    assert bases[f"engine/wic/{condition}"] == f"engine/wim/{condition}"
    assert bases[f"engine/wim/{condition}"] == "engine/wim"


def test_wim_takes_a_place_only_where_that_is_varied() -> None:
    found, _ = make_entrants(BIG, [DISTRIBUTED], (), grid("memory=interleave", "policy=wim,win"))
    assert [one.label for one in found] == ["engine/wim", "engine/win/memory=interleave"]
    found, _ = make_entrants(BIG, [DISTRIBUTED], (), grid("memory=first-touch,interleave"))
    assert [[cell.label for cell in one.cells] for one in found] == [
        ["engine/wim", "engine/wim/memory=first-touch"],
        ["engine/wim/memory=interleave"],
    ]


@given(grids, st.sampled_from([DISTRIBUTED, SINGLE, SERIAL]))
@settings(max_examples=60, deadline=None)
def test_entrants_of_any_grid(grid: Grid, traits: object) -> None:
    assert isinstance(traits, type(DISTRIBUTED))
    try:
        found, _ = make_entrants(BIG, [traits], (), grid, knobs={"swappiness": "60"})
    except UsageError:  # more instances than cores, or fewer streams than servers
        return
    assert found[0].baseline is None
    assert {one.baseline for one in found[1:]} <= {one.label for one in found}
    for one in found:
        for other in found:
            assert (one is other) == coincide(one, other, BIG), "coinciding cells are one"
    names = [cell.label for one in found for cell in one.cells]
    assert len(names) == len(set(names)) <= len(make_cells(traits.name, grid)) + 3
    groups: dict[tuple[str | None, ...], list[Entrant]] = {}
    for one in found:
        values = one.cells[0].values
        groups.setdefault((values.get("cores"), values.get("smt")), []).append(one)
    for group in groups.values():
        for name in ("total_threads", "total_heap_bytes", "shuffle_partitions"):
            assert len({getattr(one.plan, name) for one in group}) == 1, name


@cache
def recorded(name: str) -> Machine:
    return read_machine(str(GOLDEN / "machines" / f"{name}.xml"), None)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # 2 packages of a node with 8 chiplets of 8 cores.
        ("dual-milan", {"4": (1, 1), "8": (1, 1), "12": (2, 1), "64": (8, 1), "128": (16, 2)}),
        # 2 packages of 4 nodes with 2 chiplets of 4 cores.
        ("nps4", {"4": (1, 1), "8": (2, 1), "9": (3, 2), "64": (16, 8)}),
    ],
)
def test_cores_of_recorded_machines(name: str, expected: dict[str, tuple[int, int]]) -> None:
    machine = recorded(name)
    found, _ = make_entrants(
        machine, [DISTRIBUTED], (), grid(f"cores={','.join(expected)}", "policy=wicp")
    )
    for one in found:
        for cell in one.cells:
            if "cores" in cell.values and one.plan is not None:
                chiplets = {chiplet for slot in one.plan.slots for chiplet in slot.chiplets}
                nodes = {node for slot in one.plan.slots for node in slot.nodes}
                assert (len(chiplets), len(nodes)) == expected[cell.values["cores"]]


@pytest.mark.parametrize(
    "name", ["dual-milan", "nps4", "snc2-distances", "unequal", "smt-siblings-far", "offline"]
)
def test_smt_off_masks_wim_to_a_cpu_of_each_core(name: str) -> None:
    machine = recorded(name)
    found, _ = make_entrants(machine, [DISTRIBUTED], (), grid("smt=off,on"))
    by_value = {
        cell.values.get("smt", ""): one.plan for one in found for cell in one.cells if one.plan
    }
    off, on = by_value["off"], by_value["on"]
    assert off.policy is on.policy is Policy.WIM
    assert off.total_threads == len(machine.allowed_cores)
    if machine.smt:
        assert len(off.slots[0].cpus or ()) == len(machine.allowed_cores)
        assert on.total_threads > off.total_threads
    else:
        assert len(found) == 1


def test_one_instance_of_n_is_wim_where_memory_is_of_one_node() -> None:
    one_node = build([[NodeShape((4, 4))]])
    found, notes = make_entrants(one_node, [DISTRIBUTED], (), grid("n=1,2,4"))
    assert [[cell.label for cell in one.cells] for one in found] == [
        ["engine/wim", "engine/n=1"],
        ["engine/n=2"],
        ["engine/n=4"],
    ]
    assert "engine/n=1 is measured as engine/wim" in notes[0]


def test_a_value_that_fits_no_cell_is_refused_and_a_combination_left_out() -> None:
    small = build([[NodeShape((2, 2))]])
    with fails(UsageError, label="engine/n=8", option="--axis n=8", cores=4):
        make_entrants(small, [DISTRIBUTED], (), grid("n=2,8"))
    crossed = grid("n=1,4", "cores=2,4", product=True)
    found, notes = make_entrants(small, [DISTRIBUTED], (), crossed)
    assert "engine/n=4/cores=4" in {cell.label for one in found for cell in one.cells}
    assert any(note.startswith("engine/n=4/cores=2 was left out: --axis n=4") for note in notes)


def test_a_remedy_has_the_options_of_a_bench() -> None:
    with pytest.raises(UsageError, match=r"use --policies win --axis n=1$"):
        make_entrants(BIG, [DISTRIBUTED], (), grid("placement=dense,sparse"))
    given = grid("placement=dense,sparse", "policy=win", "n=1")
    found, _ = make_entrants(BIG, [DISTRIBUTED], (), given)
    assert [one.label for one in found][1:] == [
        "engine/win/n=1",
        "engine/win/n=1/placement=dense",
        "engine/win/n=1/placement=sparse",
    ]


def test_wim_has_no_number_of_instances_and_is_the_baseline_all_the_same() -> None:
    crossed = grid("policy=wim,win", "n=2,4", product=True)
    found, notes = make_entrants(BIG, [DISTRIBUTED], (), crossed)
    assert [one.label for one in found] == ["engine/wim", "engine/win/n=2", "engine/win/n=4"]
    assert any(note.startswith("engine/wim/n=2 was left out") for note in notes)


def test_streams_that_are_too_few_for_a_policy_leave_that_cell_out() -> None:
    crossed = grid("policy=wim,wic", "streams=2,32", product=True)
    found, notes = make_entrants(BIG, [SINGLE], (), crossed)
    labels = [one.label for one in found]
    assert "engine/wic/streams=32" in labels and "engine/wic/streams=2" not in labels
    assert any(note.startswith("engine/wic/streams=2 was left out: --streams 2") for note in notes)
    with pytest.raises(UsageError, match="engine/wic/streams=2: --streams 2"):
        make_entrants(BIG, [SINGLE], (), grid("policy=wic", "streams=2,4"))


def test_knobs_stand_in_every_entrant() -> None:
    crossed = grid("knob:swappiness=10,60", "malloc=system,jemalloc")
    found, _ = make_entrants(BIG, [DISTRIBUTED], (), crossed, knobs={"swappiness": "60"})
    assert {one.label: one.knobs for one in found} == {
        "engine/wim": {"swappiness": "60"},
        "engine/wim/malloc=jemalloc": {"swappiness": "60"},
        "engine/wim/knob:swappiness=10": {"swappiness": "10"},
    }
