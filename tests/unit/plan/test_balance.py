"""Equal instances on any machine: they divide all cores, and no division crosses fewer borders.

The second is checked against a search through all divisions, on small machines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.plan.balance import partition
from atoll.plan.cores import Group, usable_places
from atoll.schema.machine import Machine
from tests.parts.machines import NodeShape, build, milan

node_shapes = st.builds(
    NodeShape,
    st.lists(st.integers(2, 4), max_size=3).map(tuple),
    st.integers(0, 3),
).filter(lambda shape: sum(shape.chiplets) + shape.rest > 0)
small_machines = st.lists(st.lists(node_shapes, min_size=1, max_size=2), min_size=1, max_size=2)


def crossings(groups: tuple[Group, ...]) -> tuple[int, int]:
    """(groups over several nodes, groups over several nodes or chiplets)."""
    nodes = sum(len({place.node for place in group}) > 1 for group in groups)
    islands = sum(len({(place.node, place.chiplet) for place in group}) > 1 for group in groups)
    return nodes, islands


Nodes = tuple[tuple[int, ...], ...]  # what is left of each chiplet of each node


def fewest_crossings(machine: Machine, count: int) -> tuple[int, int]:
    """By trying every way to fill the instances one after the other; machines that differ only in
    the order of their nodes and chiplets are one."""
    places = usable_places(machine, smt=False)
    found = Counter((place.node, place.chiplet) for place in places)
    nodes = [
        tuple(cores for (node, _), cores in found.items() if node == one)
        for one in dict.fromkeys(node for node, _ in found)
    ]
    size, big = divmod(len(places), count)
    wanted = [size + 1] * big + [size] * (count - big)

    @cache
    def search(left: Nodes, slot: int) -> tuple[int, int]:
        if slot == count:
            return 0, 0
        best = (count + 1, count + 1)
        for after, over_nodes, over_chiplets in ways_to_take(left, wanted[slot]):
            rest = search(after, slot + 1)
            best = min(best, (rest[0] + over_nodes, rest[1] + over_chiplets))
        return best

    return search(in_order(nodes), 0)


def in_order(nodes: Iterable[Iterable[int]]) -> Nodes:
    return tuple(sorted(tuple(sorted(chiplets)) for chiplets in nodes))


@cache
def ways_to_take(nodes: Nodes, cores: int) -> set[tuple[Nodes, bool, bool]]:
    """Every way to take that many cores: what is left, and whether they lie on several nodes and on
    several chiplets."""
    flat = [(node, left) for node, chiplets in enumerate(nodes) for left in chiplets]
    ways = set()
    for taken in product(*(range(min(left, cores) + 1) for _, left in flat)):
        if sum(taken) == cores:
            used = [node for (node, _), some in zip(flat, taken, strict=True) if some]
            after: list[list[int]] = [[] for _ in nodes]
            for (node, left), some in zip(flat, taken, strict=True):
                after[node].append(left - some)
            ways.add((in_order(after), len(set(used)) > 1, len(used) > 1))
    return ways


def check_division(machine: Machine, groups: tuple[Group, ...], count: int) -> None:
    cores = [place.core for group in groups for place in group]
    assert len(groups) == count
    assert sorted(cores) == [core.index for core in machine.cores], "not every core exactly once"
    sizes = {len(group) for group in groups}
    assert max(sizes) - min(sizes) <= 1


@given(small_machines, st.data())
@settings(max_examples=100)
def test_no_division_crosses_fewer_borders(
    shape: list[list[NodeShape]], data: st.DataObject
) -> None:
    cores = sum(sum(node.chiplets) + node.rest for package in shape for node in package)
    if cores > 14:
        shape = shape[:1]
    machine = build(shape)
    total = len(machine.cores)
    count = data.draw(st.integers(1, total))
    groups = partition(usable_places(machine, smt=False), count)
    check_division(machine, groups, count)
    assert crossings(groups) == fewest_crossings(machine, count)


@given(
    st.lists(
        st.builds(
            NodeShape, st.lists(st.integers(2, 16), max_size=8).map(tuple), st.integers(0, 9)
        ).filter(lambda shape: sum(shape.chiplets) + shape.rest > 0),
        min_size=1,
        max_size=4,
    ),
    st.data(),
)
@settings(max_examples=60)
def test_divides_large_machines(nodes: list[NodeShape], data: st.DataObject) -> None:
    machine = build([nodes])
    count = data.draw(st.integers(1, len(machine.cores)))
    check_division(machine, partition(usable_places(machine, smt=False), count), count)


def test_whole_chiplets_where_they_fit() -> None:
    places = usable_places(milan(2, 16, 8), smt=False)
    assert crossings(partition(places, 32)) == (0, 0)
    assert crossings(partition(places, 64)) == (0, 0)
    assert crossings(partition(places, 2)) == (0, 2)
    assert crossings(partition(places, 1)) == (1, 1)


def test_unequal_chiplets_are_filled_one_by_one() -> None:
    """A cloud machine with cores removed: 6, 8, 6 and 8 cores in 14 instances of two."""
    machine = build([[NodeShape((6, 8, 6, 8))]])
    groups = partition(usable_places(machine, smt=False), 14)
    assert crossings(groups) == (0, 0)
    assert {len(group) for group in groups} == {2}
