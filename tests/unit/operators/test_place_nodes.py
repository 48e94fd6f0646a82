"""Placements on nodes: data that cannot move, and memory bandwidth."""

from __future__ import annotations

from random import Random

import pytest

from atoll.operators.place import place
from atoll.operators.room import USABLE
from tests.parts.machines import NodeShape, build, plain
from tests.parts.operators import graph, operator
from tests.parts.profiles import node_matrix
from tests.parts.profiles import profile as synthetic


def test_data_that_cannot_move_fixes_the_node() -> None:
    operators = graph(
        [operator(name, 0.3, node=node) for name, node in zip("abc", (2, 0, 2), strict=True)]
    )
    found = place(operators, plain(2, nodes=3))
    node = {core.cpu: core.node for core in found.cores}
    assert {unit.operators[0]: node[unit.cpu] for unit in found.units} == {"a": 2, "b": 0, "c": 2}
    assert len(found.cores) == 2 and found.bound is not None and found.bound.nodes == 2


def test_a_fixed_node_gets_no_more_cores_than_it_has() -> None:
    """First fit decreasing needs three cores for what is on node 1; the rest fits beside it."""
    fixed = [operator(f"op{one}", duty, node=1) for one, duty in enumerate((0.32, 0.24, 0.24) * 2)]
    found = place(graph([*fixed, operator("free", 0.4)]), plain(2, nodes=2))
    assert {node.node: node.cores for node in found.nodes} == {0: 1, 1: 2}


def test_a_chain_is_cut_if_a_fixed_node_is_too_small_for_it() -> None:
    """As chains, p-u and q-v need two of the node's two cores, and r a third."""
    fixed = [operator(one, 0.3, node=0, blocking=True) for one in "pqr"]
    free = [operator(one, 0.4) for one in "uv"]
    machine = build([[NodeShape((), 2)], [NodeShape((), 7)]])
    found = place(graph([*fixed, *free], [("p", "u"), ("q", "v")]), machine)
    assert len(found.cores) == 3
    assert next(node.cores for node in found.nodes if node.node == 0) <= 2


def test_bandwidth_needs_a_second_node() -> None:
    """A node gives 0.8 of 50 GB/s; four cores of 15 GB/s need two of them."""
    operators = graph([operator(f"op{one}", 0.7, memory_gbs=15) for one in range(4)])
    machine = plain(8, nodes=4)
    measured = synthetic("four nodes", 32, nodes=node_matrix((0, 1, 2, 3), 90, 140, 50, 20))
    found = place(operators, machine, measured)
    assert [(node.cores, node.memory_gbs) for node in found.nodes] == [(2, 30), (2, 30)]
    assert [node.capacity_gbs for node in found.nodes] == pytest.approx([40, 40], rel=0.1)
    assert found.bound is not None and found.bound.nodes == 2
    emulated = measured.model_copy(update={"emulated": True})
    assert len(place(operators, machine, emulated).nodes) == 1


def test_no_doubt_about_nodes_if_all_sets_were_tried() -> None:
    """Nodes 0 and 1 are closest and have too few cores together."""
    machine = build([[NodeShape((), 2)] * 2, [NodeShape((), 4)]])
    found = place(graph([operator(f"op{one}", 0.7) for one in range(5)]), machine)
    assert sorted(node.cores for node in found.nodes) in ([1, 4], [2, 3])
    assert not any("too many sets" in one for one in found.warnings)


def test_more_than_the_memory_gives_is_spread_and_said() -> None:
    operators = graph([operator(f"op{one}", 0.7, memory_gbs=50) for one in range(4)])
    measured = synthetic("two nodes", 16, nodes=node_matrix((0, 1), 90, 140, 50, 20))
    found = place(operators, plain(8, nodes=2), measured)
    assert [node.cores for node in found.nodes] == [2, 2]
    assert any("more than the nodes may be used for" in one for one in found.warnings)
    assert found.bound is not None and found.bound.nodes == 1


