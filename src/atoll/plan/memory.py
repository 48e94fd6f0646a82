"""Decides where a slot's memory lies, and how large it is.

For instances on one node, binding to the local node was the best policy and interleaving the worst
(numa-distributed-engines section IV-C). An instance over several nodes has no local node, so it
interleaves over its own nodes. A machine with one node leaves no choice.

The machine's budget is determined once and divided by cores, so that under every policy the shares
add up to the same total, and a benchmark compares placement only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from atoll.errors import UsageError
from atoll.plan.cores import Group
from atoll.schema.machine import Machine
from atoll.schema.plan import MemoryPolicy
from atoll.schema.size import gib


@dataclass(frozen=True, slots=True)
class MemoryMap:
    """A machine's memory as its usable cores see it."""

    source: dict[int | None, int | None]  # node of a core -> node that its memory comes from
    home_nodes: tuple[int, ...]  # allowed nodes with memory and cores, in use or not
    weighted_nodes: tuple[int, ...]  # also those without cores (CXL, HBM), but not a GPU's own
    bytes_per_core: dict[int | None, int]  # by the node that the memory comes from
    budget_bytes: int  # the total of all slots' shares, apart from rounding
    limited_by: str  # what limits the budget, as text

    @property
    def several(self) -> bool:
        return len(self.home_nodes) > 1

    def nodes_of(self, group: Group) -> tuple[int | None, ...]:
        """The nodes that a group's memory comes from; None if that is unknown."""
        nodes = {self.source[place.node] for place in group}
        return tuple(sorted(nodes, key=lambda node: (node is None, node)))

    def share_bytes(self, group: Group) -> int:
        return sum(self.bytes_per_core[self.source[place.node]] for place in group)


class Aside(NamedTuple):
    """The coordinator's memory and that of other services, set aside before the instances get
    their shares."""

    size_bytes: int
    cores: Group = ()  # whose memory it takes; empty: it may run anywhere
    others_bytes: int = 0  # for other services, from all nodes alike


def memory_map(machine: Machine, places: Group, aside: Aside) -> MemoryMap:
    """The memory for `places`, minus what is set aside.

    Raises UsageError if the topology shows no memory, or too little.
    """
    homes = {core.node for core in machine.cores}
    allowed = set(machine.allowed.nodes)
    sizes = {
        node.os_index: node.memory_bytes
        for node in machine.nodes
        if node.os_index in allowed and node.memory_bytes > 0
    }
    home_nodes = tuple(sorted(node for node in sizes if node in homes))
    subtypes = {node.os_index: node.subtype for node in machine.nodes}
    weighted_nodes = tuple(sorted(node for node in sizes if "GPU" not in subtypes[node]))
    cores = {place.node for place in (*places, *aside.cores)}
    source = {node: _nearest(machine, node, sizes, home_nodes) for node in cores}
    users = Counter(source[place.node] for place in places)
    if None in users:  # the topology shows no node for some core's memory: share all evenly
        source = dict.fromkeys(source, None)
        users = Counter({None: len(places)})
        installed: dict[int | None, int] = {
            None: sum(sizes[node] for node in home_nodes) or machine.memory_bytes
        }
    else:
        installed = {node: sizes[node] for node in users if node is not None}
    own = {source[place.node] for place in aside.cores}
    if own and None not in installed and own.isdisjoint(installed):  # nodes without workers
        room = sum(sizes[node] for node in own if node is not None)
        if room <= aside.size_bytes:
            raise UsageError(
                f"the coordinator's nodes have {gib(room)}, but it takes {gib(aside.size_bytes)}; "
                "remove --coordinator so that it may use memory of any node"
            )
    weights = _less(installed, aside.size_bytes, own & installed.keys() if own else installed)
    if small := [node for node in own & weights.keys() if own and weights[node] <= 0]:
        raise UsageError(
            f"node {small[0]} has {gib(installed[small[0]])}, but the coordinator there takes "
            f"{gib(aside.size_bytes)}; remove --coordinator so that it may use memory of any node"
        )
    weights = _less(weights, aside.others_bytes, weights)
    taken = aside.size_bytes + aside.others_bytes
    total = sum(installed.values())
    limits = [(total, sum(weights.values()), "the memory of the nodes in use")]
    if machine.memory_bytes:
        size = machine.memory_bytes
        limits.append((size, size - taken, "the machine's memory"))
    if machine.allowed.memory_max_bytes is not None:
        size = machine.allowed.memory_max_bytes
        limits.append((size, size - taken, "the cgroup's memory.max"))
    size, budget, limited_by = min(limits, key=lambda limit: limit[1])
    if total <= 0 or size <= 0:
        raise UsageError(
            "the topology shows no memory, so no heap can be sized; add it to a synthetic string "
            "(NUMANode:2(memory=64GB)), or the output of 'numactl -H' to lscpu's"
        )
    if budget <= 0 and aside.others_bytes:
        raise UsageError(
            f"--reserve {gib(aside.others_bytes)}: {limited_by} is {gib(size)}, so nothing is "
            "left for the engine; reserve less"
        )
    if budget <= 0:
        raise UsageError(
            f"{limited_by} is {gib(size)}, and the coordinator alone takes "
            f"{gib(aside.size_bytes)}; give the process more memory"
        )
    whole = sum(weights.values())
    return MemoryMap(
        source=source,
        home_nodes=home_nodes,
        weighted_nodes=weighted_nodes,
        bytes_per_core={
            node: weight * budget // (whole * users[node]) for node, weight in weights.items()
        },
        budget_bytes=budget,
        limited_by=limited_by,
    )


