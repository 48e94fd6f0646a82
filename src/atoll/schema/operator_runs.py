"""A program under several placements of its operators. Format `atoll/operator-runs` 1.

`atoll operators compare` writes it, block by block. A round has one headroom; in each of its blocks
every deployment runs once, on a program that was just started. If the packed deployment is not as
good as an operator per core, the next round has more headroom.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from atoll.schema.base import Record
from atoll.schema.environment import Environment
from atoll.schema.machine import Machine
from atoll.schema.operator_graph import OperatorGraph
from atoll.schema.placement import Deployment, Placement


class OperatorRun(Record):
    block: int = Field(ge=0)
    deployment: Deployment
    per_window: tuple[float, ...] = Field(min_length=1)  # rates over windows of 1 s
    p50_ms: float = Field(ge=0)
    p90_ms: float = Field(ge=0)
    p99_ms: float = Field(ge=0)
    backlog: bool  # work came in faster than it was done
    cores_used: int = Field(ge=0)  # those with over 1 % of the program's CPU time
    threads: int = Field(ge=0)  # of operators, checked before it was measured
    drifted: int = Field(ge=0)  # those out of place
    drift: str = ""
    idle_before: float = Field(ge=0, le=1)  # share of all CPUs' time


class OperatorRound(Record):
    headroom: float = Field(ge=0, lt=1)  # of the packed deployment
    placements: tuple[Placement, ...] = Field(min_length=1)  # one for each deployment
    runs: tuple[OperatorRun, ...] = ()


class OperatorRuns(Record):
    """Its blocks are whole."""

    format: Literal["atoll/operator-runs"] = "atoll/operator-runs"
    version: Literal[1] = 1
    program: str
    machine: Machine
    environment: Environment
    emulated: bool  # the CPU: times mean nothing
    graph: OperatorGraph  # by which the packed deployment was planned
    unit: str  # of the rates
    warmup_s: float = Field(ge=0)
    measured_s: float = Field(gt=0)
    refused: dict[Deployment, str] = Field(default_factory=dict)  # with the reason
    rounds: tuple[OperatorRound, ...] = Field(min_length=1)
