"""The planner of operators on a large graph: its time and memory.

A plan counts only if it is the same twice, leaves the headroom of each core, and has no fewer cores
than its own bound. Targets are issue bars: under 1 s and 256 MiB for 10,000 operators.
"""

from __future__ import annotations

import resource
from random import Random

import numpy as np

from atoll.host.topology import read_machine
from atoll.operators.place import HEADROOM, place
from atoll.schema.machine import Machine
from atoll.schema.operator_graph import (
    Activity,
    Edge,
    GraphOperator,
    Known,
    OperatorGraph,
    Source,
)
from atoll.schema.placement import Placement
from perf.harness import WrongAnswer, at_most, median, note, timed_cpu

OPERATORS = 10_000
ROUNDS = 9
MACHINE = "Package:2 NUMANode:8(memory=64GB) L3Cache:8(size=32MB) Core:8 PU:2"


def compare() -> None:
    graph = _graph()
    machine = read_machine(synthetic=MACHINE)
    found = _verified(graph, machine)
    seconds = np.array([timed_cpu(lambda: place(graph, machine)) for _ in range(ROUNDS)])
    note(f"{OPERATORS} operators on {len(found.cores)} cores of {len(found.nodes)} nodes")
    at_most("operators-10000-cpu-s", median(seconds).value, 1.0)
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    at_most("operators-10000-mib", peak_mib, 256)


def _graph() -> OperatorGraph:
    """Each operator takes data from one or two of the ten before it."""
    random = Random(1)

    def figure(most: float) -> Known:
        return Known(value=round(random.uniform(0, most), 4), source=Source.GIVEN)

    operators = [
        GraphOperator(
            id=f"op{one}",
            blocking=random.random() < 0.3,
            activity=Activity(duty=figure(0.1), memory_gbs=figure(2)),
        )
        for one in range(OPERATORS)
    ]
    edges = [
        Edge(giver=f"op{giver}", taker=f"op{one}", bytes_per_s=figure(1e7))
        for one in range(1, OPERATORS)
        for giver in random.sample(range(max(0, one - 10), one), min(one, random.randint(1, 2)))
    ]
    return OperatorGraph(rate=None, operators=tuple(operators), edges=tuple(edges))


def _verified(graph: OperatorGraph, machine: Machine) -> Placement:
    found = place(graph, machine)
    if found != place(graph, machine):
        raise WrongAnswer("the same graph is placed in two ways")
    placed = sorted(one for unit in found.units for one in unit.operators)
    if placed != sorted(one.id for one in graph.operators):
        raise WrongAnswer("an operator is missing, or there twice")
    if max(core.duty or 0 for core in found.cores) > 1 - HEADROOM + 1e-4:
        raise WrongAnswer("a core is too full")
    if found.bound is None or found.bound.cores > len(found.cores):
        raise WrongAnswer("the bound is above what was found")
    return found