def _less(
    sizes: Mapping[int | None, int], aside_bytes: int, own: Collection[int | None]
) -> dict[int | None, int]:
    """`sizes` minus the part that lies on the nodes `own`, in proportion."""
    whole = sum(sizes[node] for node in own)
    return {
        node: size - -(-aside_bytes * size // whole) if node in own and whole else size
        for node, size in sizes.items()
    }


def place_memory(
    memory: MemoryMap, group: Group, asked: MemoryPolicy | None, *, machine_wide: bool
) -> tuple[MemoryPolicy, tuple[int, ...]]:
    """The memory policy of one slot and its nodes.

    `machine_wide`: the slot has no mask (WIM), so only a policy that the user requested is set.
    """
    known = tuple(node for node in memory.nodes_of(group) if node is not None)
    if machine_wide:
        known = memory.home_nodes or known
    if asked is None:
        if machine_wide or not memory.several or not known:
            return MemoryPolicy.FIRST_TOUCH, ()
        asked = MemoryPolicy.BIND if len(known) == 1 else MemoryPolicy.INTERLEAVE
        return asked, known
    match asked:
        case MemoryPolicy.FIRST_TOUCH | MemoryPolicy.LOCAL:
            return asked, ()
        case _ if not known:
            raise UsageError(
                f"--memory {asked}: this topology has no allowed NUMA node with memory; "
                "remove the option"
            )
        case MemoryPolicy.BIND:
            return asked, known
        case MemoryPolicy.PREFERRED:  # the system call accepts one node
            cores = Counter(memory.source[place.node] for place in group)
            return asked, (max(known, key=lambda node: (cores[node], -node)),)
        case MemoryPolicy.INTERLEAVE:
            # As in the paper: over every node with memory and cores.
            return asked, memory.home_nodes or known
        case MemoryPolicy.WEIGHTED_INTERLEAVE:
            # Meant to use slower memory in proportion to its bandwidth, so including nodes without
            # cores.
            return asked, memory.weighted_nodes


def _nearest(
    machine: Machine, node: int | None, sizes: dict[int, int], home_nodes: tuple[int, ...]
) -> int | None:
    """`node` itself if it has allowed memory, otherwise the nearest node that has."""
    if node is None:
        return home_nodes[0] if len(sizes) == 1 and home_nodes else None
    if node in sizes:
        return node
    distances = machine.distances
    away: dict[int, int] = {}
    if distances is not None and node in distances.nodes:
        row = distances.values[distances.nodes.index(node)]
        away = dict(zip(distances.nodes, row, strict=True))
    package = machine.node_by_os_index[node].package if node in machine.node_by_os_index else None
    return min(
        sizes,
        key=lambda other: (
            away.get(other, 255),  # the kernel's value for unreachable
            other not in home_nodes,
            machine.node_by_os_index[other].package != package,
            other,
        ),
        default=None,
    )
