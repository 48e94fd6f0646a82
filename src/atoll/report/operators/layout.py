"""Where the operators of a graph stand: in columns, by the longest path to them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

_SWEEPS = 8


def columns(operators: Sequence[str], edges: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Every edge runs to a later column; those that exchange data are about level, so that few
    edges cross (Sugiyama's barycentres). The edges form no circle."""
    givers: dict[str, list[str]] = {one: [] for one in operators}
    takers: dict[str, list[str]] = {one: [] for one in operators}
    for giver, taker in edges:
        givers[taker].append(giver)
        takers[giver].append(taker)
    depth: dict[str, int] = {}
    waits = {one: len(givers[one]) for one in operators}
    ready = [one for one in operators if not waits[one]]
    for one in ready:  # grows while it is read
        depth[one] = max((depth[giver] + 1 for giver in givers[one]), default=0)
        for taker in takers[one]:
            waits[taker] -= 1
            if not waits[taker]:
                ready.append(taker)
    found: list[list[str]] = [[] for _ in range(max(depth.values()) + 1)]
    for one in operators:
        found[depth[one]].append(one)
    rows = heights(found)
    for sweep in range(_SWEEPS):
        for column in found if sweep % 2 == 0 else reversed(found):
            near = givers if sweep % 2 == 0 else takers
            first = min(rows[one] for one in column)
            column.sort(key=lambda one: fmean([rows[other] for other in near[one]] or [rows[one]]))
            rows.update((one, first + row) for row, one in enumerate(column))
    return found


def heights(columns: Sequence[Sequence[str]]) -> dict[str, float]:
    """The row of each operator; columns are centred."""
    tallest = max(map(len, columns))
    return {
        one: row + (tallest - len(column)) / 2
        for column in columns
        for row, one in enumerate(column)
    }
