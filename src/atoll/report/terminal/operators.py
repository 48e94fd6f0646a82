"""Graphs of operators and placements, for a terminal. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from atoll.report.numbers import number
from atoll.report.table import Row, Table, without_blank_columns
from atoll.report.terminal.grid import Fitted
from atoll.report.terminal.lines import wrapped
from atoll.schema.operator_graph import Known, OperatorGraph, Source
from atoll.schema.placement import PlacedUnit, Placement
from atoll.schema.size import decimal_size, gib, percent
from atoll.schema.text import plural, printable

_NONE = "–"


def graph_table(graph: OperatorGraph) -> Fitted:
    """A row for each operator."""
    takers: dict[str, list[str]] = {}
    for edge in graph.edges:
        takers.setdefault(edge.giver, []).append(edge.taker)
    rows: list[Row] = []
    for one in graph.operators:
        activity = one.activity
        cache = activity.cache_bytes if activity else None
        rows.append(
            (
                one.id,
                one.name or _NONE,
                one.kind.value,
                _known(activity.duty if activity else None),
                _known(activity.peak if activity else None),
                _known(activity.memory_gbs if activity else None),
                _NONE if cache is None else gib(cache),
                _NONE if one.node is None else str(one.node),
                ", ".join(takers.get(one.id, [])) or _NONE,
            )
        )
    columns = ("operator", "name", "kind", "duty", "peak", "GB/s", "cache", "node", "gives to")
    table = _table(columns, rows)
    words = ("operator", "name", "kind", "gives to")
    return Fitted(table, words=words, labels=("operator",), styles={}, breaking=("gives to",))


def placement_table(placement: Placement) -> Fitted:
    """A row for each core: its load, and the operators on it."""
    on: dict[int, list[str]] = {}
    for unit in placement.units:
        on.setdefault(unit.cpu, []).append(unit_name(unit))
    rows: list[Row] = [
        (
            str(core.cpu),
            str(core.node),
            _NONE if core.chiplet is None else str(core.chiplet),
            _NONE if core.duty is None else percent(core.duty),
            _NONE if core.memory_gbs is None else number(core.memory_gbs),
            ", ".join(on.get(core.cpu, [])) or _NONE,
        )
        for core in placement.cores
    ]
    columns = ("CPU", "node", "chiplet", "load", "GB/s", "operators")
    table = _table(columns, rows)
    return Fitted(table, words=("operators",), labels=(), styles={}, breaking=("operators",))


def units_table(placement: Placement) -> Fitted:
    """A row for each unit: what it needs, and why it got its core."""
    rows: list[Row] = [
        (
            unit_name(unit),
            str(unit.cpu),
            _NONE if unit.duty is None else percent(unit.duty),
            _NONE if unit.peak is None else percent(unit.peak),
            _NONE if unit.memory_gbs is None else number(unit.memory_gbs),
            unit.reason,
        )
        for unit in placement.units
    ]
    columns = ("unit", "CPU", "duty", "peak", "GB/s", "why there")
    table = _table(columns, rows)
    words = ("unit", "why there")
    return Fitted(table, words=words, labels=(), styles={}, breaking=words)


def placement_text(placement: Placement, width: int) -> str:
    """Its size, whether less would do, and what the figures leave open, after the tables."""
    cores, nodes, bound = len(placement.cores), len(placement.nodes), placement.bound
    if bound is None:
        lines = [f"{placement.deployment}: {plural(cores, 'core')}, {plural(nodes, 'node')}"]
    else:
        lines = [
            f"{against(cores, bound.cores, 'core')}: {bound.reason}",
            against(nodes, bound.nodes, "node"),
        ]
    if placement.crossing_bytes_per_s is not None and nodes > 1:
        lines.append(f"{decimal_size(int(placement.crossing_bytes_per_s))}/s between nodes")
    lines += [f"warning: {warning}" for warning in placement.warnings]
    return "\n".join(wrapped(line, width) for line in lines)


def against(count: int, least: int, noun: str) -> str:
    """A number, and the bound below it."""
    size = plural(count, noun)
    if count > least:
        return f"{size}; at least {least}"
    return size if count == 1 else f"{size}; fewer than {count} cannot do"


def _table(columns: tuple[str, ...], rows: Sequence[Row]) -> Table:
    """Names are the engine's or the user's."""
    shown = [tuple(map(printable, row)) for row in rows]
    return without_blank_columns(Table("", columns, shown))


def unit_name(unit: PlacedUnit) -> str:
    name = "+".join(unit.operators)
    return f"{name} #{unit.replica + 1}" if unit.replicas > 1 else name


def _known(figure: Known | None) -> str:
    if figure is None:
        return _NONE
    return ("~" if figure.source is Source.ESTIMATED else "") + number(figure.value)