def test_bandwidth_that_cannot_be_divided_among_nodes_is_spread_and_said() -> None:
    """Three cores of 25 GB/s are less than two nodes of 40 have, and two are too many for one."""
    operators = graph([operator(f"op{one}", 0.7, memory_gbs=25) for one in range(3)])
    measured = synthetic("two nodes", 16, nodes=node_matrix((0, 1), 90, 140, 50, 20))
    found = place(operators, plain(8, nodes=2), measured)
    assert any("no way was found to divide them" in one for one in found.warnings)


@pytest.mark.parametrize(
    ("duties", "cores"), [((0.4, 0.4, 0.4, 0.4), 2), ((0.45, 0.35, 0.42, 0.38), 3)]
)
def test_what_moves_most_is_kept_apart(duties: tuple[float, ...], cores: int) -> None:
    """Nodes of 12.5 GB/s. a and b together take 20, and only by duty they belong together; 0.45
    fits beside 0.35 only, so it needs a core of its own."""
    moved = (10, 10, 2, 2)
    operators = graph(
        [
            operator(name, duty, memory_gbs=gbs, blocking=True)
            for name, duty, gbs in zip("abcd", duties, moved, strict=True)
        ],
        {("a", "b"): 1e6},
    )
    measured = synthetic("two nodes", 4, nodes=node_matrix((0, 1), 90, 140, 15.625, 5))
    found = place(operators, plain(2, nodes=2), measured)
    assert [node.memory_gbs for node in found.nodes] == [12, 12]
    assert len(found.cores) == cores
    assert any("2 cores would do" in one for one in found.warnings) == (cores > 2)


def test_a_core_that_moves_more_than_a_node_is_divided() -> None:
    operators = graph([operator(name, 0.3, memory_gbs=8) for name in "ab"])
    measured = synthetic("two nodes", 4, nodes=node_matrix((0, 1), 90, 140, 15.625, 5))
    found = place(operators, plain(2, nodes=2), measured)
    assert [(node.cores, node.memory_gbs) for node in found.nodes] == [(1, 8), (1, 8)]
    assert not any("fits" in unit.reason for unit in found.units)  # by duty, each fits beside it
    one_node = place(operators, plain(2), synthetic("one", 2, nodes=measured.nodes))
    (warning,) = [one for one in one_node.warnings if "bottleneck" in one]
    assert "more than" in warning and "spread" not in warning


def test_many_operators_on_a_few_more_cores_where_bandwidth_is_short() -> None:
    """Small duties move much, so cores that are packed by duty move very unequal amounts."""
    random = Random(1)
    each = [2 * random.random() for _ in range(1000)]
    operators = graph(
        [
            operator(f"op{at}", 0.2 * random.random() ** 3 + 1e-4, memory_gbs=gbs)
            for at, gbs in enumerate(each)
        ]
    )
    measured = synthetic(
        "eight", 256, nodes=node_matrix(tuple(range(8)), 90, 140, 1.05 * sum(each) / 8 / USABLE, 5)
    )
    found = place(operators, plain(32, nodes=8), measured)
    for node in found.nodes:
        assert node.memory_gbs is not None and node.capacity_gbs is not None
        assert node.memory_gbs <= node.capacity_gbs
    assert found.bound is not None and len(found.cores) <= 1.1 * found.bound.cores


def test_operators_are_exchanged_for_one_node_less() -> None:
    """Nodes of 2 cores and 20 GB/s. Chains move 14, 14, 12 and 0, which needs three nodes; 7, 7, 6
    and 0 fill one."""
    operators = graph(
        [
            operator(f"op{at}", 0.4, memory_gbs=gbs, blocking=True)
            for at, gbs in enumerate((7, 7, 7, 7, 6, 6, 0, 0))
        ],
        [(f"op{at}", f"op{at + 1}") for at in range(0, 8, 2)],
    )
    measured = synthetic("three", 6, nodes=node_matrix((0, 1, 2), 90, 140, 25, 5))
    found = place(operators, plain(2, nodes=3), measured)
    assert [(node.cores, node.memory_gbs) for node in found.nodes] == [(2, 20), (2, 20)]
