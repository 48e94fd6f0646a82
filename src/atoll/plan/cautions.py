"""The warnings that a plan gives its reader. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from atoll.plan.capacity import about_demand
from atoll.plan.jvm import loses_numa
from atoll.plan.request import Request, sets_masks
from atoll.plan.sizing import (
    LARGEST_COMPRESSED_BYTES,
    Heaps,
    beside_heap_bytes,
    fixed_bytes,
)
from atoll.schema.cpulist import format_cpulist
from atoll.schema.plan import CoordinatorKind, Malloc, MemoryPolicy, Slot
from atoll.schema.size import MIB, gib

# What an imported machine lacks that a plan depends on.
_OF_IMPORTS = ("cpus-assumed", "dies-unknown", "kubelet-reserved", "topology-manager-policy")


def warnings(
    request: Request, slots: Sequence[Slot], heaps: Heaps, fewer: Callable[[], int]
) -> list[str]:
    """`fewer`: the largest number of instances with room for the demand; 0: not even one."""
    return [
        *(one.message for one in request.machine.warnings if one.code in _OF_IMPORTS),
        *_about_sizes(request),
        *_about_nodes(request),
        *_about_malloc(request),
        *_about_coordinator(request, slots),
        *_about_heaps(request, slots, heaps),
        *about_demand(slots, request.traits, request.demand, fewer),
        *_about_bound_nodes(request, slots),
        *_about_jvms(request, slots),
    ]


def _about_nodes(request: Request) -> list[str]:
    machine, memory = request.machine, request.memory
    warnings = []
    for node in sorted({place.node for place in request.places if place.node is not None}):
        source = memory.source[node]
        if source != node and source is not None:
            warnings.append(
                f"node {node} has no memory that is allowed; its cores use node {source}'s"
            )
    if machine.nodes and None in memory.source.values() and len(machine.nodes) > 1:
        warnings.append("some cores have no local memory node; first touch places their memory")
    return warnings


def _about_sizes(request: Request) -> list[str]:
    """The system's own figures disagree. The plan uses the nodes': it must bind memory to them."""
    found = [one.message for one in request.machine.warnings if one.code == "memory-mismatch"]
    return [
        f"{message.partition(';')[0]}; heaps are sized from the nodes' figure, so check them, and "
        "set them with --heap if it is wrong"
        for message in found
        if request.choices.get("heap_bytes") is None
    ]


def _about_malloc(request: Request) -> list[str]:
    malloc = request.choices.get("malloc", Malloc.SYSTEM)
    jvm = "a JVM's heap is not allocated with malloc" if request.traits.jvm else ""
    why = request.traits.own_malloc or jvm
    if malloc is Malloc.SYSTEM or not why:
        return []
    return [f"--malloc {malloc}: {why}, so it changes little"]


def _about_coordinator(request: Request, slots: Sequence[Slot]) -> list[str]:
    warnings = []
    if not sets_masks(request.policy, request.choices):
        reserved = ["the coordinator's reserved cores"] if request.own else []
        reserved += ["the cores of --reserve-cores"] if request.choices.get("reserve_cores") else []
        warnings += [f"wim sets no mask, so the worker may also run on {what}" for what in reserved]
    choice = request.choices.get("coordinator")
    kind = choice.kind if choice else None
    if kind is CoordinatorKind.IN_WORKER and slots[0].cores == 1 and len(slots) > 1:
        warnings.append(
            "the coordinator shares slot 0's single core; this slowed queries to 0.65x in a "
            "measurement (olap-on-chiplets, section 4.2)"
        )
    return warnings


def _about_heaps(request: Request, slots: Sequence[Slot], heaps: Heaps) -> list[str]:
    warnings = []
    limit = request.heap_limit_bytes
    # Compared plans have all been reduced to the same total.
    is_lower = limit is None or sum(heaps.sizes_bytes) < limit // MIB * MIB
    if heaps.cut_for_pointers and is_lower:
        halves = 2 * len(slots)
        enough = halves <= len(request.places) and not request.traits.asked_bytes
        warnings.append(
            f"{_some(heaps.cut_for_pointers, slots, 'was', 'were')} cut to "
            f"{gib(LARGEST_COMPRESSED_BYTES)} to keep compressed pointers, so the total heap "
            "is smaller than under other policies"
            + (f"; -n {halves} would use all of it" if enough else "")
        )
    if heaps.plain_pointers:
        warnings.append(
            f"{_some(heaps.plain_pointers, slots, 'is', 'are')} too large for compressed pointers "
            "(32 GiB and more), so objects take more room in them"
        )
    if heaps.cut_for_overhead and len(slots) > 1 and is_lower:
        warnings.append(
            f"{len(slots)} instances have a fixed overhead of {gib(fixed_bytes(request.traits))} "
            "each, so the total heap is smaller than with fewer instances"
        )
    return warnings


def _some(count: int, slots: Sequence[Slot], one: str, many: str) -> str:
    """'the heap is', '1 of 8 heaps is', '8 of 8 heaps are'."""
    if len(slots) == 1:
        return f"the heap {one}"
    return f"{count} of {len(slots)} heaps {one if count == 1 else many}"


def _about_bound_nodes(request: Request, slots: Sequence[Slot]) -> list[str]:
    """A coordinator without a mask takes its memory from whichever node it happens to run on."""
    traits = request.traits
    choice = request.choices.get("coordinator")
    roams = traits.has_coordinator and (choice is None or choice.kind is CoordinatorKind.SHARED)
    weight = traits.coordinator_bytes + traits.coordinator_overhead_bytes
    if not (roams and weight):
        return []
    taken: Counter[int] = Counter()
    for slot in slots:
        if slot.memory_policy is MemoryPolicy.BIND and len(slot.memory_nodes) == 1:
            taken[slot.memory_nodes[0]] += slot.heap_bytes + beside_heap_bytes(
                slot.heap_bytes, traits
            )
    sizes = {node.os_index: node.memory_bytes for node in request.machine.nodes}
    short = [node for node in sorted(taken) if taken[node] + weight > sizes[node]]
    if not short:
        return []
    return [
        f"the coordinator ({gib(weight)}) may run on any node, and node "
        f"{format_cpulist(short)} would then lack memory for the bound instances even if other "
        "nodes have free memory: give it a place with --coordinator reserved:K, or let instances "
        "use other nodes with --memory preferred"
    ]


def _about_jvms(request: Request, slots: Sequence[Slot]) -> list[str]:
    if not request.traits.jvm:
        return []
    losing = [slot.index for slot in slots if loses_numa(slot, slots)]
    if not losing:
        return []
    return [
        f"instances with memory on other nodes than their CPUs start without UseNUMA (slot "
        f"{format_cpulist(losing)}), because a JVM would turn it off"
    ]
