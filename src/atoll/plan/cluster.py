"""One engine over several machines, from a plan for each of them. Pure.

Source: numa-distributed-engines, section V: the policies hold on every machine of a cluster.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from atoll.errors import UsageError
from atoll.schema.plan import ClusterPlace, Plan, Reason
from atoll.schema.text import plural


def refuse_part(plan: Plan, instead: str) -> None:
    """Raises UsageError if the plan is a part of a cluster, which cannot be used alone."""
    if plan.cluster:
        raise UsageError(
            f"this plan is a part of a cluster of {plan.cluster.machines} machines; {instead}"
        )


def over_machines(plans: Mapping[str, Plan], port: int) -> dict[str, Plan]:
    """The plans of a cluster, by machine. The coordinator of the first one leads, at `port`.

    Raises UsageError if they cannot be one engine.
    """
    if len(plans) < 2:
        raise UsageError("a cluster needs at least two hosts")
    if any(plan.cluster for plan in plans.values()):
        raise UsageError("these plans are parts of a cluster already")
    first, lead = next(iter(plans.items()))
    for name, plan in plans.items():
        if plan.engine != lead.engine:
            raise UsageError(
                f"{name} has {plan.engine} and {first} {lead.engine}; a cluster is one engine"
            )
        if any(slot.address is None for slot in plan.slots):
            raise UsageError(
                f"{name}: its instances listen on loopback, where other hosts cannot reach them; "
                "plan with --listen nic"
            )
    masked = {
        name: all(slot.cpus is not None for slot in plan.slots) for name, plan in plans.items()
    }
    if other := next((name for name, own in masked.items() if own != masked[first]), None):
        raise UsageError(
            f"{first} and {other}: only one of them has CPU masks, so instances would get unequal "
            "parts of a query; plan with one --policy"
        )
    if lead.coordinator is None or lead.coordinator.address is None:
        raise UsageError(f"{first}: {lead.engine} has no coordinator there that could lead")
    slots = [slot for plan in plans.values() for slot in plan.slots]
    found = ClusterPlace(
        address=lead.coordinator.address,
        port=port,
        leads=True,
        machines=len(plans),
        instances=len(slots),
        threads=sum(plan.total_threads for plan in plans.values()),
        heap_bytes=min(slot.heap_bytes for slot in slots),
    )
    shuffles = [plan.shuffle_partitions for plan in plans.values()]
    reason = Reason(
        rule="one engine over machines",
        text=f"{plural(found.instances, 'instance')} on {plural(found.machines, 'machine')}: the "
        f"coordinator is on {first}, at {found.head}.",
        source="the user; numa-distributed-engines, section V",
    )
    return {
        name: plan.model_copy(
            update={
                "shuffle_partitions": sum(each or 0 for each in shuffles) or None,
                "cluster": found.model_copy(update={"leads": name == first}),
                "coordinator": plan.coordinator if name == first else None,
                "reasons": (*plan.reasons, reason),
            }
        )
        for name, plan in plans.items()
    }


def part_of(plan: Plan, number: int) -> Plan:
    """The plan of another machine of a cluster of equal ones: its addresses are higher by `number`
    than the head's."""

    def moved(address: str | None) -> str | None:
        return address and str(ipaddress.IPv4Address(address) + number)

    slots = (one.model_copy(update={"address": moved(one.address)}) for one in plan.slots)
    changes: dict[str, object] = {"slots": tuple(slots)}
    if number and plan.cluster:
        joins = plan.cluster.model_copy(update={"leads": False})
        changes |= {"cluster": joins, "coordinator": None}
    return plan.model_copy(update=changes)
