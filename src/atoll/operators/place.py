"""Operators on the fewest cores and nodes: all phases of query-plan-deployment-poster. Pure.

In this order: a placement is possible, has few cores, few nodes, and few bytes over distance.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from atoll.errors import UsageError
from atoll.operators.packed import packed
from atoll.operators.room import Place, place_of
from atoll.operators.units import Operators
from atoll.schema.machine import Machine
from atoll.schema.operator_graph import Known, OperatorGraph
from atoll.schema.placement import (
    Bound,
    Deployment,
    PlacedCore,
    PlacedNode,
    PlacedUnit,
    Placement,
)
from atoll.schema.profile import Profile
from atoll.schema.text import plural

HEADROOM = 0.2


def place(
    graph: OperatorGraph,
    machine: Machine,
    profile: Profile | None = None,
    headroom: float = HEADROOM,
    deployment: Deployment = "packed",
) -> Placement:
    """Which CPU runs which operators.

    packed: on the fewest cores and nodes, `headroom` of each core free. per-core: each operator on
    a core of its own. os: none is bound. Raises UsageError for operators in a circle, for a machine
    that is too small, and if the packed deployment lacks an operator's activity.
    """
    with _no_collection():
        return _placed(graph, place_of(machine, profile), headroom, deployment)


@contextmanager
def _no_collection() -> Iterator[None]:
    """A plan makes many objects and no circles of them, and each collection looks at the whole
    graph again: with 10,000 operators a quarter of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _placed(
    graph: OperatorGraph, room: Place, headroom: float, deployment: Deployment
) -> Placement:
    operators = Operators(graph)
    if deployment == "packed":
        units, bound, warnings = packed(operators, room, headroom)
        return _whole(graph, operators, room, deployment, units, headroom, bound, warnings)
    if deployment == "os":
        return _whole(graph, operators, room, deployment, [])
    return _whole(graph, operators, room, deployment, _one_each(graph, room))


def _one_each(graph: OperatorGraph, room: Place) -> list[PlacedUnit]:
    """In the graph's order on the cores in the machine's order; operators that must be on a node
    choose first."""
    missing = len(graph.operators) - len(room.cpus)
    if missing > 0:
        raise UsageError(
            f"an operator per core needs {plural(len(graph.operators), 'core')}, and only "
            f"{len(room.cpus)} may be used here: {missing} too few"
        )
    free = list(room.cpus)
    cpu_of: dict[str, int] = {}
    for one in sorted(graph.operators, key=lambda one: one.node is None):
        cpu = next((cpu for cpu in free if one.node in (None, room.cpus[cpu].node)), None)
        if cpu is None:
            raise UsageError(
                f"operator {one.id} must be on node {one.node}, where no core is left for it"
            )
        free.remove(cpu)
        cpu_of[one.id] = cpu
    return [
        PlacedUnit(
            operators=(one.id,),
            cpu=cpu_of[one.id],
            duty=_value(one.activity.duty if one.activity else None),
            peak=_value(one.activity.peak if one.activity else None),
            memory_gbs=_value(one.activity.memory_gbs if one.activity else None),
            reason="a core of its own",
        )
        for one in graph.operators
    ]


def _value(known: Known | None) -> float | None:
    return None if known is None else known.value


def _whole(
    graph: OperatorGraph,
    operators: Operators,
    room: Place,
    deployment: Deployment,
    units: Sequence[PlacedUnit],
    headroom: float = 0,
    bound: Bound | None = None,
    warnings: Sequence[str] = (),
) -> Placement:
    """The placement of these units; without any: all CPUs."""
    on: dict[int, list[PlacedUnit]] = {}
    for unit in units:
        on.setdefault(unit.cpu, []).append(unit)
    cores = [
        PlacedCore(
            cpu=cpu,
            chiplet=room.cpus[cpu].chiplet,
            node=room.cpus[cpu].node,
            duty=_sum(unit.duty for unit in on.get(cpu, ())),
            memory_gbs=_sum(unit.memory_gbs for unit in on.get(cpu, ())),
        )
        for cpu in sorted(on or room.cpus)
    ]
    nodes = [
        PlacedNode(
            node=node.os_index,
            cores=len(here),
            memory_gbs=_sum(core.memory_gbs for core in here),
            capacity_gbs=node.memory_gbs,
        )
        for node in room.nodes
        if (here := [core for core in cores if core.node == node.os_index])
    ]
    knows = any(edge.bytes_per_s is not None for edge in graph.edges)
    return Placement(
        engine=graph.engine,
        deployment=deployment,
        headroom=headroom,
        units=tuple(sorted(units, key=lambda unit: unit.cpu)),
        cores=tuple(cores),
        nodes=tuple(nodes),
        bound=bound,
        crossing_bytes_per_s=_crossing(operators, units, room) if units and knows else None,
        warnings=tuple(warnings),
    )


def _sum(figures: Iterable[float | None]) -> float | None:
    known = [one for one in figures if one is not None]
    return sum(known) if known else None


def _crossing(operators: Operators, units: Sequence[PlacedUnit], room: Place) -> float:
    """Bytes/s between nodes."""
    at = {one.id: place for place, one in enumerate(operators.all)}
    nodes: list[list[int]] = [[] for _ in at]  # of each replica of an operator
    for unit in units:
        for one in unit.operators:
            nodes[at[one]].append(room.cpus[unit.cpu].node)
    total = 0.0
    for giver, taker, carried in operators.flows:
        givers, takers = nodes[giver], nodes[taker]
        together = sum(map(takers.count, givers)) / (len(givers) * len(takers))
        total += carried * (1 - together)
    return total
