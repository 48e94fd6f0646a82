"""Packs cores into the fewest places, nodes or chiplets: vector packing by cores, memory bandwidth
and cache. The second bin packing of query-plan-deployment-poster. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf

STEPS = 20_000  # of the exact search for one set of places


@dataclass(frozen=True, slots=True)
class Load:
    """What a core takes of the place where it is."""

    memory_gbs: float = 0
    cache_bytes: float = 0
    place: int | None = None  # where it must be; an index


@dataclass(frozen=True, slots=True, order=True)
class Room:
    """What a place has."""

    cores: int
    memory_gbs: float = inf
    cache_bytes: float = inf

    def holds(self, loads: Sequence[Load]) -> bool:
        total = Load(
            sum(load.memory_gbs for load in loads), sum(load.cache_bytes for load in loads)
        )
        return len(loads) <= self.cores and self.takes(total)

    def takes(self, total: Load) -> bool:
        """Whether its memory and cache are enough."""
        memory = total.memory_gbs <= self.memory_gbs * _ROUND
        return memory and total.cache_bytes <= self.cache_bytes * _ROUND


_ROUND = 1 + 1e-9  # sums of figures that fill a place exactly


def fewest(rooms: Sequence[Room], cores: int, memory_gbs: float, cache_bytes: float) -> int:
    """A bound: that number of cores, which together take this, needs as many places."""
    wants = (
        (float(cores), [float(room.cores) for room in rooms]),
        (memory_gbs / _ROUND, [room.memory_gbs for room in rooms]),
        (cache_bytes / _ROUND, [room.cache_bytes for room in rooms]),
    )
    needed = 1
    for wanted, have in wants:
        given = accumulate(sorted(have, reverse=True))
        needed = max(needed, 1 + sum(total < wanted for total in given))
    return needed


def fit(loads: Sequence[Load], rooms: Sequence[Room]) -> list[int] | None:
    """For each load its room, so that all rooms hold; None: none was found.

    Those that are hardest to place come first, each into the room that it suits best: where its
    needs point the same way as what is left ('best dot product'). Then a search goes back, for at
    most STEPS steps, so small cases are exact.
    """
    if sum(room.cores for room in rooms) < len(loads):
        return None
    order = sorted(range(len(loads)), key=lambda one: _hardness(loads[one], rooms))
    left = [[room.cores, room.memory_gbs * _ROUND, room.cache_bytes * _ROUND] for room in rooms]

    def suits(place: int, load: Load) -> float:
        wants = (1, load.memory_gbs, load.cache_bytes)
        whole = (rooms[place].cores, rooms[place].memory_gbs, rooms[place].cache_bytes)
        return sum(
            want * free / all_ / all_
            for want, free, all_ in zip(wants, left[place], whole, strict=True)
            if 0 < all_ < inf
        )

    def choices(load: Load) -> Iterator[int]:
        """The rooms that hold it, the best first, and of rooms with the same left only one."""
        places = range(len(rooms)) if load.place is None else (load.place,)
        tried = set()
        for place in sorted(places, key=lambda place: -suits(place, load)):
            cores, memory_gbs, cache_bytes = left[place]
            holds = cores >= 1 and memory_gbs >= load.memory_gbs
            if holds and cache_bytes >= load.cache_bytes and tuple(left[place]) not in tried:
                tried.add(tuple(left[place]))
                yield place

    def take(place: int, load: Load, sign: int) -> None:
        left[place][0] -= sign
        left[place][1] -= sign * load.memory_gbs
        left[place][2] -= sign * load.cache_bytes

    found: list[int] = []
    open_ = [choices(loads[order[0]])]
    for _ in range(STEPS + len(loads)):
        place = next(open_[-1], None)
        if place is None:
            open_.pop()
            if not open_:
                return None
            take(found[-1], loads[order[len(found) - 1]], -1)
            found.pop()
            continue
        take(place, loads[order[len(found)]], 1)
        found.append(place)
        if len(found) == len(loads):
            by_load = dict(zip(order, found, strict=True))
            return [by_load[one] for one in range(len(loads))]
        open_.append(choices(loads[order[len(found)]]))
    return None


def _hardness(load: Load, rooms: Sequence[Room]) -> tuple[bool, float]:
    """What must be in one place comes first, then by the largest part of a room that it takes."""
    parts = [
        want / all_
        for room in rooms
        for want, all_ in ((load.memory_gbs, room.memory_gbs), (load.cache_bytes, room.cache_bytes))
        if all_
    ]
    return load.place is None, -max(parts)


def spread(loads: Sequence[Load], rooms: Sequence[Room]) -> list[int]:
    """For each load a room with a free core, where the rooms cannot hold what the loads take
    besides: each goes where the largest part would be left. There are enough cores."""
    left = [[room.cores, room.memory_gbs, room.cache_bytes] for room in rooms]

    def free(place: int) -> float:
        whole = (rooms[place].memory_gbs, rooms[place].cache_bytes)
        return min(
            (part / all_ for part, all_ in zip(left[place][1:], whole, strict=True) if all_ < inf),
            default=1.0,
        )

    found = [0] * len(loads)
    for one in sorted(range(len(loads)), key=lambda one: _hardness(loads[one], rooms)):
        load = loads[one]
        places = range(len(rooms)) if load.place is None else (load.place,)
        place = max(
            (place for place in places if left[place][0]), key=lambda place: (free(place), -place)
        )
        left[place][0] -= 1
        left[place][1] -= load.memory_gbs
        left[place][2] -= load.cache_bytes
        found[one] = place
    return found
