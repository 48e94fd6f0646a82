"""Where the coordinator sits: its own choice, whatever the workers' policy.

An instance that also coordinates on one core slowed queries under WIC to 0.84x and 0.65x
(olap-on-chiplets section 4.2), so the default is `shared`: no mask, anywhere on the machine.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from atoll.errors import UsageError
from atoll.plan.cores import Group
from atoll.plan.memory import MemoryMap
from atoll.plan.sizing import LARGEST_COMPRESSED_BYTES
from atoll.schema.machine import Machine
from atoll.schema.plan import CoordinatorKind, CoordinatorPlace, EngineTraits, MemoryPolicy, Slot
from atoll.schema.size import MIB

_OF_A_NODE = 4  # one part in so many of a node's memory is the most for a coordinator on it


class CoordinatorChoice(NamedTuple):
    kind: CoordinatorKind
    cores: int = 0  # for reserved


def parse_coordinator(text: str) -> CoordinatorChoice:
    """'shared', 'in-worker' or 'reserved:K'. Raises UsageError."""
    name, colon, number = text.partition(":")
    if name in (CoordinatorKind.SHARED, CoordinatorKind.IN_WORKER) and not colon:
        return CoordinatorChoice(CoordinatorKind(name))
    if name == CoordinatorKind.RESERVED and re.fullmatch(r"\d{1,9}", number, re.ASCII):
        return CoordinatorChoice(CoordinatorKind.RESERVED, int(number))
    raise UsageError(
        f"--coordinator {text}: is shared, in-worker or reserved:K (K cores of its own)"
    )


def with_coordinator_sized(
    traits: EngineTraits, machine: Machine, choice: CoordinatorChoice | None
) -> EngineTraits:
    """With the `coordinator_bytes` that this machine comes to, whatever the policy: the coordinator
    is no part of what a bench compares. A heap above 31 GiB would lose compressed pointers, and no
    coordinator needs as much."""
    allowed = set(machine.allowed.nodes)
    nodes = {node.os_index: node.memory_bytes for node in machine.nodes if node.os_index in allowed}
    sizes = (sum(nodes.values()), machine.memory_bytes, machine.allowed.memory_max_bytes)
    memory = min((size for size in sizes if size), default=0)
    share = min(int(memory * traits.coordinator_ratio), LARGEST_COMPRESSED_BYTES)
    if choice is not None and choice.kind is not CoordinatorKind.SHARED:
        # It lies on one node then, whose workers need the rest.
        homes = {nodes.get(core.node, 0) for core in machine.cores if core.node is not None}
        share = min(share, min(homes - {0}, default=memory) // _OF_A_NODE)
    share = share // MIB * MIB
    return traits.model_copy(update={"coordinator_bytes": max(traits.coordinator_bytes, share)})


def reserve(
    places: Group, choice: CoordinatorChoice | None, traits: EngineTraits
) -> tuple[Group, Group]:
    """(the workers' cores, the coordinator's own): the last K, so they spoil one chiplet only."""
    if choice is None:
        return places, ()
    if not traits.has_coordinator:
        raise UsageError(f"--coordinator: {traits.name} has none; leave it out")
    if choice.kind is not CoordinatorKind.RESERVED:
        return places, ()
    if not 1 <= choice.cores < len(places):
        raise UsageError(
            f"--coordinator reserved:{choice.cores}: the machine has {len(places)} usable cores "
            f"and the workers need at least one; reserve 1 to {max(1, len(places) - 1)}"
            if len(places) > 1
            else "--coordinator reserved: the machine has one usable core, and workers need it"
        )
    return places[: -choice.cores], places[-choice.cores :]


def coordinator_cores(choice: CoordinatorChoice | None, own: Group, first: Group) -> Group:
    """The cores whose memory it takes; none: it may run anywhere. `first` is slot 0's."""
    if choice is not None and choice.kind is CoordinatorKind.IN_WORKER:
        return first
    return own


def place_coordinator(
    choice: CoordinatorChoice | None,
    traits: EngineTraits,
    own: Group,
    memory: MemoryMap,
    first: Slot,
) -> CoordinatorPlace | None:
    """None where the engine has no coordinator. `first` is slot 0."""
    if not traits.has_coordinator:
        return None
    kind = choice.kind if choice else CoordinatorKind.SHARED
    cpus: tuple[int, ...] | None = None
    nodes: tuple[int, ...] = ()
    if kind is CoordinatorKind.IN_WORKER:
        cpus = first.cpus
        nodes = first.memory_nodes if first.memory_policy is MemoryPolicy.BIND else ()
    elif kind is CoordinatorKind.RESERVED:
        cpus = tuple(sorted(cpu for place in own for cpu in place.cpus))
        local = {place.node for place in own}
        nodes = tuple(node for node in memory.home_nodes if node in local) if memory.several else ()
    return CoordinatorPlace(
        kind=kind, cpus=cpus, memory_nodes=nodes, heap_bytes=traits.coordinator_bytes
    )
