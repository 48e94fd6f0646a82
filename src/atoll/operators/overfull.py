"""Repairs a packing with overfull cores by exchanges between cores: tabu search. Pure.

Where few units fit a core, exact search tries the same few pairs for long; exchanges find at once
which units to put together.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

ROUNDS = 300
TRIES = 400_000  # exchanges that are looked at


def repaired(
    sizes: Sequence[float],
    capacities: Sequence[float],
    most: Sequence[int],
    cores: Sequence[Sequence[int]],
) -> list[list[int]] | None:
    """The units in the same cores, none of them overfull; None: not found.

    `capacities`, `most`: of each core, of the sum of the sizes and of the number of units. Each
    round the fullest core and another exchange up to two units each, so that least is over the
    capacity. A unit that left a core does not return to it for some rounds, so the search does not
    go round in circles.
    """
    held = [list(core) for core in cores]
    loads = [sum(sizes[one] for one in core) for core in held]
    barred: dict[tuple[int, int], int] = {}  # unit and core -> until which round
    tries = TRIES
    for round_ in range(ROUNDS):
        fullest = max(range(len(held)), key=lambda core: loads[core] - capacities[core])
        if loads[fullest] <= capacities[fullest]:
            return held
        if tries < 0:
            return None
        best: tuple[float, int, tuple[int, ...], tuple[int, ...]] | None = None
        givable = _parts(held[fullest], sizes)
        for other, (load, capacity) in enumerate(zip(loads, capacities, strict=True)):
            if other == fullest:
                continue
            free = most[other] - len(held[other])
            free_here = most[fullest] - len(held[fullest])
            takable = _parts(held[other], sizes)
            tries -= len(givable) * len(takable)
            for takes, taken in takable:
                for gives, given in givable:
                    more = len(gives) - len(takes)
                    if given <= taken or not -free_here <= more <= free:
                        continue
                    over = max(0, loads[fullest] - given + taken - capacities[fullest])
                    over += max(0, load + given - taken - capacity) - max(0, load - capacity)
                    if best is not None and over >= best[0]:
                        continue
                    if any(barred.get((one, other), 0) > round_ for one in gives):
                        continue
                    if any(barred.get((one, fullest), 0) > round_ for one in takes):
                        continue
                    best = over, other, gives, takes
        if best is None:
            barred.clear()
            continue
        _, other, gives, takes = best
        until = round_ + 6 + 7 * round_ % 11  # different lengths, so that no cycle fits them
        for ones, source, goal in ((gives, fullest, other), (takes, other, fullest)):
            for one in ones:
                held[source].remove(one)
                held[goal].append(one)
                barred[one, source] = until
        for core in (fullest, other):
            loads[core] = sum(sizes[one] for one in held[core])
    return None


def _parts(core: Sequence[int], sizes: Sequence[float]) -> list[tuple[tuple[int, ...], float]]:
    """Up to two units of a core, with the sum of their sizes."""
    return [
        (part, sum(sizes[one] for one in part))
        for count in range(3)
        for part in combinations(core, count)
    ]
