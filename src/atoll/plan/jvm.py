"""What a JVM must be told of its place, and what it makes of it by itself. Pure.

HotSpot turns UseNUMA off where its memory is bound to one node, and JDK 25 also where the nodes
of its CPUs and those of its memory differ ('The process memory and cpu node configuration does
not match', os_linux.cpp; JDK 17 does not look, see tests/vm/test_jvm.py). So it is set only where
they agree. AlwaysPreTouch has every page of the heap in its place before the first query, and a
node that is too small found out then; its price is the time to write the heap once, and memory
that is taken also where it is not needed. On a machine with one node it decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

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
    """The flags of a worker's JVM. ParallelGCThreads follows from ActiveProcessorCount."""
    flags = [f"-XX:ActiveProcessorCount={slot.threads}"]
    if uses_numa(slot, plan.slots):
        flags.append("-XX:+UseNUMA")
    if pretouches(plan):
        # All of the heap is touched only if all of it is there from the start.
        flags += [f"-Xms{slot.heap_bytes >> 20}m", "-XX:+AlwaysPreTouch"]
    return flags


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
