"""The simulated caches of a guest: a topology as the description that native/src/cachesim reads.

Pure. Sizes and latencies are those of a CPU of the catalog, the sizes of L2 and L3 also the
topology's own. The latencies are those of an idle machine. They serve to order events in simulated
time, not to predict seconds.
"""

from __future__ import annotations

from atoll.guest import catalog
from atoll.guest.catalog import SHARDS, Cpu, Size
from atoll.guest.topology import Topology, TopologyRefused

# Of pc and q35: with at least so much memory, what lies above 2 GiB moves behind the devices'
# addresses, which end at 4 GiB; with less, what lies above 2.75 GiB (hw/i386/pc_q35.c).
_MUCH_MIB = 0xB0000000 >> 20
_LOW_MIB = 2048
_ABOVE_MIB = 4096
MOST_CHIPLETS = 63  # machine.hpp
# A simulated core waits for each line. A real one has about ten under way when memory limits it:
# Zen 3 and Golden Cove have 24 and 16 buffers for misses of L1, and not all are in use.
LINES_UNDER_WAY = 10


def describe(topology: Topology, quantum: int) -> str:
    """The description. Raises TopologyRefused if such caches cannot be simulated."""
    try:
        return _described(topology, quantum)
    except TopologyRefused as fault:
        raise TopologyRefused(f"{topology.name}: {fault}") from None


def _described(topology: Topology, quantum: int) -> str:
    name = topology.caches or topology.cpu
    cpu = catalog.cpus().get(name)
    if cpu is None:
        raise TopologyRefused(
            f"caches: {name} is not in the catalog of simulated caches; "
            f"wants one of {', '.join(catalog.cpus())}"
        )
    if topology.packages * topology.l3 > MOST_CHIPLETS:
        raise TopologyRefused(f"l3: at most {MOST_CHIPLETS} in the machine can be simulated")
    lines = [f"l1 {_sets(cpu.l1)} {cpu.l1.ways}", _l2(topology, cpu), _l3(topology, cpu)]
    lines += [f"latency {source} {cycles}" for source, cycles in _latency(topology, cpu).items()]
    lines += [f"clock {cpu.clock_mhz}", f"quantum {quantum}"]
    lines += [f"bandwidth {what} {limit}" for what, limit in _bandwidth(topology, cpu).items()]
    lines += [f"memory {node} {start << 20} {mib << 20}" for node, start, mib in _memory(topology)]
    cores: dict[tuple[int, int, int], int] = {}
    for position, place in enumerate(topology.places()):
        core = cores.setdefault((place.package, place.l3, place.core), len(cores))
        chiplet = place.package * topology.l3 + place.l3
        where = f"chiplet {chiplet} node {place.node} package {place.package}"
        lines.append(f"cpu {position} core {core} {where}")
    return "\n".join(lines) + "\n"


def _l2(topology: Topology, cpu: Cpu) -> str:
    size = Size(topology.l2_kib or cpu.l2.kib, cpu.l2.ways)
    sets = _sets(size)
    if size.kib % size.step_kib or sets.bit_count() != 1:
        raise TopologyRefused(
            f"l2_kib: wants {size.step_kib} times a power of two, with the {size.ways} ways of "
            f"{cpu.model}"
        )
    if size.kib < cpu.l1.kib:
        raise TopologyRefused(f"l2_kib: wants at least {cpu.l1.kib}, the L1 of {cpu.model}")
    return f"l2 {sets} {size.ways}"


def _l3(topology: Topology, cpu: Cpu) -> str:
    """One L3 of the package is shared out to the topology's."""
    real_kib = cpu.l3.kib // topology.l3 if cpu.chiplets == 1 else cpu.l3.kib
    size = Size(topology.l3_kib or real_kib, cpu.l3.ways)
    if topology.l3_kib % size.step_kib:
        raise TopologyRefused(
            f"l3_kib: wants a multiple of {size.step_kib}, with the {size.ways} ways of {cpu.model}"
        )
    return f"l3 {_sets(size)} {size.ways}"


def _sets(size: Size) -> int:
    return size.kib // size.step_kib * SHARDS


def _latency(topology: Topology, cpu: Cpu) -> dict[str, int]:
    """Cycles. The memory of a package that is one node is interleaved over all its channels."""
    found = dict(cpu.latency)
    of_package = found.pop("memory")
    if topology.nodes == 1:
        found["local_memory"] = of_package
    return found | {name: catalog.cycles(ns, cpu.clock_mhz) for name, ns in topology.latency_ns}


def _bandwidth(topology: Topology, cpu: Cpu) -> dict[str, int]:
    """Bytes in 1000 cycles: the CPU's, times the share of its cores that the topology has, and
    narrower by as much as a simulated core asks for less."""
    of_chiplet = topology.cores * cpu.chiplets / cpu.cores / LINES_UNDER_WAY
    of_package = topology.l3 * topology.cores / cpu.cores / LINES_UNDER_WAY
    share = {
        "link": of_chiplet,
        "memory": of_package / topology.nodes,
        "interconnect": of_package,
    }
    return {
        what: round(gbs * share[what] * 1e6 / cpu.clock_mhz)
        for what, gbs in cpu.bandwidth_gbs.items()
    }


def _memory(topology: Topology) -> list[tuple[int, int, int]]:
    """Node, start and size, in MiB of guest-physical addresses."""
    low = _LOW_MIB if sum(topology.memory_mib) >= _MUCH_MIB else _MUCH_MIB
    found, start = [], 0
    for node, mib in enumerate(topology.memory_mib):
        below = max(0, min(start + mib, low) - start)
        if below:
            found.append((node, start, below))
        if mib > below:
            found.append((node, _ABOVE_MIB + max(start, low) - low, mib - below))
        start += mib
    return found
