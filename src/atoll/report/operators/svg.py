"""A graph of operators as SVG, coloured by core and node, and the load of cores before and after.
Pure.

A core has a colour and the number of its CPU; the numbers are for readers who cannot tell the
colours apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from atoll.report.numbers import cut
from atoll.report.operators.layout import columns, heights
from atoll.report.svg.elements import WIDTH, Picture, document, heading, line, path, rect, text
from atoll.report.svg.palette import SERIES, SLOTS
from atoll.report.terminal.operators import unit_name
from atoll.schema.operator_graph import OperatorGraph
from atoll.schema.placement import PlacedUnit, Placement
from atoll.schema.size import percent
from atoll.schema.text import plural

_BOX, _TALL = 136.0, 34.0  # of an operator
_ACROSS, _DOWN = 56.0, 9.0  # between operators
_TOP = 62.0
_LETTERS = 16  # of a name in its box
_MARGIN = 16.0

_LEFT = 64.0  # of the bars
_HEIGHT = 150.0  # of a whole core
_NAMES = 92.0  # below the bars
_WIDEST_BAR = 22.0

_Bar = tuple[str, list[PlacedUnit]]  # a core: its name, what is on it


def graph_svg(graph: OperatorGraph, placement: Placement | None = None) -> Markup:
    """The graph, and with a placement the load of its cores, as a stand-alone SVG."""
    pictures = [graph_picture(graph, placement)]
    if placement is not None and placement.units:
        pictures += _before_and_after(placement, "operator", _alone(graph, placement))
    return document(pictures, pictures[0].name)


def placement_svg(placement: Placement) -> Markup:
    """The load of the cores, as a stand-alone SVG."""
    units: list[_Bar] = [(unit_name(one), [one]) for one in placement.units]
    pictures = _before_and_after(placement, "unit", units)
    return document(pictures, pictures[0].name)


class _Seat(NamedTuple):
    """Where an operator is: the colours of its core and node, and their names."""

    kind: str
    words: str
    nodes: frozenset[int]


def graph_picture(graph: OperatorGraph, placement: Placement | None) -> Picture:
    seats = _seats(placement) if placement else {}
    edges = [(edge.giver, edge.taker) for edge in graph.edges]
    found = columns([one.id for one in graph.operators], edges)
    row = heights(found)
    at = {
        one: (_MARGIN + place * (_BOX + _ACROSS), _TOP + row[one] * (_TALL + _DOWN))
        for place, column in enumerate(found)
        for one in column
    }
    parts = []
    for giver, taker in edges:
        (x1, y1), (x2, y2) = at[giver], at[taker]
        x1, y1, y2 = x1 + _BOX, y1 + _TALL / 2, y2 + _TALL / 2
        bend = _ACROSS * 0.7
        crosses = bool(seats) and seats[giver].nodes != seats[taker].nodes
        start, end = f"{x1:.1f} {y1:.1f}", f"{x2:.1f} {y2:.1f}"
        shape = f"M{start}C{x1 + bend:.1f} {y1:.1f} {x2 - bend:.1f} {y2:.1f} {end}"
        parts.append(path(shape, "mark" if crosses else "axis"))
    for one in graph.operators:
        x, y = at[one.id]
        seat = seats.get(one.id, _Seat("blank", "", frozenset()))
        duty = percent(one.activity.duty.value) if one.activity else "–"
        under = f"{duty} · {seat.words}" if seat.words else duty
        name = one.name or one.id
        parts.append(rect(x, y, _BOX, _TALL, seat.kind, f"{one.id} {name}: {under}", rx=4))
        parts.append(text(x + 6, y + 14, cut(name, _LETTERS), "small bold"))
        parts.append(text(x + 6, y + 28, cut(under, _LETTERS + 2), "small"))
    title = f"{plural(len(graph.operators), 'operator')}"
    if placement is not None:
        title += (
            f" on {plural(len(placement.cores), 'core')} of {plural(len(placement.nodes), 'node')}"
        )
    head = heading(title, _legend(placement))
    width = 2 * _MARGIN + len(found) * (_BOX + _ACROSS) - _ACROSS
    tall = max(map(len, found)) * (_TALL + _DOWN)
    return Picture(title, max(width, WIDTH), _TOP + tall + _MARGIN, "".join([head, *parts]))


def _legend(placement: Placement | None) -> str:
    if placement is None:
        return "share of a core that each is busy"
    words = "share of a core, and its CPU; the fill is the core"
    if len(placement.nodes) > 1:
        words += ", the frame the node; dashed: data between nodes"
    return words


def _seats(placement: Placement) -> dict[str, _Seat]:
    colour = _colours(placement)
    nodes = [node.node for node in placement.nodes]
    node_of = {core.cpu: core.node for core in placement.cores}
    units: dict[str, list[PlacedUnit]] = {}
    for unit in placement.units:
        for one in unit.operators:
            units.setdefault(one, []).append(unit)
    found = {}
    for one, own in units.items():
        node = node_of[own[0].cpu]
        frame = f"line l{1 + nodes.index(node) % SERIES}"
        words = "CPU " + ",".join(str(unit.cpu) for unit in own)
        all_nodes = frozenset(node_of[unit.cpu] for unit in own)
        found[one] = _Seat(f"s{colour[own[0].cpu]} {frame}", words, all_nodes)
    return found


def _colours(placement: Placement) -> dict[int, int]:
    return {core.cpu: at % SLOTS for at, core in enumerate(placement.cores)}


# ---- Load -----------------------------------------------------------------------------------


def _alone(graph: OperatorGraph, placement: Placement) -> list[_Bar]:
    """Each operator on a core of its own, in the colour that its core will have."""
    cpu = {one: unit.cpu for unit in placement.units for one in unit.operators}
    return [
        (one.id, [PlacedUnit(operators=(one.id,), cpu=cpu[one.id], duty=duty, reason="")])
        for one in graph.operators
        for duty in (one.activity.duty.value if one.activity else None,)
    ]


def _before_and_after(placement: Placement, each: str, before: Sequence[_Bar]) -> list[Picture]:
    """The load of each core. A bar of `before` is an operator or a unit."""
    free = 1 - placement.headroom
    on: dict[int, list[PlacedUnit]] = {core.cpu: [] for core in placement.cores}
    for unit in placement.units:
        on[unit.cpu].append(unit)
    after: list[_Bar] = [(f"CPU {cpu}", units) for cpu, units in on.items()]
    used = plural(len(after), "core")
    return [
        _bars(f"Before: a core for each of {plural(len(before), each)}", before, placement, free),
        _bars(f"After: {used}, {plural(len(placement.nodes), 'node')}", after, placement, free),
    ]


def _bars(
    title: str,
    bars: Sequence[_Bar],
    placement: Placement,
    free: float,
) -> Picture:
    """A bar for each core, of the units on it; the dashed line is what may be used."""
    colour = _colours(placement)
    top = max(1.0, *(sum(unit.duty or 0 for unit in units) for _, units in bars))
    bottom = _TOP + _HEIGHT
    pitch = min(_WIDEST_BAR, (WIDTH - _LEFT - _MARGIN) / len(bars))
    parts = [heading(title, f"load of each core; {percent(free)} of one may be used")]
    for share in (0, 0.5, 1):
        y = bottom - share / top * _HEIGHT
        parts.append(line(_LEFT, y, WIDTH - _MARGIN, y, "grid"))
        parts.append(text(_LEFT - 8, y + 4, percent(share), "soft small", "end"))
    for at, (name, units) in enumerate(bars):
        x, y = _LEFT + at * pitch, bottom
        for unit in units:
            tall = (unit.duty or 0) / top * _HEIGHT
            y -= tall
            duty = "not known" if unit.duty is None else percent(unit.duty)
            tip = f"{unit_name(unit)}: {duty}"
            parts.append(rect(x + 1, y, pitch - 2, tall, f"s{colour[unit.cpu]} thread", tip))
        if pitch >= 9:
            parts.append(text(x + pitch / 2 + 4, bottom + 8, cut(name, 15), "small", "end", -90))
    y = bottom - free / top * _HEIGHT
    parts.append(line(_LEFT, y, WIDTH - _MARGIN, y, "mark"))
    return Picture(title, WIDTH, bottom + _NAMES + 10, "".join(parts))
