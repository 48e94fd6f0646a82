"""Packs cores into the fewest places: vector packing by cores and one amount, the memory bandwidth
of nodes or the cache of chiplets. The second bin packing of query-plan-deployment-poster. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import inf

from atoll.operators.loads import ROUND, Core, Load, Room
from atoll.operators.overfull import repaired

STEPS = 20_000  # of the exact search for one set of places


def fewest(rooms: Sequence[Room], cores: int, amount: float) -> int:
    """A bound: that number of cores, which together take this, needs as many places."""
    needed = 1
    for wanted, have in (
        (cores, [room.cores for room in rooms]),
        (amount / ROUND, [room.amount for room in rooms]),
    ):
        given = accumulate(sorted(have, reverse=True))
        needed = max(needed, 1 + sum(total < wanted for total in given))
    return needed


def fit(loads: Sequence[Load], rooms: Sequence[Room]) -> tuple[list[int] | None, int]:
    """For each load its room, so that all rooms hold, None if none was found; and how many steps
    that took.

    Those that are hardest to place come first, each into the room that it suits best: where its
    needs point the same way as what is left ('best dot product'). Then a search goes back, for at
    most STEPS steps, so small cases are exact. If these are not enough, exchanges go on.
    """
    if fewest(rooms, len(loads), sum(load.amount for load in loads)) > len(rooms):
        return None, 1
    order = sorted(range(len(loads)), key=lambda one: _hardness(loads[one], rooms))
    left = [[room.cores, room.amount * ROUND] for room in rooms]
    # An amount that a room lacks, or has without end, does not tell rooms apart.
    whole = [(room.cores, room.amount or inf) for room in rooms]

    def suits(place: int, amount: float) -> float:
        cores, most = whole[place]
        fit_ = amount * left[place][1] / most / most if most < inf else 0
        return left[place][0] / cores / cores + fit_

    def choices(load: Load) -> Iterator[int]:
        """The rooms that hold it, the best first, and of rooms with the same left only one."""
        places = range(len(rooms)) if load.place is None else (load.place,)
        tried = set()
        for place in sorted(places, key=lambda place: -suits(place, load.amount)):
            cores, amount = left[place]
            if cores >= 1 and amount >= load.amount and (cores, amount) not in tried:
                tried.add((cores, amount))
                yield place

    def take(place: int, load: Load, sign: int) -> None:
        left[place][0] -= sign
        left[place][1] -= sign * load.amount

    found: list[int] = []
    open_ = [choices(loads[order[0]])]
    most = STEPS + len(loads)
    for step in range(1, most):
        place = next(open_[-1], None)
        if place is None:
            open_.pop()
            if not open_:
                return None, step
            take(found[-1], loads[order[len(found) - 1]], -1)
            found.pop()
            continue
        take(place, loads[order[len(found)]], 1)
        found.append(place)
        if len(found) == len(loads):
            by_load = dict(zip(order, found, strict=True))
            return [by_load[one] for one in range(len(loads))], step
        open_.append(choices(loads[order[len(found)]]))
    return _exchanged(loads, rooms), most


def _exchanged(loads: Sequence[Load], rooms: Sequence[Room]) -> list[int] | None:
    """Places that hold, by exchanges between those that do not."""
    cores = [Core(place, [one]) for one, place in enumerate(spread(loads, rooms))]
    found = repaired(loads, 1, rooms, len(loads), cores)
    placed = {one: core.place for core in found or () for one in core.units}
    return [placed[one] for one in range(len(loads))] if found else None


def _hardness(load: Load, rooms: Sequence[Room]) -> tuple[bool, float]:
    """What must be in one place comes first, then by the largest part of a room that it takes."""
    least = min((room.amount for room in rooms if room.amount), default=inf)
    return load.place is None, -load.amount / least


def spread(loads: Sequence[Load], rooms: Sequence[Room]) -> list[int]:
    """For each load a room with a free core, where the rooms cannot hold what the loads take
    besides: each goes where the largest part would be left. There are enough cores."""
    left = [[room.cores, room.amount] for room in rooms]

    def free(place: int) -> float:
        most = rooms[place].amount
        return left[place][1] / most if most < inf else 1.0

    found = [0] * len(loads)
    for one in sorted(range(len(loads)), key=lambda one: _hardness(loads[one], rooms)):
        load = loads[one]
        places = range(len(rooms)) if load.place is None else (load.place,)
        place = max(
            (place for place in places if left[place][0]), key=lambda place: (free(place), -place)
        )
        left[place][0] -= 1
        left[place][1] -= load.amount
        found[one] = place
    return found
