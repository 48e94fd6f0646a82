"""Which packed cores go to which place, so that the data between them has the shortest way: the
quadratic assignment of docs/operators.md. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, count, permutations
from math import inf

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
    used = sorted(set(placed))  # all else is left out: there may be many places
    rank = {place: at for at, place in enumerate(used)}
    fixed = [
        load if load.place is None else load._replace(place=rank[load.place]) for load in loads
    ]
    here = [rooms[place] for place in used]
    between = [[distances[a][b] for b in used] for a in used]
    best = _groups_moved([rank[place] for place in placed], fixed, here, traffic, between)
    return [used[place] for place in _cores_moved(best, fixed, here, traffic, between)]


def _groups_moved(
    placed: Sequence[int],
    loads: Sequence[Load],
    rooms: Sequence[Room],
    traffic: Traffic,
    distances: Distances,
) -> list[int]:
    """All orders of few groups; else exchanges of two while they gain."""
    group: list[list[Load]] = [[] for _ in rooms]
    for load, place in zip(loads, placed, strict=True):
        group[place].append(load)
    between: dict[tuple[int, int], float] = {}
    for (a, b), carried in traffic.items():
        pair = min(placed[a], placed[b]), max(placed[a], placed[b])
        between[pair] = between.get(pair, 0) + carried

    def holds(one: int, place: int) -> bool:
        return place == one or (
            rooms[place].holds(group[one])
            and all(load.place in (None, place) for load in group[one])
        )

    goal = list(range(len(rooms)))
    if len(rooms) <= ALL_ORDERS:
        orders = (order for order in permutations(goal) if all(map(holds, count(), order)))
        best = min(orders, key=lambda order: cost(between, order, distances))
        goal = list(best)
    else:
        _exchange(
            goal, between, distances, lambda a, b: holds(a, goal[b]) and holds(b, goal[a]), inf
        )
    return [goal[place] for place in placed]


def _cores_moved(
    placed: list[int],
    loads: Sequence[Load],
    rooms: Sequence[Room],
    traffic: Traffic,
    distances: Distances,
) -> list[int]:
    """Cores exchange their places in pairs while that gains."""
    taken = [0.0] * len(rooms)
    for load, place in zip(loads, placed, strict=True):
        taken[place] += load.amount

    def booked(a: int, b: int) -> bool:
        """Books the exchange of two cores, if both places take it."""
        here, there, more = placed[a], placed[b], loads[b].amount - loads[a].amount
        fits = (
            loads[a].place in (None, there)
            and loads[b].place in (None, here)
            and rooms[here].takes(taken[here] + more)
            and rooms[there].takes(taken[there] - more)
        )
        if fits:
            taken[here] += more
            taken[there] -= more
        return fits

    _exchange(placed, traffic, distances, booked, PAIRS)
    return placed


def _exchange(
    placed: list[int],
    traffic: Traffic,
    distances: Distances,
    accepts: Callable[[int, int], bool],
    pairs: float,
) -> None:
    """Two exchange their places while that gains and `accepts`, which is asked last, takes it.
    Looks at `pairs` at most."""
    if len(distances) == 1:
        return
    near: list[dict[int, float]] = [{} for _ in placed]
    for (a, b), carried in traffic.items():
        near[a][b] = near[b][a] = carried
    costs = []  # of what each exchanges, from each place
    for one, links in enumerate(near):
        sums = [links.get(one, 0.0) * row[place] for place, row in enumerate(distances)]
        for other, carried in links.items():
            if other != one:
                row = distances[placed[other]]
                sums = [sum_ + carried * far for sum_, far in zip(sums, row, strict=True)]
        costs.append(sums)
    least = 1e-9 * max(cost(traffic, placed, distances), 1e-300)
    gains = True
    while gains and pairs > 0:
        gains = False
        for a, b in combinations(range(len(placed)), 2):
            here, there = placed[a], placed[b]
            if here == there:
                continue
            pairs -= 1
            if pairs <= 0:
                break
            gain = costs[a][here] - costs[a][there] + costs[b][there] - costs[b][here]
            if b in near[a]:
                gain -= near[a][b] * (
                    distances[here][there]
                    + distances[there][here]
                    - distances[here][here]
                    - distances[there][there]
                )
            if gain <= least or not accepts(a, b):
                continue
            for one, old, new in ((a, here, there), (b, there, here)):
                placed[one] = new
                for other, carried in near[one].items():
                    for place, row in enumerate(distances) if other != one else ():
                        costs[other][place] += carried * (row[new] - row[old])
            gains = True
