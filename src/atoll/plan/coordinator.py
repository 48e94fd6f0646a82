"""Where the coordinator sits: its own choice, whatever the workers' policy.

An instance that also coordinates on one core slowed Presto under WIC to 0.84x and 0.65x
(olap-on-chiplets section 4.2), so the default is `shared`: no mask, anywhere on the machine.
"""

from __future__ import annotations

from typing import NamedTuple

from atoll.errors import UsageError
from atoll.plan.cores import Group
from atoll.plan.memory import MemoryMap
from atoll.schema.plan import CoordinatorKind, CoordinatorPlace, EngineTraits, MemoryPolicy, Slot


class CoordinatorChoice(NamedTuple):
    kind: CoordinatorKind
    cores: int = 0  # for reserved


def parse_coordinator(text: str) -> CoordinatorChoice:
    """'shared', 'in-worker' or 'reserved:K'. Raises UsageError."""
    name, colon, number = text.partition(":")
    if name in (CoordinatorKind.SHARED, CoordinatorKind.IN_WORKER) and not colon:
        return CoordinatorChoice(CoordinatorKind(name))
    if name == CoordinatorKind.RESERVED and number.isascii() and number.isdigit():
        return CoordinatorChoice(CoordinatorKind.RESERVED, int(number))
    raise UsageError(
        f"--coordinator {text}: is shared, in-worker or reserved:K (K cores of its own)"
    )


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
