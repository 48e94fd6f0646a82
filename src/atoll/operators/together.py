"""Packs units into cores and nodes at once, where cores that were packed alone take more memory
bandwidth than the nodes have. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heapreplace
from math import inf

from atoll.operators.loads import Core, Load, Room
from atoll.operators.nodes import fewest
from atoll.operators.overfull import repaired

SETS = 8  # of fewer rooms that are tried


def together(
    loads: Sequence[Load], capacity: int, rooms: Sequence[Room], packed: Sequence[Core]
) -> list[Core] | None:
    """The units of `packed` in as many cores, or as few more as we find, so that no core and no
    room has too much; None: not found."""
    if not _possible(loads, rooms):
        return None
    most = min(sum(room.cores for room in rooms), len(loads))
    count = len(packed)
    found = _in(loads, capacity, rooms, packed, most) if most > count else None
    while count < most:
        if found is None:
            return None  # fewer cores are harder
        if fewer := _in(loads, capacity, rooms, packed, count):
            return fewer
        count += 1 + count // 32
    return found or _in(loads, capacity, rooms, packed, most)


def on_fewer(
    loads: Sequence[Load],
    capacity: int,
    rooms: Sequence[Room],
    count: int,
    sets: Iterable[tuple[int, ...]],
) -> list[Core] | None:
    """The units in that number of cores of the first set of rooms for which we find a way."""
    tried: set[tuple[Room, ...]] = set()  # sets of the same rooms hold the same
    fixed = {load.place for load in loads}
    for places in sets:
        open_ = [room if at in places else Room(0, 0) for at, room in enumerate(rooms)]
        kind = tuple(sorted(rooms[at] for at in places if at not in fixed))
        if (
            kind in tried
            or sum(room.cores for room in open_) < count
            or not _possible(loads, open_)
        ):
            continue
        if len(tried) == SETS:
            break
        tried.add(kind)
        if found := _in(loads, capacity, open_, (), count):
            return found
    return None


def _possible(loads: Sequence[Load], rooms: Sequence[Room]) -> bool:
    """Whether rooms have what must be there, one room any load's amount, and all together all's."""
    fixed = [0.0] * len(rooms)
    for load in loads:
        if load.place is not None:
            fixed[load.place] += load.amount
    return (
        all(map(Room.takes, rooms, fixed))
        and any(room.takes(max(load.amount for load in loads)) for room in rooms)
        and fewest(rooms, 1, sum(load.amount for load in loads)) <= len(rooms)
    )


def _in(
    loads: Sequence[Load],
    capacity: int,
    rooms: Sequence[Room],
    packed: Sequence[Core],
    count: int,
) -> list[Core] | None:
    """From cores that were packed for few bytes between them; for many units, spread evenly."""
    for start in (packed, _spread(loads, capacity, rooms, count)):
        if start and (found := repaired(loads, capacity, rooms, count, start)):
            return found
    return None


def _spread(
    loads: Sequence[Load], capacity: int, rooms: Sequence[Room], count: int
) -> list[Core] | None:
    """The units on `count` cores, those that take most first: each in the room that is emptiest in
    what it takes ('best dot product'), there on the emptiest core. Some may be overfull. None: a
    room has no core for what must be there. Takes n log n for each room."""
    cores: list[Core] = []
    emptiest: list[list[tuple[int, int]]] = [[] for _ in rooms]  # heaps: how full, which core
    for place in _shares(loads, rooms, count):
        emptiest[place].append((0, len(cores)))
        cores.append(Core(place, []))
    sizes, amounts = [0] * len(rooms), [0.0] * len(rooms)
    whole = [
        ((capacity * len(own)) ** 2, (room.amount or 1) ** 2)
        for own, room in zip(emptiest, rooms, strict=True)
    ]
    least = min((room.amount for room in rooms if room.amount), default=inf)

    def hardness(one: int) -> tuple[bool, float]:
        size, amount = loads[one].size / capacity, loads[one].amount / least
        return loads[one].place is None, -max(size, amount)

    for one in sorted(range(len(loads)), key=hardness):
        load = loads[one]

        def filled(place: int, load: Load = load) -> tuple[float, int]:
            size, amount = sizes[place] + load.size, amounts[place] + load.amount
            return load.size * size / whole[place][0] + load.amount * amount / whole[place][
                1
            ], place

        places = range(len(rooms)) if load.place is None else (load.place,)
        open_ = [filled(place) for place in places if emptiest[place]]
        if not open_:
            return None
        _, place = min(open_)
        sizes[place] += load.size
        amounts[place] += load.amount
        size, core = emptiest[place][0]
        heapreplace(emptiest[place], (size + load.size, core))
        cores[core].units.append(one)
    return [core for core in cores if core.units]


def _shares(loads: Sequence[Load], rooms: Sequence[Room], count: int) -> Iterator[int]:
    """The room of each of `count` cores: rooms that can take more of the amount have more."""
    total = sum(load.amount for load in loads)
    parts = [
        min(room.amount / total if total else 1, room.cores / count, 1) or 1e-9 for room in rooms
    ]
    heap = [(1 / part, place, 1) for place, part in enumerate(parts) if rooms[place].cores]
    heapify(heap)
    for _ in range(count):
        _, place, own = heap[0]
        yield place
        if own < rooms[place].cores:
            heapreplace(heap, ((own + 1) / parts[place], place, own + 1))
        else:
            heappop(heap)
