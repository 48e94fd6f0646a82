"""A plan of long-lived operators and what each of them uses. Format `atoll/operators` 1.

The input of query-plan-deployment-poster: a dependency graph, and for each operator a resource
activity vector. Vectors hold at the graph's rate and scale with it. Every figure says how it is
known. `atoll operators profile` writes the file; a person may write it too.
"""

from __future__ import annotations

from enum import StrEnum
from itertools import chain
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from atoll.schema.base import Record
from atoll.schema.operators import Kind

BUSY = 0.05  # of a window; an operator that is busy for less counts as idle


class Source(StrEnum):
    MEASURED = "measured"
    ESTIMATED = "estimated"  # computed from other figures; `how` says from which
    GIVEN = "given"  # by the user


def _is_number(value: object) -> object:
    if isinstance(value, bool | str):
        raise ValueError("must be a whole number")
    return value


# Also as 1e6, as JSON has it; the limit is as that of `Known`.
WholeNumber = Annotated[int, Field(ge=0, le=10**18), BeforeValidator(_is_number)]


class Known(Record):
    """A figure and how it is known."""

    value: float = Field(ge=0, le=1e18, allow_inf_nan=False, strict=True)  # so sums are finite
    source: Source
    how: str = ""  # 'CPU time of its threads', 'rows x width'


class Activity(Record):
    """The resource activity vector of an operator, at the graph's rate."""

    duty: Known  # CPU seconds a second, on average; above 1: more than one core
    peak: Known | None = None  # the same, 95th percentile over windows of 100 ms
    memory_gbs: Known | None = None  # bytes between memory and caches, in 10^9 a second
    cache_bytes: WholeNumber | None = None  # that it uses again and again


class GraphOperator(Record):
    id: str = Field(min_length=1)  # unique in the graph
    name: str = ""  # the engine's own name; empty: the id
    kind: Kind = Kind.OTHER
    blocking: bool = False  # gives nothing before it has all of its input: build, sort, aggregate
    parallel: bool = False  # may run as several replicas that share its input
    node: WholeNumber | None = None  # of data that it reads and that cannot move
    activity: Activity | None  # None: not known


class Edge(Record):
    """What one operator gives to another."""

    giver: str  # ids
    taker: str
    bytes_per_s: Known | None = None  # None: not known


class Overlap(Record):
    """Two neighbours, and in which share of the windows both were over 5 % busy."""

    giver: str
    taker: str
    share: float = Field(ge=0, le=1)


class Rate(Record):
    value: float = Field(gt=0, allow_inf_nan=False)
    unit: str  # of what: 'records/s', 'executions/s'


class OperatorGraph(Record):
    format: Literal["atoll/operators"] = "atoll/operators"
    version: Literal[1] = 1
    engine: str = ""  # empty: written by hand
    rate: Rate | None  # at which the vectors hold; None: not known
    seconds: float | None = Field(default=None, ge=0)  # how long it was watched
    operators: tuple[GraphOperator, ...] = Field(min_length=1)
    edges: tuple[Edge, ...] = ()
    overlaps: tuple[Overlap, ...] = ()  # of edges; one that is not listed was not measured
    notes: tuple[str, ...] = ()  # what the figures leave out, for people

    @model_validator(mode="after")
    def _refers_to_operators(self) -> Self:
        ids: set[str] = set()
        for operator in self.operators:
            if operator.id in ids:
                raise ValueError(f"two operators have the id {operator.id!r}")
            ids.add(operator.id)
        ends = [(edge.giver, edge.taker) for edge in self.edges]
        ends += [(overlap.giver, overlap.taker) for overlap in self.overlaps]
        for end in chain.from_iterable(ends):
            if end not in ids:
                raise ValueError(f"an edge names {end!r}, which is not an operator")
        return self
