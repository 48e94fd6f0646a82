"""What a machine has for operators: its nodes and chiplets with their cores, memory bandwidth and
distances. From the topology, and from a profile where it measured. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from atoll.operators.assignment import Distances
from atoll.operators.loads import Room
from atoll.operators.subgraph import Weights
from atoll.schema.machine import Core, Machine
from atoll.schema.profile import NodeMatrix, Profile

USABLE = 0.8  # of the measured local bandwidth: latency rises steeply beyond


@dataclass(frozen=True, slots=True)
class Chiplet:
    index: int | None  # None: cores of the node outside any chiplet
    cpus: tuple[int, ...]  # one for each core
    l3_bytes: float


@dataclass(frozen=True, slots=True)
class Node:
    os_index: int
    chiplets: tuple[Chiplet, ...]
    memory_gbs: float | None  # that operators may use; None: not measured
    memory_bytes: int

    @property
    def cores(self) -> int:
        return sum(len(chiplet.cpus) for chiplet in self.chiplets)

    @property
    def merit(self) -> float:
        """The more bandwidth the better, then the more memory, then the more cores."""
        return (self.memory_gbs or 0) + self.memory_bytes / 1e15 + self.cores / 1e9

    @property
    def room(self) -> Room:
        return Room(self.cores, inf if self.memory_gbs is None else self.memory_gbs)


class Cpu(NamedTuple):
    chiplet: int | None
    node: int


@dataclass(frozen=True, slots=True)
class Place:
    """The nodes that have usable cores, and how they are connected."""

    nodes: tuple[Node, ...]
    cpus: Mapping[int, Cpu]  # that are used: the first of each core
    weights: Weights  # measured GB/s, the lower of both ways; else what the kernel's distances say
    distances: Distances  # measured ns; else the kernel's distances


def place_of(machine: Machine, profile: Profile | None) -> Place:
    """The usable part of the machine: one CPU for each core that the mask and the cgroup allow."""
    # Figures of an emulated CPU mean nothing.
    measured = profile.nodes if profile and not profile.emulated else None
    cores: dict[int, list[Core]] = {}
    for core in machine.allowed_cores:
        cores.setdefault(_node(core), []).append(core)
    nodes = tuple(
        Node(
            node,
            _chiplets(machine, cores[node]),
            _local_gbs(measured, node),
            machine.node_by_os_index[node].memory_bytes
            if node in machine.node_by_os_index
            else machine.memory_bytes,
        )
        for node in sorted(cores)
    )
    numbers = [node.os_index for node in nodes]
    kernel = _kernel_distances(machine, numbers)
    distances = _measured(measured, numbers, latency=True) or kernel
    weights = _measured(measured, numbers, latency=False) or [
        [1 / kernel[a][b] for b in range(len(nodes))] for a in range(len(nodes))
    ]
    cpus = {
        cpu: Cpu(chiplet.index, node.os_index)
        for node in nodes
        for chiplet in node.chiplets
        for cpu in chiplet.cpus
    }
    return Place(nodes, dict(sorted(cpus.items())), weights, distances)


def _node(core: Core) -> int:
    """0 on machines without nodes, as the kernel numbers a single one."""
    return core.node if core.node is not None else 0


def _chiplets(machine: Machine, cores: Sequence[Core]) -> tuple[Chiplet, ...]:
    of = {core: chiplet for chiplet in machine.chiplets for core in chiplet.cores}
    groups: dict[int, list[int]] = {}
    for core in cores:
        chiplet = of.get(core.index)
        groups.setdefault(-1 if chiplet is None else chiplet.index, []).append(core.pus[0])
    size = {chiplet.index: chiplet.l3_bytes for chiplet in machine.chiplets}
    return tuple(
        Chiplet(
            None if index < 0 else index,
            tuple(groups[index]),
            float(size.get(index, 0)) or inf,  # 0: it owns no L3
        )
        for index in sorted(groups)
    )


def _local_gbs(measured: NodeMatrix | None, node: int) -> float | None:
    if measured is None or node not in measured.cpu_nodes or node not in measured.memory_nodes:
        return None
    row, column = measured.cpu_nodes.index(node), measured.memory_nodes.index(node)
    found = measured.bandwidth_gbs[row][column]
    return None if found is None else USABLE * found.value


def _measured(
    measured: NodeMatrix | None, nodes: Sequence[int], *, latency: bool
) -> list[list[float]] | None:
    """Between all nodes: the mean latency, or the lower bandwidth, of both ways. None: some figure
    is missing."""
    if measured is None or not {*nodes} <= {*measured.cpu_nodes} & {*measured.memory_nodes}:
        return None
    figures = measured.latency_ns if latency else measured.bandwidth_gbs

    def one_way(a: int, b: int) -> float | None:
        found = figures[measured.cpu_nodes.index(a)][measured.memory_nodes.index(b)]
        return None if found is None else found.value

    rows: list[list[float]] = []
    for a in nodes:
        rows.append([])
        for b in nodes:
            there, back = one_way(a, b), one_way(b, a)
            if there is None or back is None:
                return None
            rows[-1].append((there + back) / 2 if latency else min(there, back))
    return rows


def _kernel_distances(machine: Machine, nodes: Sequence[int]) -> list[list[float]]:
    found = machine.distances
    if found is None or not {*nodes} <= {*found.nodes}:
        return [[10.0 if a == b else 20.0 for b in nodes] for a in nodes]
    at = [found.nodes.index(node) for node in nodes]
    return [[(found.values[a][b] + found.values[b][a]) / 2 for b in at] for a in at]
