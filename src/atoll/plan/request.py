"""One checked request to the planner, with the parts that all its plans share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from atoll.plan.capacity import Demand
from atoll.plan.coordinator import CoordinatorChoice, coordinator_cores
from atoll.plan.cores import Group
from atoll.plan.memory import Aside, MemoryMap, memory_map
from atoll.plan.network import Listen
from atoll.plan.policies import divide
from atoll.plan.sizing import PageCache, with_page_cache
from atoll.schema.machine import Machine
from atoll.schema.plan import EngineTraits, HugePages, Malloc, MemoryPolicy, Placement, Policy


class Choices(TypedDict, total=False):
    """What a user may decide about a plan besides its policy; the planner decides the rest."""

    count: int | None  # worker instances
    memory: MemoryPolicy | None
    placement: Placement
    smt: bool
    coordinator: CoordinatorChoice | None
    heap_bytes: int | None  # of each worker instance
    page_cache: PageCache | None  # kept free for it
    reserve_bytes: int  # memory for other services
    reserve_cores: int  # the machine's first cores, for other services
    cores: int  # the first of the cores that are left; all instances have a mask then, WIM too
    spread: bool  # `cores` are not the first ones, but dealt over all chiplets of their nodes
    mask: bool  # WIM gets a mask of all cores of the plan
    malloc: Malloc
    thp: HugePages


def sets_masks(policy: Policy, choices: Choices) -> bool:
    """WIM is the engine's default deployment, without a mask, unless it is to use fewer CPUs."""
    return policy is not Policy.WIM or choices.get("mask", False) or "cores" in choices


@dataclass(frozen=True, slots=True)
class Request:
    machine: Machine
    traits: EngineTraits
    policy: Policy
    choices: Choices
    heap_limit_bytes: int | None
    demand: Demand
    listen: Listen
    places: Group  # the workers' cores
    own: Group  # the coordinator's cores
    memory: MemoryMap


def make_request(
    machine: Machine,
    traits: EngineTraits,
    policy: Policy,
    choices: Choices,
    heap_limit_bytes: int | None,
    demand: Demand,
    listen: Listen,
    places: Group,
    own: Group,
) -> Request:
    """Raises UsageError if the machine lacks the memory or the cores."""
    first = divide(policy, places, choices.get("count"))[0]
    memory = memory_map(
        machine,
        places,
        Aside(
            traits.coordinator_bytes + traits.coordinator_overhead_bytes,
            coordinator_cores(choices.get("coordinator"), own, first),
            choices.get("reserve_bytes", 0),
        ),
    )
    return Request(
        machine=machine,
        traits=with_page_cache(
            traits,
            choices.get("page_cache"),
            memory.budget_bytes,
            heap_asked=choices.get("heap_bytes") is not None,
        ),
        policy=policy,
        choices=choices,
        heap_limit_bytes=heap_limit_bytes,
        demand=demand,
        listen=listen,
        places=places,
        own=own,
        memory=memory,
    )
