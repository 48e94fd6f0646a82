"""From an engine's own profile of one execution to a graph of operators. Pure.

The graph's rate is that of executions one after another: what an operator used altogether, divided
by the seconds that the execution took. `atoll.operators.mix` scales it to other rates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count

from atoll.engines.operators import Node
from atoll.schema.operator_graph import (
    Activity,
    Edge,
    GraphOperator,
    Known,
    OperatorGraph,
    Rate,
    Source,
)
from atoll.schema.text import one_line

EXECUTIONS = "executions/s"


@dataclass(frozen=True, slots=True)
class Figure:
    """How a figure is known, and over which time its sums are."""

    source: Source
    how: str
    seconds: float

    def __call__(self, total: float | None) -> Known | None:
        """The mean per second of what was counted altogether; None: it was not counted."""
        if total is None:
            return None
        return Known(value=total / self.seconds, source=self.source, how=self.how)


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution of a query, and how an engine counts what its operators use."""

    engine: str
    seconds: float  # from its beginning to its end
    duty: tuple[Source, str]
    gives: tuple[Source, str] = (Source.ESTIMATED, "")
    memory: tuple[Source, str] = (Source.ESTIMATED, "")
    notes: tuple[str, ...] = ()

    @property
    def rate(self) -> Rate:
        if not self.seconds > 0:
            raise ValueError(f"the execution took {self.seconds} s")
        return Rate(value=1 / self.seconds, unit=EXECUTIONS)

    def figure(self, known: tuple[Source, str]) -> Figure:
        return Figure(*known, self.seconds)

    def activity(self, used_s: float | None, memory_bytes: float | None) -> Activity | None:
        duty = self.figure(self.duty)(used_s)
        if duty is None:
            return None
        gb = None if memory_bytes is None else memory_bytes / 1e9
        return Activity(duty=duty, memory_gbs=self.figure(self.memory)(gb))

    def graph(self, operators: Iterable[GraphOperator], edges: Iterable[Edge]) -> OperatorGraph:
        return OperatorGraph(
            engine=self.engine,
            rate=self.rate,
            seconds=self.seconds,
            operators=tuple(operators),
            edges=tuple(edges),
            notes=self.notes,
        )


def graph_of(root: Node, execution: Execution) -> OperatorGraph:
    """The operators of a tree, each giving to the one above it. Raises ValueError (of pydantic, or
    of an execution that took no time)."""
    _ = execution.rate  # before anything is divided by it
    gives = execution.figure(execution.gives)
    operators: list[GraphOperator] = []
    edges: list[Edge] = []
    for name, node, above in _listed(root, count(1), ""):
        used_s = node.own_s if node.cpu_s is None else node.cpu_s
        operators.append(
            GraphOperator(
                id=name,
                name=one_line(node.operator),
                kind=node.kind,
                blocking=node.blocking,
                parallel=node.parallel,
                activity=execution.activity(used_s, node.memory_bytes),
            )
        )
        if above:
            edges.append(Edge(giver=name, taker=above, bytes_per_s=gives(node.gives_bytes)))
    return execution.graph(operators, edges)


def _listed(node: Node, numbers: Iterator[int], above: str) -> Iterator[tuple[str, Node, str]]:
    """Each operator with its id, a number if the engine gives none, and that of the one above."""
    number = next(numbers)
    name = one_line(node.node) or str(number)
    yield name, node, above
    for child in node.below:
        yield from _listed(child, numbers, name)
