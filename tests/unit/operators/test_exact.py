"""The planner beside an exact solver, on random instances."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from atoll.operators.cores import Item, pack
from atoll.operators.mapping import map_cores
from atoll.operators.nodes import Load, Room
from tests.parts.operators_exact import fewest_cores, fewest_places

_BAR = 0.95  # of the instances need no more than the solver says, and none more than one above


def _shares(random: Random, most: int) -> list[int]:
    """Percent of a core, of small, mixed or medium size, the last the hardest to pack."""
    low, high = random.choice([(1, 20), (1, 80), (10, 40), (10, 80), (18, 42)])
    return [random.randint(low, high) for _ in range(random.randint(2, most))]


def _compare_cores(seed: int, instances: int, most: int) -> None:
    random = Random(seed)
    above: Counter[int] = Counter()
    for _ in range(instances):
        shares = _shares(random, most)
        found = pack([Item(share) for share in shares], 80, {}, [()] * len(shares))
        least = fewest_cores(shares, 80)
        assert found.fewest <= least <= len(found.cores)
        above[len(found.cores) - least] += 1
    assert max(above) <= 1 and above[0] >= _BAR * instances, above


def test_as_few_cores_as_the_exact_solver() -> None:
    _compare_cores(seed=1, instances=10, most=28)


@pytest.mark.long
def test_as_few_cores_as_the_exact_solver_on_many_instances() -> None:
    _compare_cores(seed=2, instances=150, most=60)


def _compare_nodes(seed: int, instances: int) -> None:
    """Cores on up to 8 unequal nodes, for plans that need 1 to 4 of them."""
    random = Random(seed)
    needed: Counter[int] = Counter()
    above: Counter[int] = Counter()
    while sum(needed.values()) < instances:
        wanted = 1 + sum(needed.values()) % 4
        rooms = [
            Room(random.randint(4, 8), random.choice([20.0, 30.0, 40.0]))
            for _ in range(random.randint(2, 8))
        ]
        loads = [
            Load(round(random.uniform(0, 12), 1)) for _ in range(random.randint(2, 6 * wanted))
        ]
        least = fewest_places(loads, rooms)
        if least != wanted:
            continue
        flat = [[1.0] * len(rooms)] * len(rooms)
        found = map_cores(loads, rooms, {}, flat, flat, [0.0] * len(rooms))
        assert found.holds
        above[len(set(found.places)) - least] += 1
        needed[least] += 1
        for place, room in enumerate(rooms):
            inside = [load for load, at in zip(loads, found.places, strict=True) if at == place]
            assert room.holds(inside)
    assert max(above) <= 1 and above[0] >= _BAR * instances, above


def test_as_few_nodes_as_the_exact_solver() -> None:
    _compare_nodes(seed=3, instances=12)


@pytest.mark.long
def test_as_few_nodes_as_the_exact_solver_on_many_instances() -> None:
    _compare_nodes(seed=4, instances=100)
