"""The simulated caches of a guest: a topology as the description that native/src/cachesim reads.

Pure. Sizes and ways are the makers', of the named source. The latencies are round numbers of cycles
of the core, about as large as is published for such machines. They serve to order events in
simulated time, not to predict seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

from atoll.guest.topology import Topology, TopologyRefused

# Of pc and q35: with at least so much memory, what lies above 2 GiB moves behind the devices'
# addresses, which end at 4 GiB; with less, what lies above 2.75 GiB (hw/i386/pc_q35.c).
_MUCH_MIB = 0xB0000000 >> 20
_LOW_MIB = 2048
_ABOVE_MIB = 4096
LINES_PER_MIB = (1 << 20) // 64
SHARDS = 64  # the number of sets is a multiple of it (machine.hpp)
MOST_CHIPLETS = 63  # machine.hpp


@dataclass(frozen=True, slots=True)
class Caches:
    """Each cache's size in KiB and its ways; latencies in cycles, by machine.hpp's names."""

    l1: tuple[int, int]
    l2: tuple[int, int]
    l3: tuple[int, int]  # of an L3 domain; for one L3 a package, of the package
    l3_of_package: bool
    latency: dict[str, int]
    clock_mhz: int  # the highest of the source's part
    source: str


def _latency(*cycles: int) -> dict[str, int]:
    names = "l2 own_l3 other_chiplet near_cache far_cache local_memory near_memory far_memory"
    return dict(zip(names.split(), cycles, strict=True))


CATALOG = {
    "EPYC-Milan": Caches(
        (32, 8),
        (512, 8),
        (32 << 10, 16),
        False,
        _latency(12, 46, 370, 400, 680, 340, 370, 650),
        3675,
        "AMD, Software Optimization Guide for family 19h, models 00h to 0Fh; EPYC 7713",
    ),
    "EPYC-Genoa": Caches(
        (32, 8),
        (1024, 8),
        (32 << 10, 16),
        False,
        _latency(14, 50, 400, 430, 750, 420, 450, 780),
        3700,
        "AMD, Software Optimization Guide for family 19h, models 10h to 1Fh; EPYC 9654",
    ),
    "SapphireRapids": Caches(
        (48, 12),
        (2048, 16),
        (105 << 10, 15),
        True,
        _latency(15, 120, 200, 220, 400, 330, 360, 550),
        3800,
        "Intel, 64 and IA-32 Architectures Optimization Reference Manual; Xeon 8480+",
    ),
    "Graviton3": Caches(
        (64, 4),
        (1024, 8),
        (32 << 10, 16),
        True,
        _latency(13, 90, 130, 150, 300, 300, 330, 500),
        2600,
        "Arm, Neoverse V1 Technical Reference Manual; AWS, Graviton3",
    ),
}


def describe(topology: Topology, quantum: int) -> str:
    """The description. Raises TopologyRefused if the caches of the topology's CPU are unknown."""
    caches = CATALOG.get(topology.caches or topology.cpu)
    if caches is None:
        raise TopologyRefused(
            f"caches: {topology.caches or topology.cpu} is not in the catalog of simulated caches; "
            f"wants one of {', '.join(CATALOG)}"
        )
    if topology.packages * topology.l3 > MOST_CHIPLETS:
        raise TopologyRefused(f"l3: at most {MOST_CHIPLETS} in the machine can be simulated")
    kib, ways = caches.l3
    l3 = (kib // topology.l3 if caches.l3_of_package else kib, ways)
    lines = [_shape("l1", caches.l1), _shape("l2", caches.l2), _shape("l3", l3)]
    lines += [f"latency {name} {cycles}" for name, cycles in caches.latency.items()]
    lines += [f"clock {caches.clock_mhz}", f"quantum {quantum}"]
    lines += [f"memory {node} {start << 20} {mib << 20}" for node, start, mib in _memory(topology)]
    cores: dict[tuple[int, int, int], int] = {}
    for cpu, place in enumerate(topology.places()):
        core = cores.setdefault((place.package, place.l3, place.core), len(cores))
        chiplet = place.package * topology.l3 + place.l3
        lines.append(
            f"cpu {cpu} core {core} chiplet {chiplet} node {place.node} package {place.package}"
        )
    return "\n".join(lines) + "\n"


def _shape(name: str, size: tuple[int, int]) -> str:
    kib, ways = size
    return f"{name} {kib * LINES_PER_MIB // 1024 // ways // SHARDS * SHARDS} {ways}"


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
