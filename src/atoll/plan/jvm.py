"""The flags that place a JVM, and how a JVM reacts to its place. Pure.

HotSpot turns UseNUMA off if its memory is bound to one node, and JDK 25 also if the nodes of its
CPUs and those of its memory differ ('The process memory and cpu node configuration does not
match', os_linux.cpp; JDK 17 does not check, see tests/vm/test_jvm.py). So the flag is set only if
they agree. AlwaysPreTouch puts every page of the heap in its place before the first query, so a
node that is too small shows at the start. Its price is the time to write the heap once, and memory
that is taken even if it is not needed. On a machine with one node the flag makes no difference.

A JVM's collector has as many threads as CPUs up to 8, and 5 for every 8 CPUs above (WorkerPolicy of
HotSpot 17 and 25). On larger machines several JVMs therefore have more GC threads in total than
one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from atoll.schema.plan import MemoryPolicy, Plan, Slot


def uses_numa(slot: Slot, slots: Sequence[Slot]) -> bool:
    """Whether UseNUMA has an effect in this slot and stays on."""
    return len(slot.nodes) > 1 and _memory_nodes(slot, slots) == set(slot.nodes)


def loses_numa(slot: Slot, slots: Sequence[Slot]) -> bool:
    """Whether UseNUMA would have an effect if CPU and memory masks agreed."""
    memory = _memory_nodes(slot, slots)
    return len(memory) > 1 and memory != set(slot.nodes)


def pretouches(plan: Plan) -> bool:
    """The same under every policy, so that a benchmark compares placement only."""
    return plan.machine.numa_nodes > 1


def placement_flags(slot: Slot, plan: Plan) -> list[str]:
    """The flags of a worker's JVM. The number of GC threads follows from ActiveProcessorCount
    unless the plan sets it. A slot without a mask (wim) has no ceiling: its JVM counts the CPUs
    itself, as people start it."""
    flags = []
    if slot.cpus is not None:
        flags.append(f"-XX:ActiveProcessorCount={slot.threads}")
    if slot.parallel_gc_threads is not None:
        flags.append(f"-XX:ParallelGCThreads={slot.parallel_gc_threads}")
    if slot.concurrent_gc_threads is not None:
        flags.append(f"-XX:ConcGCThreads={slot.concurrent_gc_threads}")
    if uses_numa(slot, plan.slots):
        flags.append("-XX:+UseNUMA")
    if pretouches(plan):
        # All of the heap is touched only if it is committed from the start.
        flags += [f"-Xms{slot.heap_bytes >> 20}m", "-XX:+AlwaysPreTouch"]
    return flags


class GcThreads(NamedTuple):
    parallel: int  # while the program stands still
    concurrent: int  # G1's, while it runs


def gc_threads(slots: Sequence[Slot]) -> GcThreads:
    """The total GC threads (G1) of these slots' JVMs by HotSpot's rule."""
    each = [cpus if (cpus := slot.threads) <= 8 else 8 + (cpus - 8) * 5 // 8 for slot in slots]
    return GcThreads(sum(each), sum(max((parallel + 2) // 4, 1) for parallel in each))


def _memory_nodes(slot: Slot, slots: Sequence[Slot]) -> set[int]:
    """The nodes that its memory may come from."""
    match slot.memory_policy:
        case MemoryPolicy.FIRST_TOUCH | MemoryPolicy.LOCAL:
            # No mask: every node. Nodes without any slot's CPUs are unknown here.
            return {node for other in slots for node in other.nodes}
        case MemoryPolicy.PREFERRED:
            return set()  # a preference for one node, which UseNUMA would override
        case _:
            return set(slot.memory_nodes)
