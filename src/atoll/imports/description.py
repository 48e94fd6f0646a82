"""A machine as other tools describe it, and the same as files of /sys and /proc. Pure.

Sources: kernel.org, Documentation/admin-guide/cputopology.rst and ABI/stable/sysfs-devices-node;
hwloc 2.9, topology-linux.c, for which of the files it reads.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from atoll.errors import TopologyError
from atoll.schema.cpulist import format_cpulist
from atoll.schema.machine import Notice
from atoll.schema.text import one_line

MOST_CPUS = 8192  # as many as Linux can be built for
_MOST_BYTES = 1 << 56
_CACHE = re.compile(r"L([1-5])([DI]?)")
_KINDS = {"": "Unified", "D": "Data", "I": "Instruction"}


@dataclass(frozen=True, slots=True)
class Cpu:
    """A hardware thread that is online. CPUs with equal ids share the thing; None: unknown."""

    number: int
    core: Hashable | None = None
    package: int | None = None
    node: int | None = None
    caches: Mapping[str, Hashable] = field(default_factory=dict)  # by name: L1D, L1I, L2, L3


@dataclass(frozen=True, slots=True)
class Description:
    kind: Literal["lscpu", "node-resource-topology"]
    cpus: tuple[Cpu, ...]
    offline: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()  # of `cpus`, those that are for others
    cache_bytes: Mapping[str, int] = field(default_factory=dict)  # of one cache, by name
    memory_bytes: Mapping[int, int] = field(default_factory=dict)  # by node
    distances: Mapping[int, tuple[int, ...]] = field(default_factory=dict)  # to all nodes, in order
    architecture: str = ""
    cpu_vendor: str = ""
    cpu_model: str = ""
    notices: tuple[Notice, ...] = ()


def checked(described: Description) -> Description:
    """Raises TopologyError for what no machine has and files of /sys cannot hold."""
    numbers = [*(cpu.number for cpu in described.cpus), *described.offline]
    nodes = _nodes(described)
    if not described.cpus:
        raise TopologyError("names no CPU that is online")
    for what, number in (("CPU", max(numbers)), ("node", max(nodes, default=0))):
        if number >= MOST_CPUS:
            raise TopologyError(f"{what} {number}: Linux has at most {MOST_CPUS}")
    seen: set[int] = set()
    for number in numbers:
        if number in seen:
            raise TopologyError(f"CPU {number} appears twice; give one table of a machine")
        seen.add(number)
    for what in ("core", "package", "node"):
        lacking = [cpu.number for cpu in described.cpus if getattr(cpu, what) is None]
        if 0 < len(lacking) < len(described.cpus):
            raise TopologyError(f"CPU {lacking[0]} has no {what}, but others have one")
    sizes = (*described.memory_bytes.values(), *described.cache_bytes.values())
    if max(sizes, default=0) >= _MOST_BYTES:
        raise TopologyError(f"a size of {max(sizes):.1e} bytes: no machine has so much")
    rows = described.distances
    for distance in (distance for row in rows.values() for distance in row):
        if not 10 <= distance <= 255:
            raise TopologyError(f"a distance of {distance:.6g}: Linux has 10 to 255")
    if (
        nodes
        and rows
        and (list(rows) != nodes or any(len(row) != len(nodes) for row in rows.values()))
    ):
        raise TopologyError(f"the distances are not between its nodes ({format_cpulist(nodes)})")
    return described


def sysfs_of(described: Description) -> dict[str, str]:
    """The files, by their paths below a root."""
    numbers = [cpu.number for cpu in described.cpus]
    present = format_cpulist([*numbers, *described.offline])
    system = "sys/devices/system"
    architecture = one_line(described.architecture)
    files = {
        f"{system}/cpu/online": format_cpulist(numbers),
        f"{system}/cpu/offline": format_cpulist(described.offline),
        f"{system}/cpu/present": present,
        f"{system}/cpu/possible": present,
        "proc/hwloc-nofile-info": f"OSName: Linux\nArchitecture: {architecture}",
        "proc/cpuinfo": "\n".join(
            f"processor\t: {number}\nvendor_id\t: {one_line(described.cpu_vendor)}\n"
            f"model name\t: {one_line(described.cpu_model)}\n"
            for number in numbers
        ),
    }
    if described.memory_bytes:
        files["proc/meminfo"] = _meminfo(sum(described.memory_bytes.values()))
    cores = _sets((cpu.number, (cpu.package, cpu.core)) for cpu in described.cpus)
    packages = _sets((cpu.number, cpu.package) for cpu in described.cpus)
    for cpu in described.cpus:
        folder = f"{system}/cpu/cpu{cpu.number}"
        # hwloc wants this file. If it names no CPU, there is no core.
        members = cores[cpu.package, cpu.core] if cpu.core is not None else []
        files[f"{folder}/topology/thread_siblings"] = _mask(members)
        if members:
            # A core's number is that of its first CPU: tools number cores in several ways.
            files[f"{folder}/topology/core_id"] = str(members[0])
        if cpu.package is not None:
            files[f"{folder}/topology/physical_package_id"] = str(cpu.package)
            files[f"{folder}/topology/core_siblings"] = _mask(packages[cpu.package])
    files |= _cache_files(described, f"{system}/cpu")
    members_of = _sets((cpu.number, cpu.node) for cpu in described.cpus)
    nodes = _nodes(described)
    for node in nodes:
        folder = f"{system}/node/node{node}"
        files[f"{folder}/cpumap"] = _mask(members_of.get(node, ()))
        files[f"{folder}/meminfo"] = f"Node {node} {_meminfo(described.memory_bytes.get(node, 0))}"
        if described.distances:
            files[f"{folder}/distance"] = " ".join(map(str, described.distances[node]))
    if nodes:
        files[f"{system}/node/online"] = format_cpulist(nodes)
    return {name: f"{text}\n" for name, text in files.items()}


def _nodes(described: Description) -> list[int]:
    with_cpus = {cpu.node for cpu in described.cpus if cpu.node is not None}
    return sorted(with_cpus | described.memory_bytes.keys()) if with_cpus else []


def _sets(pairs: Iterable[tuple[int, Hashable]]) -> dict[Hashable, list[int]]:
    found: dict[Hashable, list[int]] = defaultdict(list)
    for number, shared in pairs:
        found[shared].append(number)
    return {shared: sorted(numbers) for shared, numbers in found.items()}


def _mask(numbers: Iterable[int]) -> str:
    """The kernel's form of a set: hexadecimal, commas between 32 bits, the highest first."""
    bits = sum(1 << number for number in numbers)
    words = max(1, -(-bits.bit_length() // 32))
    return ",".join(f"{bits >> 32 * word & 0xFFFFFFFF:08x}" for word in reversed(range(words)))


def _meminfo(size_bytes: int) -> str:
    return f"MemTotal: {size_bytes >> 10} kB"


def _cache_files(described: Description, folder: str) -> dict[str, str]:
    """Only at the first CPU of each cache, where hwloc reads it: there are many CPUs, and making a
    file takes time. The caches at a CPU are numbered from 0 without a gap."""
    found: dict[tuple[str, Hashable], list[int]] = defaultdict(list)
    for cpu in described.cpus:
        for name, shared in cpu.caches.items():
            found[name, (cpu.package, shared)].append(cpu.number)
    files = {}
    counts: Counter[int] = Counter()
    for (name, _), members in found.items():
        match = _CACHE.fullmatch(name)
        assert match is not None  # readers give no other names
        first = min(members)
        own = f"{folder}/cpu{first}/cache/index{counts[first]}"
        counts[first] += 1
        files[f"{own}/level"] = match[1]
        files[f"{own}/type"] = _KINDS[match[2]]
        files[f"{own}/size"] = f"{described.cache_bytes.get(name, 0) >> 10}K"
        files[f"{own}/shared_cpu_map"] = _mask(members)
    return files
