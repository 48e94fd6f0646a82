"""What an engine would get on a type of machine, and the price of each part. Pure."""

from __future__ import annotations

from typing import Unpack

from atoll.errors import UsageError
from atoll.plan.capacity import Demand
from atoll.plan.locality import l3_share_bytes
from atoll.plan.planner import make_plan
from atoll.plan.request import Choices
from atoll.schema.instance_types import InstanceType, SlotSize, TypePlan
from atoll.schema.machine import Machine
from atoll.schema.plan import EngineTraits


def plan_type(
    kind: InstanceType,
    machine: Machine,
    traits: EngineTraits,
    policy: str,
    *,
    demand: Demand,
    **choices: Unpack[Choices],
) -> TypePlan:
    """If the planner refuses the request on this machine, the result says why."""
    try:
        plan = make_plan(machine, traits, policy, demand=demand, **choices)
    except UsageError as fault:
        return TypePlan(
            name=kind.name,
            price_per_hour=kind.price_per_hour,
            policy=None,
            slots=(),
            price_per_slot=None,
            refused=str(fault),
        )
    return TypePlan(
        name=kind.name,
        price_per_hour=kind.price_per_hour,
        policy=plan.policy,
        slots=tuple(
            SlotSize(
                cores=slot.cores,
                heap_bytes=slot.heap_bytes,
                l3_bytes=l3_share_bytes(machine, slot, plan.slots),
            )
            for slot in plan.slots
        ),
        price_per_slot=kind.price_per_hour / len(plan.slots),
        warnings=plan.warnings,
    )
