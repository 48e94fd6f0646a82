"""Machines for tests, built without a topology library. CPUs are numbered as Linux does it:
first threads of all cores first, then the second threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from atoll.schema.machine import (
    Allowed,
    Chiplet,
    ChipletSource,
    Core,
    Distances,
    L3Domain,
    Machine,
    Nic,
    NumaNode,
    Origin,
    Package,
    Summary,
)
from atoll.schema.plan import Plan

GIB = 1 << 30
MIB = 1 << 20


@dataclass(frozen=True)
class NodeShape:
    """A NUMA node: the sizes of its chiplets in cores, and cores outside any chiplet."""

    chiplets: tuple[int, ...] = ()
    rest: int = 0
    memory_gib: float = 64
    subtype: str = ""


def build(
    packages: Sequence[Sequence[NodeShape]],
    *,
    smt: int = 1,
    cpu_model: str = "Test CPU",
    l3_bytes: int = 32 * MIB,
    nics: tuple[Nic, ...] = (),
    source: ChipletSource = ChipletSource.L3,
) -> Machine:
    """A machine of that shape, all of it allowed."""
    total = sum(sum(node.chiplets) + node.rest for package in packages for node in package)
    cores: list[Core] = []
    chiplets: list[Chiplet] = []
    nodes: list[NumaNode] = []
    packs: list[Package] = []
    l3s: list[L3Domain] = []

    def add_core(package: int, node: int, l3: int | None) -> Core:
        index = len(cores)
        pus = tuple(index + total * thread for thread in range(smt))
        core = Core(
            index=index, os_index=index, pus=pus, package=package, die=None, l3=l3, node=node
        )
        cores.append(core)
        return core

    for package, shapes in enumerate(packages):
        package_first = len(cores)
        for shape in shapes:
            node, node_first = len(nodes), len(cores)
            for size in shape.chiplets:
                own = [add_core(package, node, len(l3s)) for _ in range(size)]
                pus = _pus(own)
                l3s.append(L3Domain(index=len(l3s), size_bytes=l3_bytes, pus=pus))
                chiplets.append(
                    Chiplet(
                        index=len(chiplets),
                        pus=pus,
                        cores=tuple(core.index for core in own),
                        node=node,
                        package=package,
                        source=source,
                        l3_bytes=l3_bytes,
                    )
                )
            for _ in range(shape.rest):
                add_core(package, node, None)
            nodes.append(
                NumaNode(
                    index=node,
                    os_index=node,
                    package=package,
                    pus=_pus(cores[node_first:]),
                    memory_bytes=int(shape.memory_gib * GIB),
                    subtype=shape.subtype,
                )
            )
        packs.append(
            Package(
                index=package,
                os_index=package,
                pus=_pus(cores[package_first:]),
                cpu_model=cpu_model,
            )
        )
    order = tuple(range(len(nodes)))
    package_of = [node.package for node in nodes]
    values = tuple(
        tuple(10 if a == b else 12 if package_of[a] == package_of[b] else 32 for b in order)
        for a in order
    )
    return Machine(
        summary=Summary(
            packages=len(packs),
            numa_nodes=len(nodes),
            chiplets=len(chiplets),
            l3=len(l3s),
            cores=len(cores),
            pus=smt * total,
        ),
        chiplets=tuple(chiplets),
        origin=Origin(kind="synthetic", where="test"),
        architecture="x86_64",
        cpu_model=cpu_model,
        memory_bytes=sum(node.memory_bytes for node in nodes),
        smt=smt > 1,
        packages=tuple(packs),
        dies=(),
        nodes=tuple(nodes),
        l3=tuple(l3s),
        cores=tuple(cores),
        caches=(),
        distances=Distances(nodes=order, values=values),
        nics=nics,
        allowed=Allowed(pus=_pus(cores), nodes=order),
    )


def milan(
    packages: int = 2,
    chiplets: int = 8,
    cores: int = 8,
    smt: int = 1,
    nodes_per_package: int = 1,
    memory_gib: float = 512,
) -> Machine:
    """AMD EPYC Milan, as in olap-on-chiplets table 1: chiplets that own an L3 each.

    `chiplets` and `memory_gib` are a package's.
    """
    node = NodeShape((cores,) * (chiplets // nodes_per_package), 0, memory_gib / nodes_per_package)
    return build(
        [[node] * nodes_per_package] * packages, smt=smt, cpu_model="AMD EPYC 7713 64-Core"
    )


def plain(cores: int = 2, *, smt: int = 1, nodes: int = 1, memory_gib: float = 16) -> Machine:
    """A machine without chiplets; the nodes are packages of their own."""
    return build([[NodeShape((), cores, memory_gib)]] * nodes, smt=smt)


def restrict(
    machine: Machine,
    pus: Sequence[int] | None = None,
    nodes: Sequence[int] | None = None,
    memory_max_bytes: int | None = None,
) -> Machine:
    """The machine under a narrower mask or cgroup."""
    allowed = Allowed(
        pus=tuple(pus) if pus is not None else machine.allowed.pus,
        nodes=tuple(nodes) if nodes is not None else machine.allowed.nodes,
        memory_max_bytes=memory_max_bytes,
    )
    return machine.model_copy(update={"allowed": allowed})


def _pus(cores: Sequence[Core]) -> tuple[int, ...]:
    return tuple(sorted(pu for core in cores for pu in core.pus))


def listening(plan: Plan, *, coordinator: str, slots: Sequence[str]) -> Plan:
    """The plan with instances at these addresses, in turn."""
    assert plan.coordinator is not None
    return plan.model_copy(
        update={
            "coordinator": plan.coordinator.model_copy(update={"address": coordinator}),
            "slots": tuple(
                slot.model_copy(update={"address": slots[slot.index % len(slots)]})
                for slot in plan.slots
            ),
        }
    )
