"""Whether the largest query's part of an instance fits into L3: WICP-local or WICP-mixed.

olap-on-chiplets, section 4.4, advises to spread an instance's cores over chiplets if its working
set exceeds one chiplet's L3 but not all of them. The working set is the peak per instance: by the
peak of the whole query the paper's own figures would contradict it (table 2 and figure 11). Spread
cores reach more cache only if other cores are idle; on a machine in full use each instance has the
same share of L3 either way.
"""

from __future__ import annotations

from collections.abc import Sequence

from atoll.plan.capacity import Demand, need_bytes
from atoll.schema.machine import Machine
from atoll.schema.plan import EngineTraits, Policy, Reason, Slot
from atoll.schema.size import gib

_RULE = "cache of an instance"


def about_locality(
    machine: Machine, policy: Policy, slots: Sequence[Slot], traits: EngineTraits, demand: Demand
) -> list[Reason]:
    """Empty without a peak, without known L3s, or if instances have no CPUs of their own."""
    if not demand.peak_bytes or not machine.l3 or any(slot.cpus is None for slot in slots):
        return []
    total = sum(slot.threads for slot in slots)
    slot = max(slots, key=lambda one: need_bytes(one.threads, total, demand, traits))
    need = need_bytes(slot.threads, total, demand, traits)
    own = l3_share_bytes(machine, slot, slots)
    spread = _node_share_bytes(machine, slot, slots)
    part = f"Slot {slot.index}'s part of the peak ({demand.source}) is {gib(need)}; "
    if need <= own:
        text = f"it fits into its {gib(own)} of L3, so its locality is of the cache"
    elif need <= spread:
        text = (
            f"it exceeds its {gib(own)} of L3 and fits into the {gib(spread)} of its nodes' "
            "chiplets, some of which are idle: run atoll under a mask with cores of each of them "
            "(numactl -C), with --policy wicp-mixed"
        )
    else:
        text = f"it exceeds its {gib(own)} of L3, so its locality is of memory only"
        if spread > own:
            text += f", and the {gib(spread)} of its nodes' chiplets would not hold it either"
    if policy is not Policy.WICP_MIXED and spread <= own:
        text += ". No chiplet is idle, so wicp-mixed would have no more L3"
    if demand.crossing_bytes:
        text += (
            ". As measured, threads spread over chiplets are faster from "
            f"{gib(demand.crossing_bytes)} on, threads together below"
        )
    return [
        Reason(
            rule=_RULE,
            text=f"{part}{text}.",
            source="olap-on-chiplets, section 4.4, with the peak per instance",
        )
    ]


def l3_share_bytes(machine: Machine, slot: Slot, slots: Sequence[Slot]) -> int:
    """The slot's part of the L3s that it uses, divided by the CPUs in use on each. A slot without
    a mask has all that the machine allows."""
    used = {cpu for one in slots for cpu in one.cpus or machine.allowed.pus}
    mine = set(slot.cpus or machine.allowed.pus)
    return sum(
        l3.size_bytes * len(mine.intersection(l3.pus)) // max(1, len(used.intersection(l3.pus)))
        for l3 in machine.l3
    )


def _node_share_bytes(machine: Machine, slot: Slot, slots: Sequence[Slot]) -> int:
    """Its part of all L3s of its nodes, if all slots there were spread over them."""
    pus = {pu for node in machine.nodes if node.os_index in slot.nodes for pu in node.pus}
    whole = sum(l3.size_bytes for l3 in machine.l3 if pus.intersection(l3.pus))
    there = sum(one.threads for one in slots if set(one.nodes) & set(slot.nodes))
    return whole * slot.threads // there
