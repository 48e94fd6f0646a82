"""The machine: a computer's topology. Format `atoll/machine` 1.

Made by the native library (native/src/topology). The terms are hwloc's. Indices: `index` is logical
(hwloc's order, 0..n-1), `os_index` is the kernel's number; `pus` fields are always OS indices of
PUs, sorted; `node` fields are OS indices of NUMA nodes (as numactl uses them); `package`, `die`,
`l3`, `core` fields are logical indices. A machine contains all PUs that hwloc sees; `allowed` lists
those PUs, and the memory, that this process may use (affinity mask, cgroup). `summary` counts as
hwloc's own tools do: what the cgroup allows, regardless of the mask. If hwloc sees no cores
(summary.cores is 0), `cores` has one entry per PU. A package, die, node or L3 that lost its CPUs to
a restriction when the machine was recorded has no `pus`; `cores` has only cores with PUs.
"""

from __future__ import annotations

import json
from enum import StrEnum
from functools import cached_property
from typing import Any, Literal

from atoll.schema.plain import Plain, record, tuples


class ChipletSource(StrEnum):
    """The source of the knowledge about chiplets, in order of precedence."""

    USER = "user"
    L3 = "l3"
    DIE = "die"
    SUB_NUMA = "sub-numa"
    LATENCY = "latency"
    BANDWIDTH = "bandwidth"
    CATALOG = "catalog"


@record
class Summary(Plain):
    """Counts of allowed hwloc objects, including CPU-less NUMA nodes."""

    packages: int
    numa_nodes: int
    chiplets: int
    l3: int
    cores: int
    pus: int


@record
class Chiplet(Plain):
    """At least two cores, fewer than a package, sharing the fastest path to each other."""

    index: int
    pus: tuple[int, ...]
    cores: tuple[int, ...]  # logical core indices
    node: int | None  # OS index of the local NUMA node; None if there is none, or several
    package: int | None
    source: ChipletSource
    l3_bytes: int = 0  # size of the L3 that the chiplet owns; 0 if it owns none


@record
class Package(Plain):
    index: int
    os_index: int
    pus: tuple[int, ...]
    cpu_model: str = ""


@record
class Die(Plain):
    index: int
    os_index: int
    package: int | None
    pus: tuple[int, ...]


@record
class NumaNode(Plain):
    """A memory node. `pus` is empty for a CPU-less node, `memory_bytes` 0 for a memory-less one."""

    index: int
    os_index: int
    package: int | None
    pus: tuple[int, ...]
    memory_bytes: int
    subtype: str = ""  # hwloc's name if it gives one: DRAM, HBM, NVM, CXL-DRAM ...


@record
class Cache(Plain):
    level: int
    kind: Literal["unified", "data", "instruction"]
    size_bytes: int
    line_bytes: int
    ways: int  # hwloc: 0 unknown, -1 fully associative
    pus: tuple[int, ...]


@record
class L3Domain(Plain):
    index: int
    size_bytes: int
    pus: tuple[int, ...]


@record
class Core(Plain):
    index: int
    os_index: int
    pus: tuple[int, ...]
    package: int | None
    die: int | None
    l3: int | None
    node: int | None


@record
class Distances(Plain):
    """The kernel's NUMA distance matrix (SLIT), `values[i][j]` from `nodes[i]` to `nodes[j]`."""

    nodes: tuple[int, ...]  # OS indices
    values: tuple[tuple[int, ...], ...]


@record
class Nic(Plain):
    name: str
    node: int | None
    pci: str = ""
    rate_mbit_s: int | None = None  # as negotiated; None: unknown, as for most virtual cards


@record
class Allowed(Plain):
    """The CPUs and nodes that the affinity mask and the cgroup allow this process."""

    pus: tuple[int, ...]
    nodes: tuple[int, ...]  # OS indices of NUMA nodes
    memory_max_bytes: int | None = None  # the tightest memory.max up the cgroup tree; None: none


