"""A machine laid out for drawing: packages, in them NUMA nodes, in them islands of cores. Pure.

An island is a chiplet, or the cores of a node that are in no chiplet. The terminal's picture and
the SVG are both drawn from this.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import Literal, NamedTuple

from atoll.schema.machine import Chiplet, ChipletSource, Core, Machine, Nic, NumaNode, Package
from atoll.schema.size import bit_rate, gib
from atoll.schema.text import plural

_SOURCES = {
    ChipletSource.USER: "as specified by the user",
    ChipletSource.L3: "by L3",
    ChipletSource.DIE: "by die",
    ChipletSource.SUB_NUMA: "by sub-NUMA node",
    ChipletSource.LATENCY: "by measured latency",
    ChipletSource.BANDWIDTH: "by measured bandwidth",
    ChipletSource.CATALOG: "by CPU model",
}


class CoreCell(NamedTuple):
    core: int
    pus: tuple[int, ...]
    allowed: Literal["all", "some", "none"]


class Island(NamedTuple):
    chiplet: int | None  # None: cores outside any chiplet
    l3_bytes: int  # of the L3s inside it; 0 if it shares one
    cells: tuple[CoreCell, ...]

    @property
    def pus(self) -> tuple[int, ...]:
        return tuple(sorted(pu for cell in self.cells for pu in cell.pus))


class NodeArea(NamedTuple):
    """A NUMA node with cores; its node is None if the topology has none for them."""

    node: NumaNode | None
    islands: tuple[Island, ...]


class PackageArea(NamedTuple):
    """A package; its package is None if the topology has none."""

    package: Package | None
    nodes: tuple[NodeArea, ...]
    shared_l3_bytes: int  # of L3s that several of its islands share

    @property
    def islands(self) -> list[Island]:
        return [island for area in self.nodes for island in area.islands]

    @property
    def name(self) -> str:
        return "machine" if self.package is None else f"package {self.package.index}"


class MachineLayout(NamedTuple):
    packages: tuple[PackageArea, ...]
    memory_only: tuple[NumaNode, ...]  # nodes without cores


def lay_out(machine: Machine) -> MachineLayout:
    """The areas of a machine. A chiplet that spans several nodes is in the first of them."""
    chiplet_of = {core: chiplet for chiplet in machine.chiplets for core in chiplet.cores}
    # Package -> node -> chiplet -> cores.
    tree: dict[int | None, dict[int | None, dict[int | None, list[Core]]]] = {}
    first_node: dict[int, int | None] = {}
    for core in sorted(machine.cores, key=lambda core: core.index):
        chiplet = chiplet_of.get(core.index)
        node = core.node if chiplet is None else first_node.setdefault(chiplet.index, core.node)
        islands = tree.setdefault(core.package, {}).setdefault(node, {})
        islands.setdefault(None if chiplet is None else chiplet.index, []).append(core)
    packages = {package.index: package for package in machine.packages}
    chiplets = {chiplet.index: chiplet for chiplet in machine.chiplets}
    allowed = frozenset(machine.allowed.pus)
    areas: list[PackageArea] = []
    for index, nodes in tree.items():
        node_areas = tuple(
            NodeArea(
                node=None if node is None else machine.node_by_os_index.get(node),
                islands=tuple(
                    _island(machine, None if key is None else chiplets[key], cores, allowed)
                    for key, cores in islands.items()
                ),
            )
            for node, islands in nodes.items()
        )
        package = None if index is None else packages.get(index)
        areas.append(PackageArea(package, node_areas, _shared_l3_bytes(machine, node_areas)))
    drawn = {area.node.os_index for one in areas for area in one.nodes if area.node}
    memory_only = tuple(node for node in machine.nodes if node.os_index not in drawn)
    return MachineLayout(tuple(areas), memory_only)


def _shared_l3_bytes(machine: Machine, nodes: tuple[NodeArea, ...]) -> int:
    sets = [frozenset(island.pus) for area in nodes for island in area.islands]
    package = frozenset[int]().union(*sets)
    return sum(
        l3.size_bytes
        for l3 in machine.l3
        if package.issuperset(l3.pus) and not any(pus.issuperset(l3.pus) for pus in sets)
    )


def _island(
    machine: Machine, chiplet: Chiplet | None, cores: list[Core], allowed: frozenset[int]
) -> Island:
    cells: list[CoreCell] = []
    for core in cores:
        count = sum(pu in allowed for pu in core.pus)
        state: Literal["all", "some", "none"] = (
            "all" if count == len(core.pus) else "some" if count else "none"
        )
        cells.append(CoreCell(core.index, core.pus, state))
    if chiplet is not None:
        return Island(chiplet.index, chiplet.l3_bytes, tuple(cells))
    pus = frozenset(pu for core in cores for pu in core.pus)
    inside = [l3.size_bytes for l3 in machine.l3 if l3.pus and pus.issuperset(l3.pus)]
    return Island(None, sum(inside), tuple(cells))


# ---- Labels ---------------------------------------------------------------------------------


def counts(machine: Machine) -> list[str]:
    """'2 packages', '2 NUMA nodes', '16 chiplets (by L3)', '16 L3', '128 cores', '1 TiB'.

    '4 of 128 cores' if the cgroup leaves some: the picture shows all of them.
    """
    summary = machine.summary
    sources = dict.fromkeys(_SOURCES[chiplet.source] for chiplet in machine.chiplets)
    chiplets = f"{_of(summary.chiplets, machine.chiplets, 'chiplet')} ({', '.join(sources)})"
    return [
        _of(summary.packages, machine.packages, "package"),
        _of(summary.numa_nodes, machine.nodes, "NUMA node"),
        chiplets if summary.chiplets else "no known chiplets",
        _of(summary.l3, machine.l3, "L3").removesuffix("s"),
        _of(summary.cores, machine.cores, "core"),
        *([_of(summary.pus, machine.pus, "thread")] if machine.smt else []),
        gib(machine.memory_bytes),
    ]


def _of(count: int, all_of_them: Sized, noun: str) -> str:
    """'2 cores'; '1 of 2 cores' if the machine has more than are counted."""
    total = len(all_of_them)
    return f"{count} of {plural(total, noun)}" if 0 < count < total else plural(count, noun)


def facts(machine: Machine, layout: MachineLayout, dot: str) -> list[tuple[str, str]]:
    """What the picture does not show, by name; no empty text."""
    memory = "; ".join(node_label(node, dot) for node in layout.memory_only)
    nics = [_nic_label(nic) for nic in machine.nics]
    named = (
        ("memory only", memory),
        ("distances", distances_label(machine)),
        ("network", ", ".join(nics)),
    )
    return [(name, text) for name, text in named if text]


def _nic_label(nic: Nic) -> str:
    """'eth0 (node 0, 10 Gbit/s)'."""
    node = [] if nic.node is None else [f"node {nic.node}"]
    known = [*node, *([bit_rate(nic.rate_mbit_s)] if nic.rate_mbit_s else [])]
    return f"{nic.name} ({', '.join(known)})" if known else nic.name


def node_label(node: NumaNode | None, dot: str, package: Package | None = None) -> str:
    """'node 0 · 512 GiB'; `package` is the one in which it is drawn."""
    if node is None:
        return ""
    memory = gib(node.memory_bytes) if node.memory_bytes else "no memory"
    kind = f" {node.subtype}" if node.subtype not in ("", "DRAM") else ""
    shared = " shared by packages" if package is not None and node.package is None else ""
    return f"node {node.os_index}{dot}{memory}{kind}{shared}"


def distances_label(machine: Machine) -> str:
    """'10 within a node, 12 in a package, 32 across packages'; '' if nothing is known.

    'between nodes' if a node belongs to no single package.
    """
    distances = machine.distances
    if distances is None or len(distances.nodes) < 2:
        return ""
    packages = {node.os_index: node.package for node in machine.nodes}
    values_by_kind: dict[str, set[int]] = {
        "within a node": set(),
        "in a package": set(),
        "across packages": set(),
        "between nodes": set(),
    }
    for a, row in zip(distances.nodes, distances.values, strict=True):
        for b, value in zip(distances.nodes, row, strict=True):
            if a == b:
                kind = "within a node"
            elif packages.get(a) is None or packages.get(b) is None:
                kind = "between nodes"
            else:
                kind = "in a package" if packages[a] == packages[b] else "across packages"
            values_by_kind[kind].add(value)
    return ", ".join(
        f"{_range(values)} {kind}" for kind, values in values_by_kind.items() if values
    )


def _range(values: set[int]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low}-{high}"
