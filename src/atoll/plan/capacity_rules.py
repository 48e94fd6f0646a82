"""Explains how an instance's memory is divided, line by line, for `atoll plan --explain`."""

from __future__ import annotations

from collections.abc import Sequence

from atoll.plan.capacity import Demand, need_bytes, room_bytes
from atoll.plan.jvm import uses_numa
from atoll.plan.request import Request
from atoll.plan.sizing import Heaps, beside_heap_bytes
from atoll.schema.plan import EngineTraits, MemoryPolicy, Reason, Slot
from atoll.schema.size import gib, percent

_HOTSPOT = "HotSpot, os_linux.cpp and the documentation of its flags"


def about_capacity(request: Request, slots: Sequence[Slot], heaps: Heaps) -> list[Reason]:
    machine, traits, demand = request.machine, request.traits, request.demand
    reasons = [_heap(request, heaps), _reserved(slots, traits)]
    if traits.jvm:
        reasons.append(_pointers())
        if machine.summary.numa_nodes > 1:
            reasons += [_pretouch(slots), _numa(slots)]
    if any(slot.memory_policy is MemoryPolicy.BIND for slot in slots):
        reasons.append(_bound(slots))
    if demand:
        reasons.append(_demand(slots, traits, demand))
    return reasons


def _heap(request: Request, heaps: Heaps) -> Reason:
    memory, traits = request.memory, request.traits
    weight = traits.coordinator_bytes + traits.coordinator_overhead_bytes
    aside = f", less {gib(weight)} for the coordinator" if weight else ""
    if others := request.choices.get("reserve_bytes", 0):
        aside += f", less {gib(others)} for other services"
    word = "heap" if traits.jvm else "the engine's own memory"
    if (asked := request.choices.get("heap_bytes")) is not None:
        return Reason(
            rule="heap",
            text=f"{gib(asked)} of {word} per instance, as requested, "
            f"{gib(sum(heaps.sizes_bytes))} in total; {gib(memory.budget_bytes)} to divide "
            f"({memory.limited_by}{aside}).",
            source="the user",
        )
    return Reason(
        rule="heap",
        text=f"{gib(memory.budget_bytes)} to divide ({memory.limited_by}{aside}); "
        f"{percent(traits.heap_ratio)} of it is {word} if the rest suffices for everything else, "
        f"{gib(sum(heaps.sizes_bytes))} in total.",
        source=traits.ratio_source,
    )


def _reserved(slots: Sequence[Slot], traits: EngineTraits) -> Reason:
    slot = min(slots, key=lambda slot: slot.memory_bytes)
    beside = beside_heap_bytes(slot.heap_bytes, traits)
    parts = [f"{gib(traits.overhead_bytes)} of fixed overhead per instance"]
    if traits.asked_bytes:
        parts.append(f"{gib(traits.asked_bytes)} for {traits.asked_source}")
    if traits.off_heap_ratio:
        parts.append(f"{percent(traits.off_heap_ratio)} of the heap for other memory")
    least = (
        f", at least {percent(traits.page_cache_ratio)} of its memory"
        if traits.page_cache_ratio
        else ""
    )
    return Reason(
        rule="reserved",
        text=f"Slot {slot.index} has {gib(slot.memory_bytes)}: {gib(slot.heap_bytes)} of "
        f"heap and {gib(beside)} of off-heap memory ({' and '.join(parts)}); "
        f"{gib(slot.memory_bytes - slot.heap_bytes - beside)} are left to the page cache{least}.",
        source=traits.reserve_source or "the engine's adapter",
    )


def _pointers() -> Reason:
    return Reason(
        rule="compressed pointers",
        text="A JVM's pointers take 4 bytes below 32 GiB of heap and 8 above. Heaps from 32 to "
        "48 GiB would hold less than one of 31 GiB, so they are cut to 31 GiB.",
        source="HotSpot, documentation of -XX:+UseCompressedOops",
    )


def _pretouch(slots: Sequence[Slot]) -> Reason:
    largest = max(slot.heap_bytes for slot in slots)
    return Reason(
        rule="heap touched at the start",
        text="-XX:+AlwaysPreTouch, and -Xms equal to -Xmx: every page of a heap is on its node "
        "before the first query, and a node that is too small shows at the start. The start takes "
        f"as long as writing {gib(largest)} once, and the memory is taken whether or not it is "
        "needed.",
        source=_HOTSPOT,
    )


def _numa(slots: Sequence[Slot]) -> Reason:
    using = [slot for slot in slots if uses_numa(slot, slots)]
    if not using:
        text = "-XX:+UseNUMA is left out: a JVM turns it off if its memory is on one node, or "
        text += "on other nodes than its CPUs."
    else:
        text = "-XX:+UseNUMA for instances with several nodes whose memory is on the same nodes, "
        text += f"{len(using)} of {len(slots)}: each thread's new objects are on its own node."
    return Reason(rule="UseNUMA", text=text, source=_HOTSPOT)


def _bound(slots: Sequence[Slot]) -> Reason:
    least = min(slot.memory_bytes for slot in slots if slot.memory_policy is MemoryPolicy.BIND)
    return Reason(
        rule="bound memory",
        text=f"A bound instance has {gib(least)} and no more. If it exceeds that, the kernel "
        "reclaims its page cache, swaps, and then kills it, even if other nodes have free "
        "memory. If other programs use the machine's memory too, or more than the plan "
        "assumes, use --memory preferred: the instance then also uses other nodes, more slowly.",
        source="set_mempolicy(2), MPOL_BIND and MPOL_PREFERRED",
    )


def _demand(slots: Sequence[Slot], traits: EngineTraits, demand: Demand) -> Reason:
    total = sum(slot.threads for slot in slots)
    slot = min(slots, key=lambda slot: room_bytes(slot.heap_bytes, traits))
    need = need_bytes(slot.threads, total, demand, traits)
    kept = f" less {gib(traits.query_reserved_bytes)}" if traits.query_reserved_bytes else ""
    how = "divided by threads" if traits.distributed else "whole in one instance"
    also = f" and {gib(traits.query_beside_bytes)} outside it" if traits.query_beside_bytes else ""
    copied = (
        f", and {gib(demand.broadcast_bytes)} broadcast to each" if demand.broadcast_bytes else ""
    )
    return Reason(
        rule="room for queries",
        text=f"A peak of {gib(demand.peak_bytes)} ({demand.source}), {how}{copied}, is "
        f"{gib(need)} in slot {slot.index}; its queries have "
        f"{gib(room_bytes(slot.heap_bytes, traits))}, {percent(traits.query_ratio)} of the heap"
        f"{kept}{also}.",
        source=traits.query_source or "the engine's adapter",
    )