@record
class Origin(Plain):
    kind: Literal["live", "xml", "synthetic", "sysfs", "lscpu", "node-resource-topology"]
    where: str = ""  # path or synthetic string
    hwloc: str = ""  # API version of the library that read it


@record
class Notice(Plain):
    """Something implausible. `code` is stable and documented in docs/topo.md."""

    code: str
    message: str


@record
class Machine(Plain):
    summary: Summary
    chiplets: tuple[Chiplet, ...]
    format: Literal["atoll/machine"] = "atoll/machine"
    version: Literal[1] = 1
    origin: Origin
    architecture: str = ""
    cpu_model: str = ""
    memory_bytes: int
    smt: bool
    packages: tuple[Package, ...]
    dies: tuple[Die, ...]
    nodes: tuple[NumaNode, ...]
    l3: tuple[L3Domain, ...]
    cores: tuple[Core, ...]
    caches: tuple[Cache, ...]
    distances: Distances | None = None
    nics: tuple[Nic, ...] = ()
    offline_cpus: tuple[int, ...] = ()
    allowed: Allowed
    warnings: tuple[Notice, ...] = ()

    @cached_property
    def pus(self) -> tuple[int, ...]:
        """All PUs' OS indices, sorted."""
        return tuple(sorted(pu for core in self.cores for pu in core.pus))

    @cached_property
    def machine_id(self) -> str:
        """Identifies the layout: the same CPUs, nodes, dies and L3 domains give the same 16 hex
        digits.

        Ignores memory sizes, limits and names, because they change from boot to boot, and chiplets,
        because the user and profiles add them without changing the meaning of CPU numbers.
        """
        import hashlib  # not above: `atoll topo` seldom needs it, and it loads OpenSSL

        layout = [
            [core.pus for core in self.cores],
            [(node.os_index, node.pus) for node in self.nodes],
            [die.pus for die in self.dies],
            [l3.pus for l3 in self.l3],
        ]
        return hashlib.sha256(json.dumps(layout).encode()).hexdigest()[:16]

    @property
    def title(self) -> str:
        """The machine's name for a heading."""
        if self.cpu_model:
            return self.cpu_model
        return "synthetic machine" if self.origin.kind == "synthetic" else "unknown CPU"

    @cached_property
    def allowed_cores(self) -> tuple[Core, ...]:
        """Cores with at least one allowed PU, with only the allowed PUs in `pus`."""
        allowed = frozenset(self.allowed.pus)
        return tuple(
            core
            if allowed.issuperset(core.pus)
            else core.model_copy(update={"pus": tuple(pu for pu in core.pus if pu in allowed)})
            for core in self.cores
            if not allowed.isdisjoint(core.pus)
        )

    @cached_property
    def node_by_os_index(self) -> dict[int, NumaNode]:
        return {node.os_index: node for node in self.nodes}


_PARTS = {"summary": Summary, "origin": Origin, "allowed": Allowed}
_LISTS = {
    "packages": Package,
    "dies": Die,
    "nodes": NumaNode,
    "l3": L3Domain,
    "cores": Core,
    "caches": Cache,
    "nics": Nic,
    "warnings": Notice,
}


def machine_of(document: dict[str, Any]) -> Machine:
    """The machine in a document of the native library, whose types need no check.

    Raises TypeError or ValueError where the library and these records have different fields.
    """
    fields = dict(document)
    for name, kind in _PARTS.items():
        fields[name] = kind(**tuples(fields[name]))
    for name, kind in _LISTS.items():
        fields[name] = tuple(kind(**tuples(item)) for item in fields.get(name, ()))
    fields["chiplets"] = tuple(
        Chiplet(**tuples(item) | {"source": ChipletSource(item["source"])})
        for item in fields["chiplets"]
    )
    if fields.get("distances") is not None:
        fields["distances"] = Distances(**tuples(fields["distances"]))
    return Machine(**tuples(fields))
