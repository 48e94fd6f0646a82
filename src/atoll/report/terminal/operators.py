"""Graphs of operators and placements, for a terminal. Pure."""

from __future__ import annotations

from atoll.report.numbers import number
from atoll.report.table import Row, Table, without_blank_columns
from atoll.report.terminal.grid import Fitted
from atoll.schema.operator_graph import Known, OperatorGraph, Source
from atoll.schema.placement import Placement
from atoll.schema.size import gib, percent
from atoll.schema.text import plural

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
                " ".join(takers.get(one.id, [])) or _NONE,
            )
        )
    columns = ("operator", "name", "kind", "duty", "peak", "GB/s", "cache", "node", "gives to")
    table = without_blank_columns(Table("", columns, rows))
    words = ("operator", "name", "kind", "gives to")
    return Fitted(table, words=words, labels=("operator",), styles={}, breaking=("gives to",))


def graph_text(graph: OperatorGraph) -> str:
    """What the whole graph is, and how its figures are known, after the table."""
    duties = [one.activity.duty for one in graph.operators if one.activity]
    at = f" at {number(graph.rate.value)} {graph.rate.unit}" if graph.rate else ""
    lines = [
        f"{plural(len(graph.operators), 'operator')}, {plural(len(graph.edges), 'edge')}; "
        f"{number(sum(duty.value for duty in duties))} cores busy on average{at}"
    ]
    if any(duty.source is Source.ESTIMATED for duty in duties):
        lines.append("~ estimated from other figures")
    lines += [f"note: {note}" for note in graph.notes]
    return "\n".join(lines)


def placement_table(placement: Placement) -> Fitted:
    """A row for each core: its load, and the operators on it."""
    on: dict[int, list[str]] = {}
    for unit in placement.units:
        name = "+".join(unit.operators)
        if unit.replicas > 1:
            name += f"#{unit.replica}"
        on.setdefault(unit.cpu, []).append(name)
    rows: list[Row] = [
        (
            str(core.cpu),
            str(core.node),
            _NONE if core.chiplet is None else str(core.chiplet),
            percent(core.duty),
            _NONE if core.memory_gbs is None else number(core.memory_gbs),
            " ".join(on.get(core.cpu, [])) or _NONE,
        )
        for core in placement.cores
    ]
    columns = ("CPU", "node", "chiplet", "load", "GB/s", "operators")
    table = without_blank_columns(Table("", columns, rows))
    return Fitted(table, words=("operators",), labels=(), styles={}, breaking=("operators",))


def placement_text(placement: Placement) -> str:
    """The deployment, its bound, and what limits it, after the table."""
    size = f"{plural(len(placement.cores), 'core')}, {plural(len(placement.nodes), 'node')}"
    return f"{placement.deployment}: {size}"


def _known(figure: Known | None) -> str:
    if figure is None:
        return _NONE
    return ("~" if figure.source is Source.ESTIMATED else "") + number(figure.value)
