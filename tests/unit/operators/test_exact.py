"""The planner beside an exact solver, on random instances."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest

from atoll.errors import UsageError
from atoll.operators.cores import Item, pack
from atoll.operators.loads import Load, Room
from atoll.operators.mapping import map_cores
from atoll.operators.place import place
from atoll.operators.room import USABLE
from atoll.schema.placement import Placement
from atoll.schema.profile import NodeMatrix
from tests.parts.machines import NodeShape, build
from tests.parts.operators import graph, operator
from tests.parts.operators_exact import fewest_cores, fewest_places, fewest_together
from tests.parts.profiles import figure, profile

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
        for one, room in enumerate(rooms):
            inside = [load for load, at in zip(loads, found.places, strict=True) if at == one]
            assert room.holds(inside)
    assert max(above) <= 1 and above[0] >= _BAR * instances, above


def test_as_few_nodes_as_the_exact_solver() -> None:
    _compare_nodes(seed=3, instances=12)


@pytest.mark.long
def test_as_few_nodes_as_the_exact_solver_on_many_instances() -> None:
    _compare_nodes(seed=4, instances=100)


def _compare_all(seed: int, instances: int) -> None:
    """Whole plans with chains, fixed operators and little bandwidth, on 2 or 3 unequal nodes. None
    is refused, and no node moves more than it can, if there is a way."""
    random = Random(seed)
    above: Counter[tuple[int, int]] = Counter()
    while above.total() < instances:
        rooms = [
            Room(random.randint(1, 3), random.choice([8.0, 12.0, 20.0]))
            for _ in range(random.randint(2, 3))
        ]
        loads = [
            Load(
                round(random.uniform(0, 9), 1),
                random.randrange(len(rooms)) if random.random() < 0.2 else None,
                random.randint(5, 60),
            )
            for _ in range(random.randint(4, 9))
        ]
        least = fewest_together(loads, 80, rooms)
        found = _placed(loads, rooms, random)
        if least is None:
            assert found is None or any("bottleneck" in one for one in found.warnings)
            continue
        assert found is not None
        for node in found.nodes:
            assert (node.memory_gbs or 0) <= rooms[node.node].amount + 1e-6
        assert found.bound is not None
        assert found.bound.cores <= least[0] and found.bound.nodes <= least[1]
        cores = len(found.cores) - least[0]
        above[cores, len(found.nodes) - least[1] if cores == 0 else 0] += 1
    assert {*above} <= {(0, 0), (1, 0), (0, 1)} and above[0, 0] >= _BAR * instances, above


def _placed(loads: Sequence[Load], rooms: Sequence[Room], random: Random) -> Placement | None:
    """None: refused."""
    operators = [
        operator(
            f"op{at}",
            load.size / 100,
            memory_gbs=load.amount,
            node=load.place,
            blocking=random.random() < 0.5,
        )
        for at, load in enumerate(loads)
    ]
    edges = {
        (f"op{random.randrange(at)}", f"op{at}"): float(random.randint(1, 10**6))
        for at in range(1, len(loads))
        if random.random() < 0.7
    }
    nodes = range(len(rooms))
    local = [room.amount / USABLE for room in rooms]
    matrix = NodeMatrix(
        cpu_nodes=tuple(nodes),
        memory_nodes=tuple(nodes),
        working_set_bytes=1 << 26,
        huge_pages=True,
        latency_ns=tuple(tuple(figure(90 if a == b else 140) for b in nodes) for a in nodes),
        bandwidth_gbs=tuple(tuple(figure(local[a] if a == b else 5) for b in nodes) for a in nodes),
    )
    machine = build([[NodeShape((), room.cores)] for room in rooms])
    try:
        return place(graph(operators, edges), machine, profile("unequal", 9, nodes=matrix))
    except UsageError:
        return None


def test_as_few_cores_and_nodes_together_as_the_exact_solver() -> None:
    _compare_all(seed=5, instances=20)


@pytest.mark.long
def test_as_few_cores_and_nodes_together_as_the_exact_solver_on_many_instances() -> None:
    _compare_all(seed=6, instances=150)
