"""The deployments beside the packed one: no binding, and an operator on each core. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from atoll.errors import UsageError
from atoll.schema.machine import Core, Machine
from atoll.schema.operator_graph import OperatorGraph
from atoll.schema.placement import Deployment, PlacedCore, PlacedNode, PlacedUnit, Placement
from atoll.schema.text import plural


def unbound(machine: Machine, engine: str) -> Placement:
    """The kernel's scheduler decides, on all hardware threads that Atoll may use."""
    cores = [
        _core(machine, core, cpu=cpu, duty=0.0)
        for core in machine.allowed_cores
        for cpu in core.pus
    ]
    return _placement(engine, "os", (), cores)


def per_core(
    operators: Sequence[str], machine: Machine, engine: str, duties: dict[str, float]
) -> Placement:
    """Each operator has a core of its own, in the machine's order.

    Raises UsageError if the machine has fewer cores.
    """
    cores = machine.allowed_cores
    if len(cores) < len(operators):
        raise UsageError(
            f"{plural(len(operators), 'operator')} on {plural(len(cores), 'core')}: "
            "an operator per core needs as many cores as operators"
        )
    seats = list(zip(operators, cores, strict=False))
    units = [
        PlacedUnit(
            operators=(name,),
            cpu=core.pus[0],
            duty=duties.get(name, 0.0),
            reason="an operator per core",
        )
        for name, core in seats
    ]
    used = [
        _core(machine, core, cpu=core.pus[0], duty=duties.get(name, 0.0)) for name, core in seats
    ]
    return _placement(engine, "per-core", units, used)


def duties_of(graph: OperatorGraph) -> dict[str, float]:
    """Of the operators whose activity is known."""
    return {one.id: one.activity.duty.value for one in graph.operators if one.activity}


def _core(machine: Machine, core: Core, *, cpu: int, duty: float) -> PlacedCore:
    chiplet = next((one.index for one in machine.chiplets if cpu in one.pus), None)
    return PlacedCore(cpu=cpu, chiplet=chiplet, node=core.node or 0, duty=duty)


def _placement(
    engine: str, deployment: Deployment, units: Sequence[PlacedUnit], cores: Sequence[PlacedCore]
) -> Placement:
    nodes = Counter(core.node for core in cores)
    return Placement(
        engine=engine,
        deployment=deployment,
        headroom=0.0,
        units=tuple(units),
        cores=tuple(cores),
        nodes=tuple(PlacedNode(node=node, cores=count) for node, count in sorted(nodes.items())),
    )
