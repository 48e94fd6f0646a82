"""Checks whether an instance has room for its part of a query.

N instances divide the memory, but each holds a whole copy of every broadcast table. The peak of a
distributed query is assumed to spread over the instances by their threads, as in an engine with
hash-partitioned tasks and data without skew; with skew one instance takes more. An instance that
is a whole server takes all of it. Every figure compared here comes from the user or from an
observation; none is predicted.
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
    """The memory that a query takes."""

    peak_bytes: int = 0  # all instances together, at one time; without broadcast tables
    broadcast_bytes: int = 0  # copied by every instance
    source: str = "estimated"  # 'estimated', or where it was observed
    # The working set from which threads on several chiplets are faster, as a profile measured it.
    crossing_bytes: int | None = None

    def __bool__(self) -> bool:
        return bool(self.peak_bytes or self.broadcast_bytes)


NO_DEMAND = Demand()


def check_demand(demand: Demand, traits: EngineTraits) -> None:
    """Raises UsageError for a demand that is impossible for the engine."""
    if demand.broadcast_bytes and not traits.distributed:
        raise UsageError(
            f"--broadcast: instances of {traits.name} are whole servers and broadcast nothing; "
            "remove the option"
        )


def check_room(plan: Plan, traits: EngineTraits) -> None:
    """Raises UsageError if instances of a plan read from a file exceed their memory. The plan was
    then edited, or made without the user's configuration, which `traits` includes."""
    for slot in plan.slots:
        beside = beside_heap_bytes(slot.heap_bytes, traits)
        if slot.heap_bytes + beside > slot.memory_bytes:
            asked, remedy = "", f"make a new plan: atoll plan {plan.engine} -o PLAN"
            if traits.asked_bytes:
                asked = f" ({gib(traits.asked_bytes)} of it for {traits.asked_source})"
                remedy = (
                    f"plan with that configuration: atoll plan {plan.engine} --base DIR -o PLAN"
                )
            raise UsageError(
                f"slot {slot.index} has {gib(slot.memory_bytes)}, less than {gib(slot.heap_bytes)} "
                f"of heap plus {gib(beside)} of off-heap memory{asked}; {remedy}"
            )


def room_bytes(heap_bytes: int, traits: EngineTraits) -> int:
    """The memory that the queries of an instance with that heap may take at one time."""
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
    """Warns if a slot lacks room. `fewer`: the largest number of instances with room; 0 for
    none."""
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
        remedy = f"-n {count} has room"
    elif len(slots) > 1:
        remedy = "fewer instances do not help; give the engine more memory"
    else:
        remedy = "more instances do not help; give the engine more memory"
    if slot.memory_policy is MemoryPolicy.BIND and not traits.jvm:
        remedy += (
            "; a bound instance that exceeds its node's memory is killed even if other nodes have "
            "free memory, while --memory preferred lets it use other nodes"
        )
    who = f"{len(lacking)} of {len(slots)} instances" if len(slots) > 1 else "they"
    return [
        f"{' and '.join(parts)} ({demand.source}): slot {slot.index} needs {gib(need)}, but its "
        f"queries have {gib(room)}; {who} would spill to disk or fail; {remedy}"
    ]
