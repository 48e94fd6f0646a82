"""The fewest cores and nodes, exactly: integer programs for HiGHS. What the planner is compared
with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import highspy

from atoll.operators.loads import Load, Room


def fewest_cores(sizes: Sequence[int], capacity: int) -> int:
    """Sizes are whole numbers from 1 to the capacity, which is small. The arc-flow model of
    Valerio de Carvalho (Annals of Operations Research 86, 1999): a core is a path from 0, and each
    arc on it an item."""
    counts = Counter(sizes)
    ends = {0}
    arcs: set[tuple[int, int]] = set()
    for size in sorted(counts, reverse=True):
        front = set(ends)
        for _ in range(counts[size]):  # larger items come first on a path
            step = {(end, end + size) for end in front if end + size <= capacity}
            arcs |= step
            front = {end for _, end in step}
            ends |= front
    model = highspy.Highs()
    model.silent()
    cores = model.addIntegral(lb=0, obj=1)
    flow = {arc: model.addIntegral(lb=0, ub=counts[arc[1] - arc[0]]) for arc in sorted(arcs)}
    for end in ends - {0}:  # what comes in goes on, or the path ends there
        model.addConstr(
            sum(flow[arc] for arc in arcs if arc[1] == end)
            - sum(flow[arc] for arc in arcs if arc[0] == end)
            >= 0
        )
    model.addConstr(cores == sum(flow[arc] for arc in arcs if arc[0] == 0))
    for size, count in counts.items():
        model.addConstr(sum(flow[arc] for arc in arcs if arc[1] - arc[0] == size) >= count)
    model.minimize()
    assert model.getModelStatus() == highspy.HighsModelStatus.kOptimal
    found: int = round(model.getObjectiveValue())
    return found


def fewest_places(loads: Sequence[Load], rooms: Sequence[Room]) -> int | None:
    """None: the rooms do not hold the loads."""
    model = highspy.Highs()
    model.silent()
    used = [model.addBinary(obj=1) for _ in rooms]
    at = [[model.addBinary() for _ in rooms] for _ in loads]
    for row in at:
        model.addConstr(sum(row) == 1)
    for place, room in enumerate(rooms):
        held = [row[place] for row in at]
        model.addConstr(sum(held) <= room.cores * used[place])
        memory = [load.amount * one for load, one in zip(loads, held, strict=True)]
        model.addConstr(sum(memory) <= room.amount * used[place])
    model.minimize()
    if model.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
        return None
    assert model.getModelStatus() == highspy.HighsModelStatus.kOptimal
    found: int = round(model.getObjectiveValue())
    return found


def fewest_together(
    loads: Sequence[Load], capacity: int, rooms: Sequence[Room]
) -> tuple[int, int] | None:
    """The fewest cores, and the fewest places with as many, of units that no core and no place is
    too small for. None: there is no way."""
    model = highspy.Highs()
    model.silent()
    places = [model.addBinary(obj=1) for _ in rooms]
    cores = [
        [model.addBinary(obj=1 + len(rooms)) for _ in range(min(room.cores, len(loads)))]
        for room in rooms
    ]
    on = [[[model.addBinary() for _ in row] for row in cores] for _ in loads]
    for load, rows in zip(loads, on, strict=True):
        model.addConstr(sum(one for row in rows for one in row) == 1)
        for place, row in enumerate(rows):
            if load.place not in (None, place):
                model.addConstr(sum(row) == 0)
    for place, room in enumerate(rooms):
        amounts = [load.amount * sum(rows[place]) for load, rows in zip(loads, on, strict=True)]
        model.addConstr(sum(amounts) <= room.amount)
        for at, core in enumerate(cores[place]):
            held = [load.size * rows[place][at] for load, rows in zip(loads, on, strict=True)]
            model.addConstr(sum(held) <= capacity * core)
            model.addConstr(core <= (cores[place][at - 1] if at else places[place]))
    model.minimize()
    if model.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
        return None
    assert model.getModelStatus() == highspy.HighsModelStatus.kOptimal
    chosen = model.getSolution().col_value
    used = [chosen[core.index] for row in cores for core in row]
    return round(sum(used)), round(sum(chosen[place.index] for place in places))
