"""One checked request to the planner, with the parts that all its plans share."""

from __future__ import annotations

from dataclasses import dataclass

from atoll.plan.capacity import Demand
from atoll.plan.coordinator import CoordinatorChoice
from atoll.plan.cores import Group
from atoll.plan.memory import MemoryMap
from atoll.plan.network import Listen
from atoll.schema.machine import Machine
from atoll.schema.plan import EngineTraits, MemoryPolicy, Placement, Policy


@dataclass(frozen=True, slots=True)
class Request:
    machine: Machine
    traits: EngineTraits
    policy: Policy
    count: int | None
    memory_asked: MemoryPolicy | None
    placement: Placement
    smt: bool
    coordinator: CoordinatorChoice | None
    heap_limit_bytes: int | None
    demand: Demand
    listen: Listen
    places: Group  # the workers' cores
    own: Group  # the coordinator's cores
    memory: MemoryMap
