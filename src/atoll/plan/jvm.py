"""What a JVM must be told of its place, and what it makes of it by itself. Pure.

HotSpot turns UseNUMA off where its memory is bound to one node, and JDK 25 also where the nodes
of its CPUs and those of its memory differ ('The process memory and cpu node configuration does
not match', os_linux.cpp; JDK 17 does not look, see tests/vm/test_jvm.py). So it is set only where
they agree. AlwaysPreTouch has every page of the heap in its place before the first query, and a
node that is too small found out then; its price is the time to write the heap once, and memory
that is taken also where it is not needed. On a machine with one node it decides nothing.

A JVM's collector has as many threads as its CPUs up to 8, and 5 of 8 above (WorkerPolicy of
HotSpot 17 and 25): so on larger machines several JVMs have more of them in sum than one JVM has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from atoll.schema.plan import MemoryPolicy, Plan, Slot


def uses_numa(slot: Slot, slots: Sequence[Slot]) -> bool:
    """Whether UseNUMA does something in this slot and stays on."""
    return len(slot.nodes) > 1 and _memory_nodes(slot, slots) == set(slot.nodes)


def loses_numa(slot: Slot, slots: Sequence[Slot]) -> bool:
    """Whether UseNUMA would do something but for CPU and memory masks that differ."""
    memory = _memory_nodes(slot, slots)
    return len(memory) > 1 and memory != set(slot.nodes)


def pretouches(plan: Plan) -> bool:
    """The same under every policy, so that a bench compares placement only."""
    return plan.machine.numa_nodes > 1


def placement_flags(slot: Slot, plan: Plan) -> list[str]:
    """The flags of a worker's JVM. Its collector's threads follow from ActiveProcessorCount, unless
    the plan says them."""
    flags = [f"-XX:ActiveProcessorCount={slot.threads}"]
    if slot.parallel_gc_threads is not None:
        flags.append(f"-XX:ParallelGCThreads={slot.parallel_gc_threads}")
    if slot.concurrent_gc_threads is not None:
        flags.append(f"-XX:ConcGCThreads={slot.concurrent_gc_threads}")
    if uses_numa(slot, plan.slots):
        flags.append("-XX:+UseNUMA")
    if pretouches(plan):
        # All of the heap is touched only if all of it is there from the start.
        flags += [f"-Xms{slot.heap_bytes >> 20}m", "-XX:+AlwaysPreTouch"]
    return flags


class GcThreads(NamedTuple):
    parallel: int  # while the program stands still
    concurrent: int  # G1's, beside it


def gc_threads(slots: Sequence[Slot]) -> GcThreads:
    """How many threads the collectors (G1) of these slots' JVMs have in sum, by HotSpot's rule."""
    each = [cpus if (cpus := slot.threads) <= 8 else 8 + (cpus - 8) * 5 // 8 for slot in slots]
    return GcThreads(sum(each), sum(max((parallel + 2) // 4, 1) for parallel in each))


def _memory_nodes(slot: Slot, slots: Sequence[Slot]) -> set[int]:
    """The nodes that its memory may come from."""
    match slot.memory_policy:
        case MemoryPolicy.FIRST_TOUCH | MemoryPolicy.LOCAL:
            # No mask: every node. Those that no slot's CPUs are on are unknown here.
            return {node for other in slots for node in other.nodes}
        case MemoryPolicy.PREFERRED:
            return set()  # the wish for one node, which UseNUMA would override
        case _:
            return set(slot.memory_nodes)
