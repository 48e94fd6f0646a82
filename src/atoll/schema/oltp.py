"""What transactional workloads measured. Format `atoll/oltp` 1.

`atoll oltp run` writes it, block by block. A seat is a placement of the server; in each block every
workload runs once in every seat, each on a fresh copy of its data. Latencies are those of the
driver, from sending a transaction to its answer.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from atoll.schema.base import Record
from atoll.schema.environment import Environment
from atoll.schema.machine import Machine

PlacementName = Literal["packed", "spread"]  # on the fewest chiplets; over all of the nodes'


class OltpSeat(Record):
    """Where a server runs."""

    placement: PlacementName
    also: tuple[PlacementName, ...] = ()  # which are the same cores on this machine
    cores: int = Field(ge=1)  # and as many clients
    cpus: tuple[int, ...] = Field(min_length=1)
    chiplets: tuple[int, ...]  # empty: none are known
    heap_bytes: int = Field(ge=1)
    # The driver's: CPUs of cores that no seat with as many cores has, else those of the server.
    driver_cpus: tuple[int, ...] = Field(min_length=1)

    @property
    def label(self) -> str:
        return f"{self.placement}/cores={self.cores}"


class Latency(Record):
    """A type of transaction in the measured time. The percentiles are null if none ended."""

    type: str
    count: int = Field(ge=0)
    p50_ms: float | None
    p90_ms: float | None
    p99_ms: float | None  # null below 100 transactions too


class ConditionFound(Record):
    name: str
    means: str
    violations: int = Field(ge=0)  # rows
    example: str = ""  # the first of them


class OltpRun(Record):
    block: int = Field(ge=0)
    workload: str
    seat: str  # the label
    commits_per_s: float = Field(ge=0)  # transactions that ended in the measured time
    latencies: tuple[Latency, ...] = Field(min_length=1)
    failed: int = Field(ge=0)  # transactions that gave up because of others, with the warm-up
    acknowledged: int = Field(ge=0)  # of the type that is counted, with the warm-up
    counted: int = Field(ge=0)  # those that the database has
    conditions: tuple[ConditionFound, ...] = Field(min_length=1)
    threads: int = Field(ge=0)  # of the server, checked while it worked
    drifted: int = Field(ge=0)  # those out of place
    drift: str = ""
    idle_before: float = Field(ge=0, le=1)  # share of all CPUs' time
    idle_during: float = Field(ge=0, le=1)  # with the driver at work


class OltpRuns(Record):
    """Its blocks are whole."""

    format: Literal["atoll/oltp"] = "atoll/oltp"
    version: Literal[1] = 1
    engine: str
    engine_version: str
    machine: Machine
    environment: Environment
    emulated: bool  # the CPU: times mean nothing
    sizes: dict[str, int] = Field(min_length=1)  # workload -> warehouses or records
    warmup_s: int = Field(ge=1)
    measured_s: int = Field(ge=1)
    durability: dict[str, str]  # the server's settings
    seats: tuple[OltpSeat, ...] = Field(min_length=1)
    runs: tuple[OltpRun, ...] = Field(min_length=1)
    warnings: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _whole(self) -> Self:
        all_ = sorted((workload, seat.label) for workload in self.sizes for seat in self.seats)
        for block in {run.block for run in self.runs}:
            if sorted((run.workload, run.seat) for run in self.runs if run.block == block) != all_:
                raise ValueError(f"block {block} has not one run of each workload in each seat")
        shapes: dict[str, tuple[list[str], list[str]]] = {}
        for run in self.runs:
            shape = ([one.type for one in run.latencies], [one.name for one in run.conditions])
            if shapes.setdefault(run.workload, shape) != shape:
                raise ValueError(f"runs of {run.workload} differ in transactions or conditions")
        return self
