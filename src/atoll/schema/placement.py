"""Which core runs which operators. Format `atoll/placement` 1.

`atoll operators plan` makes it of an `atoll/operators` file and a machine. `cpu` and `node` are the
kernel's numbers.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from atoll.schema.base import Record

Deployment = Literal["os", "per-core", "packed"]  # no binding; an operator a core; the algorithm


class PlacedUnit(Record):
    """Operators scheduled as one: a chain whose neighbours never run at once, or a single one."""

    operators: tuple[str, ...] = Field(min_length=1)  # ids
    replica: int = Field(default=0, ge=0)  # this one's number
    replicas: int = Field(default=1, ge=1)  # among which the operator's input is divided
    cpu: int = Field(ge=0)
    duty: float | None = Field(ge=0)  # share of the core; None: not known, if it is not packed
    peak: float | None = Field(default=None, ge=0)
    memory_gbs: float | None = Field(default=None, ge=0)
    reason: str  # of this core


class PlacedCore(Record):
    cpu: int = Field(ge=0)  # its other hardware threads stay idle
    chiplet: int | None
    node: int
    duty: float | None = Field(ge=0)  # None: no unit's is known
    memory_gbs: float | None = Field(default=None, ge=0)


class PlacedNode(Record):
    node: int
    cores: int = Field(ge=1)  # that operators run on
    memory_gbs: float | None = Field(default=None, ge=0)
    capacity_gbs: float | None = Field(default=None, ge=0)  # that may be used; None: not measured


class Bound(Record):
    """The fewest that any placement needs, and what says so."""

    cores: int = Field(ge=1)
    nodes: int = Field(ge=1)
    reason: str


class Placement(Record):
    format: Literal["atoll/placement"] = "atoll/placement"
    version: Literal[1] = 1
    engine: str = ""
    deployment: Deployment
    headroom: float = Field(ge=0, lt=1)  # of each core, left free
    units: tuple[PlacedUnit, ...] = ()  # empty: the deployment os
    cores: tuple[PlacedCore, ...] = Field(min_length=1)  # that it uses; with os: that it may use
    nodes: tuple[PlacedNode, ...] = Field(min_length=1)
    bound: Bound | None = None  # None: the deployment is not packed
    # Bytes a second on edges between nodes; None: no edge says how much it carries.
    crossing_bytes_per_s: float | None = Field(default=None, ge=0)
    warnings: tuple[str, ...] = ()  # a bottleneck, a figure that is missing

    @model_validator(mode="after")
    def _refers_to_cores(self) -> Self:
        cpus = {core.cpu for core in self.cores}
        if len(cpus) < len(self.cores):
            raise ValueError("a core is listed twice")
        for unit in self.units:
            if unit.cpu not in cpus:
                raise ValueError(f"a unit is on CPU {unit.cpu}, which is not one of the cores")
        nodes = {node.node for node in self.nodes}
        for core in self.cores:
            if core.node not in nodes:
                raise ValueError(f"CPU {core.cpu} is on node {core.node}, which is not listed")
        return self
