"""Graphs at other rates, and several graphs as one: what a mix of queries uses together. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ValidationError

from atoll.errors import UsageError
from atoll.schema.operator_graph import Activity, Known, OperatorGraph, Rate


def at_rate(graph: OperatorGraph, value: float) -> OperatorGraph:
    """The graph at another rate of the same unit: all vectors and edges scale with it.

    Shares of time in which neighbours are both busy do not, so they are left out. Raises UsageError
    if the graph does not say at which rate it holds, and for a rate beyond all machines.
    """
    if graph.rate is None:
        raise UsageError("the graph does not say at which rate it holds, so it fits no other")
    if value == graph.rate.value:
        return graph
    factor = value / graph.rate.value
    operators = (
        one.model_copy(update={"activity": _scaled(one.activity, factor)})
        for one in graph.operators
    )
    edges = (
        edge.model_copy(update={"bytes_per_s": _times(edge.bytes_per_s, factor)})
        for edge in graph.edges
    )
    try:
        changed = {
            "rate": Rate(value=value, unit=graph.rate.unit),
            "operators": tuple(operators),
            "edges": tuple(edges),
            "overlaps": (),
        }
    except ValidationError:
        raise UsageError(
            f"at {value:g} {graph.rate.unit} the figures are beyond any machine; give another rate"
        ) from None
    return graph.model_copy(update=changed)


def _scaled(activity: Activity | None, factor: float) -> Activity | None:
    if activity is None:
        return None
    changed = {
        name: _times(known, factor)
        for name, known in (
            ("duty", activity.duty),
            ("peak", activity.peak),
            ("memory_gbs", activity.memory_gbs),
        )
    }
    return activity.model_copy(update=changed)


def _times(known: Known | None, factor: float) -> Known | None:
    return known and Known(value=known.value * factor, source=known.source, how=known.how)


def mixed(graphs: Mapping[str, OperatorGraph]) -> OperatorGraph:
    """Graphs that run at one time, as one: ids become 'NAME/ID'. A single graph stays as it is."""
    if len(graphs) == 1:
        return next(iter(graphs.values()))
    every = graphs.values()
    engines = {graph.engine for graph in every}
    rates = [graph.rate for graph in every]
    units = {rate.unit if rate else None for rate in rates}
    whole = sum(rate.value for rate in rates if rate)
    (unit,) = units if len(units) == 1 else (None,)

    return OperatorGraph(
        engine=engines.pop() if len(engines) == 1 else "",
        rate=Rate(value=whole, unit=unit) if unit else None,
        operators=tuple(
            one.model_copy(update={"id": f"{name}/{one.id}", "name": one.name or one.id})
            for name, graph in graphs.items()
            for one in graph.operators
        ),
        edges=tuple(
            edge.model_copy(
                update={"giver": f"{name}/{edge.giver}", "taker": f"{name}/{edge.taker}"}
            )
            for name, graph in graphs.items()
            for edge in graph.edges
        ),
        overlaps=tuple(
            one.model_copy(update={"giver": f"{name}/{one.giver}", "taker": f"{name}/{one.taker}"})
            for name, graph in graphs.items()
            for one in graph.overlaps
        ),
        notes=tuple(dict.fromkeys(note for graph in every for note in graph.notes)),
    )
