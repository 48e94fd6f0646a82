"""The phases one by one: bounds, packing, subsets, exchanges."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.operators import subgraph
from atoll.operators.assignment import assign, cost
from atoll.operators.cores import Item, fewest, first_fit, pack
from atoll.operators.loads import Core, Load, Room
from atoll.operators.mapping import map_cores
from atoll.operators.nodes import fit, spread
from atoll.operators.overfull import repaired
from atoll.operators.subgraph import densest

Table = list[list[float]]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 80), st.sampled_from([None, None, 0, 1])), max_size=30),
)
def test_a_packing_holds(pairs: list[tuple[int, int | None]]) -> None:
    items = [Item(*pair) for pair in pairs]
    found = pack(items, 80, {0: 30, 1: 30}, [()] * len(items))
    assert sorted(one for core in found.cores for one in core) == list(range(len(items)))
    for core in found.cores:
        assert sum(items[one].size for one in core) <= 80
        assert len({items[one].node for one in core} - {None}) <= 1
    assert found.fewest <= len(found.cores) <= len(first_fit(items, 80, [()] * len(items)))


@pytest.mark.parametrize(
    ("sizes", "least"),
    [
        ([], 0),
        ([41, 41, 41], 3),  # no two share a core of 80
        ([60, 60, 30, 30, 30], 4),  # nothing fits beside 60, and three of 30 need two
        ([27, 27, 27, 27, 27], 3),  # two to a core
        ([20] * 9, 3),
    ],
)
def test_the_bound_knows_sizes(sizes: list[int], least: int) -> None:
    assert fewest([Item(size) for size in sizes], 80) == least


def test_the_search_proves_what_the_bound_cannot() -> None:
    """Two cores of 100 would do by their sum, 197, but no set of them is from 97 to 100."""
    items = [Item(size) for size in (54, 47, 35, 31, 30)]
    found = pack(items, 100, {}, [()] * 5)
    assert fewest(items, 100) == 2
    assert len(found.cores) == found.fewest == 3


def test_exchanges_repair_an_overfull_core() -> None:
    loads = [Load(size=size) for size in (6, 5, 5, 4, 4, 4, 2)]
    cores = [Core(0, [0, 1]), Core(0, [2, 3]), Core(0, [4, 5, 6])]
    found = repaired(loads, 10, [Room(3)], 3, cores)
    assert found is not None
    assert sorted(sum(loads[one].size for one in core.units) for core in found) == [10, 10, 10]
    assert repaired([Load(size=9)] * 3, 10, [Room(2)], 2, [Core(0, [0, 1]), Core(0, [2])]) is None


def test_the_densest_places_come_first() -> None:
    """Two pairs of close nodes; the second pair is closer."""
    weights: Table = [[0, 5, 1, 1], [5, 0, 1, 1], [1, 1, 0, 6], [1, 1, 6, 0]]
    found = [one.places for one in densest(weights, 2, frozenset(), [0] * 4)]
    assert found[:2] == [(2, 3), (0, 1)] and len(found) == 6
    assert next(densest(weights, 2, frozenset({0}), [0] * 4)).places == (0, 1)
    best = next(densest(weights, 1, frozenset(), [1, 1, 3, 2]))
    assert best.places == (2,)


def test_peeling_stays_within_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = [
        [0.0 if a == b else 1 + (7 * a * b + a + b) % 11 for b in range(12)] for a in range(12)
    ]
    exact = next(densest(weights, 5, frozenset(), [0] * 12))
    assert exact.weight == exact.most
    monkeypatch.setattr(subgraph, "MOST_SUBSETS", 10)
    (peeled,) = densest(weights, 5, frozenset({3}), [0] * 12)
    assert 3 in peeled.places and len(peeled.places) == 5
    assert peeled.weight == sum(weights[a][b] for a, b in combinations(peeled.places, 2))
    assert 0.8 * exact.weight <= peeled.weight <= exact.weight <= peeled.most


def test_a_room_is_found_where_the_first_choice_fails() -> None:
    """The rooms hold 9 + 1 and 6 + 4 GB/s; fit has to pair them."""
    rooms = [Room(2, 10), Room(2, 10)]
    loads = [Load(one) for one in (6.0, 1.0, 4.0, 9.0)]
    placed, _ = fit(loads, rooms)
    assert placed is not None and placed[0] == placed[2] != placed[1] == placed[3]
    assert fit([Load(6), Load(6), Load(6)], rooms)[0] is None
    assert sorted(spread([Load(6), Load(6), Load(6)], rooms)) in ([0, 0, 1], [0, 1, 1])


def test_exchanges_fill_rooms_that_the_search_does_not() -> None:
    """85 of 90 GB/s, and 17 of 17 cores."""
    rooms = [Room(8, 20), Room(5, 40), Room(4, 30)]
    amounts = [8.5, 4.7, 3.2, 3.7, 2.1, 0.2, 4.7, 11.2, 3.9, 0.5, 6.4, 7.4, 8.9, 8.7, 0.5, 3.3, 7.1]
    loads = [Load(amounts[0], place=1), *map(Load, amounts[1:])]
    placed, _ = fit(loads, rooms)
    assert placed is not None and placed[0] == 1
    for place, room in enumerate(rooms):
        assert room.holds([load for load, at in zip(loads, placed, strict=True) if at == place])


def test_many_sets_of_unlike_nodes_end() -> None:
    """16 nodes of about 40 GB/s and 20 cores of 12 to 15. There are 11,440 sets of 7, too many to
    search in each; one of them would do, and one of 8 is found."""
    random = Random(3)
    rooms = [Room(16, round(random.uniform(37, 43), 2)) for _ in range(16)]
    loads = [Load(round(random.uniform(12, 15), 2)) for _ in range(20)]
    flat = [[1.0] * 16] * 16
    found = map_cores(loads, rooms, {}, flat, flat, [0.0] * 16)
    assert found.holds and len(set(found.places)) <= 8


@pytest.mark.parametrize("groups", [3, 9])
def test_cores_that_exchange_data_come_together(groups: int) -> None:
    """Pairs of cores on nodes in a row, each pair torn apart; few groups and many."""
    count = 2 * groups
    rooms = [Room(2)] * groups
    traffic = {(one, one + groups): 100.0 for one in range(groups)}
    distances = [[10.0 + 5 * abs(a - b) for b in range(groups)] for a in range(groups)]
    torn = [one // 2 for one in range(count)]
    found = assign(torn, [Load()] * count, rooms, traffic, distances)
    assert cost(traffic, found, distances) == 1000 * groups
    assert sorted(found) == sorted(torn)


def test_a_core_stays_where_its_data_is() -> None:
    rooms, loads = [Room(1)] * 3, [Load(place=2), Load(), Load()]
    near: Table = [[10, 50, 20], [50, 10, 20], [20, 20, 10]]
    found = map_cores(loads, rooms, {(0, 1): 5.0, (1, 2): 1.0}, near, near, [0] * 3)
    assert found.places[0] == 2 and found.holds
