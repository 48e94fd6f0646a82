"""Whether an instance has room for its part of a query: N instances divide the memory, but each
holds a whole copy of every table that is broadcast.

A distributed query's peak is taken to be spread over the instances by their threads, which is
what an engine with hash-partitioned tasks does where the data has no skew; with skew one instance
takes more. An instance that is a whole server takes all of it. Every figure that is compared is
the user's, or was observed; none is predicted here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from atoll.errors import UsageError
from atoll.plan.sizing import beside_heap_bytes
from atoll.schema.plan import EngineTraits, MemoryPolicy, Plan, Slot
from atoll.schema.size import gib


@dataclass(frozen=True, slots=True)
class Demand:
    """What a query takes."""

    peak_bytes: int = 0  # all instances together, at once; broadcast tables left out
    broadcast_bytes: int = 0  # what every instance copies
    source: str = "estimated"  # 'estimated', or where it was observed

    def __bool__(self) -> bool:
        return bool(self.peak_bytes or self.broadcast_bytes)


NO_DEMAND = Demand()


def check_demand(demand: Demand, traits: EngineTraits) -> None:
    """Raises UsageError for a demand that the engine cannot have."""
    if demand.broadcast_bytes and not traits.distributed:
        raise UsageError(
            f"--broadcast: instances of {traits.name} are whole servers and broadcast nothing; "
            "leave it out"
        )


def check_room(plan: Plan, traits: EngineTraits) -> None:
    """Raises UsageError for a plan from a file whose instances exceed their memory: it was edited,
    or made without the user's configuration, which `traits` has."""
    for slot in plan.slots:
        beside = beside_heap_bytes(slot.heap_bytes, traits)
        if slot.heap_bytes + beside > slot.memory_bytes:
            asked, remedy = "", f"make it anew: atoll plan {plan.engine} -o PLAN"
            if traits.asked_bytes:
                asked = f", of it {gib(traits.asked_bytes)} by {traits.asked_source}"
                remedy = (
                    f"plan with that configuration: atoll plan {plan.engine} --base DIR -o PLAN"
                )
            raise UsageError(
                f"slot {slot.index} has {gib(slot.memory_bytes)}; {gib(slot.heap_bytes)} of heap "
                f"and {gib(beside)} beside it{asked} are more; {remedy}"
            )


def room_bytes(heap_bytes: int, traits: EngineTraits) -> int:
    """What the queries of an instance with that heap may take at once."""
    of_heap = max(0, int((heap_bytes - traits.query_reserved_bytes) * traits.query_ratio))
    return of_heap + traits.query_beside_bytes


def need_bytes(threads: int, total_threads: int, demand: Demand, traits: EngineTraits) -> int:
    """An instance's part of the demand."""
    if not traits.distributed:
        return demand.peak_bytes
    return -(-demand.peak_bytes * threads // total_threads) + demand.broadcast_bytes


def fits(
    heaps_bytes: Sequence[int], threads: Sequence[int], demand: Demand, traits: EngineTraits
) -> bool:
    total = sum(threads)
    return all(
        need_bytes(own, total, demand, traits) <= room_bytes(heap, traits)
        for heap, own in zip(heaps_bytes, threads, strict=True)
    )


def about_demand(
    slots: Sequence[Slot], traits: EngineTraits, demand: Demand, fewer: Callable[[], int]
) -> list[str]:
    """Warnings where a slot lacks room. `fewer`: the most instances that have it, 0 for none."""
    total = sum(slot.threads for slot in slots)
    lacking = [
        (slot, need, room)
        for slot in slots
        if (need := need_bytes(slot.threads, total, demand, traits))
        > (room := room_bytes(slot.heap_bytes, traits))
    ]
    if not lacking:
        return []
    slot, need, room = max(lacking, key=lambda found: found[1] - found[2])
    parts = [f"a peak of {gib(demand.peak_bytes)}"] if demand.peak_bytes else []
    if demand.broadcast_bytes:
        parts.append(f"{gib(demand.broadcast_bytes)} broadcast to each")
    count = fewer() if len(slots) > 1 else 0
    if count:
        remedy = f"-n {count} would have room"
    elif len(slots) > 1:
        remedy = "fewer instances would not do either; give the engine more memory"
    else:
        remedy = "more instances would not help; give the engine more memory"
    if slot.memory_policy is MemoryPolicy.BIND and not traits.jvm:
        remedy += (
            "; beyond its node's memory a bound instance is killed though others are free, and "
            "--memory preferred lets it go on to them"
        )
    return [
        f"{' and '.join(parts)} ({demand.source}): that is {gib(need)} in slot {slot.index}, whose "
        f"queries have {gib(room)}, and {len(lacking)} of {len(slots)} instances would spill to "
        f"disk or fail; {remedy}"
    ]
