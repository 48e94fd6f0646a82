"""Which packed cores go to which place, so that the data between them has the shortest way: the
quadratic assignment of docs/operators.md. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, permutations
from operator import mul

from atoll.operators.loads import Load, Room

ALL_ORDERS = 7  # up to this many groups are tried in every order
PAIRS = 5_000  # of cores that are looked at for an exchange, at most

Traffic = Mapping[tuple[int, int], float]  # bytes/s between two cores, the lower number first
Distances = Sequence[Sequence[float]]  # between places, symmetric


def cost(traffic: Traffic, placed: Sequence[int], distances: Distances) -> float:
    """Bytes/s times distance."""
    return sum(carried * distances[placed[a]][placed[b]] for (a, b), carried in traffic.items())


def assign(
    placed: Sequence[int],
    loads: Sequence[Load],
    rooms: Sequence[Room],
    traffic: Traffic,
    distances: Distances,
) -> list[int]:
    """As `placed`, which holds, with less cost: whole groups change their places, then cores."""
    best = _groups_moved(placed, loads, rooms, traffic, distances)
    return _cores_moved(best, loads, rooms, traffic, distances)


def _groups_moved(
    placed: Sequence[int],
    loads: Sequence[Load],
    rooms: Sequence[Room],
    traffic: Traffic,
    distances: Distances,
) -> list[int]:
    """All orders of few groups; else exchanges of two while they gain."""
    used = sorted(set(placed))
    group: dict[int, list[Load]] = {place: [] for place in used}
    for load, place in zip(loads, placed, strict=True):
        group[place].append(load)
    between: dict[tuple[int, int], float] = {}
    for (a, b), carried in traffic.items():
        pair = (placed[a], placed[b])
        between[pair] = between.get(pair, 0) + carried

    def price(goal: Mapping[int, int]) -> float:
        return sum(carried * distances[goal[a]][goal[b]] for (a, b), carried in between.items())

    def holds(goal: Mapping[int, int]) -> bool:
        return all(
            rooms[goal[place]].holds(group[place])
            and all(load.place in (None, goal[place]) for load in group[place])
            for place in used
            if goal[place] != place
        )

    goal = {place: place for place in used}
    if len(used) <= ALL_ORDERS:
        orders = (dict(zip(used, order, strict=True)) for order in permutations(used))
        goal = min(filter(holds, orders), key=price)
    else:
        gains = True
        while gains:
            gains = False
            for a, b in combinations(used, 2):
                other = goal | {a: goal[b], b: goal[a]}
                if price(other) < price(goal) * (1 - 1e-9) and holds(other):
                    goal, gains = other, True
    return [goal[place] for place in placed]


def _cores_moved(
    placed: list[int],
    loads: Sequence[Load],
    rooms: Sequence[Room],
    traffic: Traffic,
    distances: Distances,
) -> list[int]:
    """Cores exchange their places in pairs while that gains."""
    near: list[dict[int, float]] = [{} for _ in loads]
    for (a, b), carried in traffic.items():
        near[a][b] = near[b][a] = carried
    if len(set(placed)) == 1:
        return placed
    costs = []  # of what each core exchanges, from each place
    for links in near:
        carries = [0.0] * len(rooms)
        for other, carried in links.items():
            carries[placed[other]] += carried
        costs.append([sum(map(mul, carries, row)) for row in distances])
    taken = [0.0] * len(rooms)
    for load, place in zip(loads, placed, strict=True):
        taken[place] += load.amount

    def may(out: int, new: int) -> bool:
        """Whether `new` may come in the place of `out`."""
        place = placed[out]
        return loads[new].place in (None, place) and rooms[place].takes(
            taken[place] - loads[out].amount + loads[new].amount
        )

    least = 1e-9 * max(cost(traffic, placed, distances), 1e-300)
    left = PAIRS
    gains = True
    while gains and left > 0:
        gains = False
        for a, b in combinations(range(len(loads)), 2):
            here, there = placed[a], placed[b]
            if here == there:
                continue
            left -= 1
            if left <= 0:
                break
            gain = costs[a][here] - costs[a][there] + costs[b][there] - costs[b][here]
            if b in near[a]:
                gain -= near[a][b] * (
                    distances[here][there]
                    + distances[there][here]
                    - distances[here][here]
                    - distances[there][there]
                )
            if gain <= least:
                continue
            if not (may(a, b) and may(b, a)):
                continue
            for one, old, new in ((a, here, there), (b, there, here)):
                placed[one] = new
                taken[old] -= loads[one].amount
                taken[new] += loads[one].amount
                for other, carried in near[one].items():
                    for place, row in enumerate(distances):
                        costs[other][place] += carried * (row[new] - row[old])
            gains = True
    return placed
