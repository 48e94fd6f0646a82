"""Repairs a packing by exchanges between cores: tabu search. Pure.

A packing is broken if a core is overfull, or if the cores of a node move more bytes than it can.
Where few units fit a core, exact search tries the same few pairs for long; exchanges find at once
which units to put together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import comb
from typing import NamedTuple

from atoll.operators.loads import Core, Load, Room

ROUNDS = 300
TRIES = 150_000  # exchanges that are looked at
_SEVERAL = 12  # units of a core, up to which two are exchanged at once


class _Part(NamedTuple):
    """Some units of a core."""

    units: tuple[int, ...]
    size: int
    amount: float
    places: set[int | None]  # where they must be


def repaired(
    loads: Sequence[Load],
    capacity: int,
    rooms: Sequence[Room],
    count: int,
    cores: Sequence[Core],
) -> list[Core] | None:
    """The units of `cores`, no core filled above `capacity` and no room above its amount; None: not
    found. Uses at most `count` cores, and of each room at most its cores.

    Each round the worst core, or one of the worst room, and another exchange up to two units each,
    or all of them, so that least is too much. A unit that left a core does not return to it for
    some rounds, so the search does not go round in circles.
    """
    held = [Core(core.place, list(core.units)) for core in cores]
    for place, room in enumerate(rooms):
        free = min(room.cores, count) - sum(core.place == place for core in cores)
        held += [Core(place, []) for _ in range(free)]
    sizes = [sum(loads[one].size for one in core.units) for core in held]
    amounts = [0.0] * len(rooms)
    for core in held:
        amounts[core.place] += sum(loads[one].amount for one in core.units)
    barred: dict[tuple[int, int], int] = {}  # unit and core -> until which round
    tries = TRIES

    def over(core: int, size: int) -> float:
        """What is too much on a core, and `size` besides."""
        return max(0, sizes[core] + size - capacity) / capacity

    for round_ in range(ROUNDS):
        core_ = max(range(len(held)), key=sizes.__getitem__)
        room_ = max(range(len(rooms)), key=lambda place: rooms[place].over(amounts[place]))
        most = rooms[room_].over(amounts[room_])
        if not over(core_, 0) and not most:
            return [core for core in held if core.units]
        sources = [core_]
        if most > over(core_, 0):
            sources = [at for at, core in enumerate(held) if core.units and core.place == room_]
        used = [at for at, core in enumerate(held) if core.units]
        empty = {core.place: at for at, core in enumerate(held) if not core.units}
        targets = [*used, *empty.values()]
        counts = {at: _count(len(held[at].units)) for at in targets}
        tries -= sum(counts[at] for at in sources) * sum(counts.values())
        if tries < 0:
            return None
        parts = {at: _parts(held[at].units, loads) for at in targets}
        best: tuple[float, int, int, _Part, _Part] | None = None
        for here in sources:
            place = held[here].place
            for there, takable in parts.items():
                if there == here:
                    continue
                goal = held[there].place
                before = over(here, 0) + over(there, 0)
                if goal != place:
                    before += rooms[place].over(amounts[place]) + rooms[goal].over(amounts[goal])
                opens = not held[there].units and len(used) >= count
                for given in parts[here]:
                    if not given.places <= {goal}:
                        continue
                    if opens and len(given.units) < len(held[here].units):
                        continue
                    for taken in takable:
                        if not taken.places <= {place}:
                            continue
                        more = given.size - taken.size
                        after = over(here, -more) + over(there, more)
                        if goal != place:
                            amount = given.amount - taken.amount
                            after += rooms[place].over(amounts[place] - amount)
                            after += rooms[goal].over(amounts[goal] + amount)
                        if best is not None and after - before >= best[0]:
                            continue
                        if any(barred.get((one, there), 0) > round_ for one in given.units):
                            continue
                        if any(barred.get((one, here), 0) > round_ for one in taken.units):
                            continue
                        if given.units or taken.units:
                            best = after - before, here, there, given, taken
        if best is None:
            barred.clear()
            continue
        _, here, there, given, taken = best
        until = round_ + 6 + 7 * round_ % 11  # different lengths, so that no cycle fits them
        for part, source, target in ((given, here, there), (taken, there, here)):
            for one in part.units:
                held[source].units.remove(one)
                held[target].units.append(one)
                barred[one, source] = until
            sizes[source] -= part.size
            sizes[target] += part.size
        for place in {held[here].place, held[there].place}:  # again, so that no error adds up
            amounts[place] = sum(
                loads[one].amount for core in held if core.place == place for one in core.units
            )
    return None


def _parts(units: Sequence[int], loads: Sequence[Load]) -> list[_Part]:
    """Up to two units of a core, and all."""
    return [
        _Part(
            part,
            sum(loads[one].size for one in part),
            sum(loads[one].amount for one in part),
            {loads[one].place for one in part} - {None},
        )
        for part in _chosen(units)
    ]


def _count(units: int) -> int:
    """Of the parts of a core."""
    return 1 + units + (comb(units, 2) if units <= _SEVERAL else 0) + (units > 2)


def _chosen(units: Sequence[int]) -> Iterator[tuple[int, ...]]:
    most = 2 if len(units) <= _SEVERAL else 1
    for count in range(most + 1):
        yield from combinations(units, count)
    if len(units) > most:
        yield tuple(units)
