"""Packed cores on places, nodes or chiplets: the fewest, of these the best connected, and each core
where its data has the shortest way. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from atoll.operators.assignment import Distances, Traffic, assign
from atoll.operators.loads import Load, Room
from atoll.operators.nodes import fewest, fit, spread
from atoll.operators.subgraph import Subset, Weights, densest

STEPS = 60_000  # of searches, for all sets of one number of places


@dataclass(frozen=True, slots=True)
class Mapped:
    places: list[int]  # of each core
    holds: bool  # False: the places have less bandwidth or cache than the cores take
    subset: Subset | None  # that was chosen; None: all


def map_cores(
    loads: Sequence[Load],
    rooms: Sequence[Room],
    traffic: Traffic,
    weights: Weights,
    distances: Distances,
    merit: Sequence[float],
    held: Sequence[int] | None = None,
) -> Mapped:
    """`merit` decides between places that are connected equally well; the places have enough cores,
    all together and each for the loads that must be there. `held`: places that hold, for loads for
    which the search may find none."""
    needed = frozenset(load.place for load in loads if load.place is not None)
    least = fewest(rooms, len(loads), sum(load.amount for load in loads))
    too_small: set[tuple[tuple[Room, int], ...]] = set()
    for size in range(max(least, len(needed)), len(rooms) + 1):
        left = STEPS
        for subset in densest(weights, size, needed, merit):
            # Subsets of the same rooms hold the same.
            kinds = ((rooms[one], one if one in needed else -1) for one in subset.places)
            kind = tuple(sorted(kinds))
            if kind in too_small:
                continue
            placed, steps = _fitted(loads, rooms, subset.places)
            if placed is not None:
                placed = assign(placed, loads, rooms, traffic, distances)
                return Mapped(placed, True, subset)
            too_small.add(kind)
            left -= steps
            if left <= 0:
                break
    if held is not None:
        return Mapped(assign(held, loads, rooms, traffic, distances), True, None)
    return Mapped(spread(loads, rooms), False, None)


def _fitted(
    loads: Sequence[Load], rooms: Sequence[Room], places: Sequence[int]
) -> tuple[list[int] | None, int]:
    at = {place: rank for rank, place in enumerate(places)}
    inside = [load if load.place is None else load._replace(place=at[load.place]) for load in loads]
    found, steps = fit(inside, [rooms[place] for place in places])
    return None if found is None else [places[rank] for rank in found], steps
