"""A machine laid out for drawing: packages, in them NUMA nodes, in them islands of cores.

An island is a chiplet, or the cores of a node that are in no chiplet. Both pictures, the
terminal's and the SVG, are drawn from this.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from atoll.schema.machine import Chiplet, ChipletSource, Core, Machine, NumaNode, Package
from atoll.schema.size import gib

SOURCE_WORDS = {
    ChipletSource.USER: "as the user says",
    ChipletSource.L3: "by L3",
    ChipletSource.DIE: "by die",
    ChipletSource.SUB_NUMA: "by sub-NUMA node",
    ChipletSource.LATENCY: "by measured latency",
    ChipletSource.BANDWIDTH: "by measured bandwidth",
    ChipletSource.CATALOG: "by CPU model",
}


class Cell(NamedTuple):
    """A core."""

    core: int
    pus: tuple[int, ...]
    allowed: Literal["all", "some", "none"]


class Island(NamedTuple):
    chiplet: int | None  # None: cores outside any chiplet
    l3_bytes: int  # of the L3s that lie in it; 0 where it shares one
    cells: tuple[Cell, ...]

    @property
    def pus(self) -> tuple[int, ...]:
        return tuple(sorted(pu for cell in self.cells for pu in cell.pus))


class Shore(NamedTuple):
    """A NUMA node with cores; None where the topology tells of no node."""

    node: NumaNode | None
    islands: tuple[Island, ...]


class Block(NamedTuple):
    """A package; None where the topology tells of none."""

    package: Package | None
    shores: tuple[Shore, ...]
    shared_l3_bytes: int  # of L3s that several of its islands share

    @property
    def islands(self) -> list[Island]:
        return [island for shore in self.shores for island in shore.islands]


class Chart(NamedTuple):
    blocks: tuple[Block, ...]
    memory_only: tuple[NumaNode, ...]  # nodes without cores


def chart(machine: Machine) -> Chart:
    allowed = frozenset(machine.allowed.pus)
    cores = sorted(machine.cores, key=lambda core: core.index)
    chiplet_of = {core: chiplet for chiplet in machine.chiplets for core in chiplet.cores}
    packages = {package.index: package for package in machine.packages}
    # Package -> node -> chiplet -> cores. A chiplet over several nodes is drawn on its first.
    tree: dict[int | None, dict[int | None, dict[int | None, list[Core]]]] = {}
    home: dict[int, int | None] = {}
    for core in cores:
        chiplet = chiplet_of.get(core.index)
        node = core.node if chiplet is None else home.setdefault(chiplet.index, core.node)
        shores = tree.setdefault(core.package, {})
        islands = shores.setdefault(node, {})
        islands.setdefault(None if chiplet is None else chiplet.index, []).append(core)
    chiplets = {chiplet.index: chiplet for chiplet in machine.chiplets}
    blocks: list[Block] = []
    for package, shores in tree.items():
        drawn_shores = tuple(
            Shore(
                node=None if node is None else machine.node_by_os_index.get(node),
                islands=tuple(
                    _island(machine, None if key is None else chiplets[key], members, allowed)
                    for key, members in islands.items()
                ),
            )
            for node, islands in shores.items()
        )
        sets = [frozenset(island.pus) for shore in drawn_shores for island in shore.islands]
        whole = frozenset[int]().union(*sets)
        blocks.append(
            Block(
                package=None if package is None else packages.get(package),
                shores=drawn_shores,
                shared_l3_bytes=sum(
                    l3.size_bytes
                    for l3 in machine.l3
                    if whole.issuperset(l3.pus) and not any(pus.issuperset(l3.pus) for pus in sets)
                ),
            )
        )
    drawn = {shore.node.os_index for block in blocks for shore in block.shores if shore.node}
    return Chart(
        blocks=tuple(blocks),
        memory_only=tuple(node for node in machine.nodes if node.os_index not in drawn),
    )


def chiplet_words(machine: Machine) -> str:
    """'16 chiplets (by L3)', 'no chiplets known'."""
    count = machine.summary.chiplets
    if not count:
        return "no chiplets known"
    sources = dict.fromkeys(SOURCE_WORDS[chiplet.source] for chiplet in machine.chiplets)
    return f"{counted(count, 'chiplet')} ({', '.join(sources)})"


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def node_words(node: NumaNode | None, dot: str, package: Package | None = None) -> str:
    """'node 0 · 512 GiB'; `package` is the one that it is drawn in."""
    if node is None:
        return ""
    memory = gib(node.memory_bytes) if node.memory_bytes else "no memory"
    kind = f" {node.subtype}" if node.subtype not in ("", "DRAM") else ""
    shared = " shared by packages" if package is not None and node.package is None else ""
    return f"node {node.os_index}{dot}{memory}{kind}{shared}"


def distance_words(machine: Machine) -> str:
    """'10 within a node, 12 in a package, 32 across packages'; '' where nothing is known.

    'between nodes' where a node belongs to no one package.
    """
    distances = machine.distances
    if distances is None or len(distances.nodes) < 2:
        return ""
    packages = {node.os_index: node.package for node in machine.nodes}
    found: dict[str, set[int]] = {
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
            found[kind].add(value)
    return ", ".join(f"{_span(values)} {kind}" for kind, values in found.items() if values)


def _span(values: set[int]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low}-{high}"


def _island(
    machine: Machine, chiplet: Chiplet | None, cores: list[Core], allowed: frozenset[int]
) -> Island:
    cells: list[Cell] = []
    for core in cores:
        count = sum(pu in allowed for pu in core.pus)
        state: Literal["all", "some", "none"] = (
            "all" if count == len(core.pus) else "some" if count else "none"
        )
        cells.append(Cell(core=core.index, pus=core.pus, allowed=state))
    if chiplet is not None:
        return Island(chiplet=chiplet.index, l3_bytes=chiplet.l3_bytes, cells=tuple(cells))
    pus = frozenset(pu for core in cores for pu in core.pus)
    inside = [l3.size_bytes for l3 in machine.l3 if pus.issuperset(l3.pus)]
    return Island(chiplet=None, l3_bytes=sum(inside), cells=tuple(cells))
