"""Places the coordinator, independently of the workers' policy.

Under WIC an instance that also coordinates on its one core slowed queries to 0.84x and 0.65x
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

_OF_A_NODE = 4  # a coordinator takes at most this fraction (1/4) of the memory of its node


class CoordinatorChoice(NamedTuple):
    kind: CoordinatorKind
    cores: int = 0  # for reserved


def parse_coordinator(text: str) -> CoordinatorChoice:
    """Parses 'shared', 'in-worker' or 'reserved:K'. Raises UsageError."""
    name, colon, number = text.partition(":")
    if name in (CoordinatorKind.SHARED, CoordinatorKind.IN_WORKER) and not colon:
        return CoordinatorChoice(CoordinatorKind(name))
    if name == CoordinatorKind.RESERVED and re.fullmatch(r"\d{1,9}", number, re.ASCII):
        return CoordinatorChoice(CoordinatorKind.RESERVED, int(number))
    raise UsageError(
        f"--coordinator {text}: use shared, in-worker or reserved:K (K cores of its own)"
    )


def with_coordinator_sized(
    traits: EngineTraits,
    machine: Machine,
    choice: CoordinatorChoice | None,
    *,
    reserve_bytes: int = 0,
) -> EngineTraits:
    """The traits with the `coordinator_bytes` for this machine. The size does not depend on the
    policy, because benchmarks do not compare coordinators. A heap above 31 GiB would lose
    compressed pointers, and no coordinator needs that much. `reserve_bytes`: for other services."""
    allowed = set(machine.allowed.nodes)
    nodes = {node.os_index: node.memory_bytes for node in machine.nodes if node.os_index in allowed}
    sizes = (sum(nodes.values()), machine.memory_bytes, machine.allowed.memory_max_bytes)
    memory = min((size for size in sizes if size), default=0)
    memory = max(0, memory - reserve_bytes)
    share = min(int(memory * traits.coordinator_ratio), LARGEST_COMPRESSED_BYTES)
    if choice is not None and choice.kind is not CoordinatorKind.SHARED:
        # It then lies on one node, whose workers need the rest.
        homes = {nodes.get(core.node, 0) for core in machine.cores if core.node is not None}
        share = min(share, min(homes - {0}, default=memory) // _OF_A_NODE)
    share = share // MIB * MIB
    return traits.model_copy(update={"coordinator_bytes": max(traits.coordinator_bytes, share)})


def reserve(
    places: Group, choice: CoordinatorChoice | None, traits: EngineTraits
) -> tuple[Group, Group]:
    """(the workers' cores, the coordinator's own): the last K, so that only one chiplet is
    split."""
    if choice is None:
        return places, ()
    if not traits.has_coordinator:
        raise UsageError(f"--coordinator: {traits.name} has no coordinator; remove the option")
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
    """The cores whose memory it uses; empty: it may run anywhere. `first` is slot 0's."""
    if choice is not None and choice.kind is CoordinatorKind.IN_WORKER:
        return first
    return own


def place_coordinator(
    choice: CoordinatorChoice | None,
    traits: EngineTraits,
    own: Group,
    memory: MemoryMap,
    first: Slot,
    *,
    anywhere: Group = (),
) -> CoordinatorPlace | None:
    """None if the engine has no coordinator. `first` is slot 0. `anywhere`: the cores to which
    the deployment is limited, which also limit a shared coordinator; empty: it is not limited."""
    if not traits.has_coordinator:
        return None
    kind = choice.kind if choice else CoordinatorKind.SHARED
    cpus: tuple[int, ...] | None = None
    nodes: tuple[int, ...] = ()
    if kind is CoordinatorKind.SHARED and anywhere:
        cpus = tuple(sorted(cpu for place in anywhere for cpu in place.cpus))
    elif kind is CoordinatorKind.IN_WORKER:
        cpus = first.cpus
        nodes = first.memory_nodes if first.memory_policy is MemoryPolicy.BIND else ()
    elif kind is CoordinatorKind.RESERVED:
        cpus = tuple(sorted(cpu for place in own for cpu in place.cpus))
        local = {place.node for place in own}
        nodes = tuple(node for node in memory.home_nodes if node in local) if memory.several else ()
    return CoordinatorPlace(
        kind=kind,
        cpus=cpus,
        memory_nodes=nodes,
        heap_bytes=traits.coordinator_bytes,
        address=first.address,
    )
