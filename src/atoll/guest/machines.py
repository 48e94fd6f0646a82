"""Real machines by name, as topologies for the guest with simulated caches.

A real machine has more CPUs than QEMU emulates well. It is scaled: packages, nodes and the cores'
own caches stay. What cores share shrinks with the share of cores that are left: an L3, and the
bandwidth of links and memory (caches.py). So each core has as much of it as in the real machine
with all cores busy. A chiplet keeps at least two cores, and as many chiplets stay as that allows.

`cache_scale` shrinks L2 and L3 further, for data smaller than those of a real run.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass

from atoll.guest import catalog, topology
from atoll.guest.catalog import Cpu
from atoll.guest.topology import MAX_CPUS, Topology, TopologyRefused

CPUS = 16
MIN_CORES = 2  # with less, a chiplet shares nothing
MEMORY_MIB = 16384  # of the whole machine, but
MIN_NODE_MIB = 4096  # a node holds an instance of an engine with a JVM


def names() -> list[str]:
    return sorted(catalog.read()["machine"])


def load(name: str, cpus: int = CPUS, cache_scale: float = 1) -> Topology:
    """The machine; its `about` says in a line how it was scaled. Raises TopologyRefused."""
    return topology.parse(text(name, cpus, cache_scale), name)


def text(name: str, cpus: int = CPUS, cache_scale: float = 1) -> str:
    """The topology file. Raises TopologyRefused."""
    machine = catalog.read()["machine"].get(name)
    if machine is None:
        raise TopologyRefused(f"{name}: no such machine or file; there are {', '.join(names())}")
    if not 0 < cache_scale <= 1:
        raise TopologyRefused("cache_scale: wants a number above 0, at most 1")
    cpu = catalog.cpus()[machine["cpu"]]
    packages, nodes, by_node = (machine[key] for key in ("packages", "nodes", "l3_by_node"))
    parts = nodes if by_node else 1  # of a chiplet, each with an L3 of its own
    real = _Package(cpu.chiplets * parts, cpu.cores // cpu.chiplets // parts, cpu.l3.kib // parts)
    possible = {packages * part.chiplets * part.cores: part for part in _parts(real, nodes)}
    if cpus not in possible or cpus > MAX_CPUS:
        few = ", ".join(str(count) for count in sorted(possible) if count <= MAX_CPUS)
        raise TopologyRefused(f"cpus: {name} can have {few}")
    kept = possible[cpus]
    l2_kib = _l2_kib(cpu, cache_scale)
    l3_kib = _l3_kib(cpu.l3.step_kib, kept.l3_kib * cache_scale)
    about = (
        f"{packages} x {cpu.model}, scaled to {cpus} of {packages * cpu.cores} cores: a package "
        f"has {kept.chiplets} x {kept.cores} (real: {real.chiplets} x {real.cores}), "
        f"an L3 {_size(l3_kib)} ({_size(real.l3_kib)}), an L2 {_size(l2_kib)} ({_size(cpu.l2.kib)})"
    )
    keys = {
        "about": about,
        "cpu": machine["qemu"],
        "caches": machine["cpu"],
        "packages": packages,
        "dies": kept.chiplets if by_node else 1,
        "l3": kept.chiplets,
        "cores": kept.cores,
        "nodes": nodes,
        "l2_kib": l2_kib,
        "l3_kib": l3_kib,
        "memory_mib": max(MEMORY_MIB // (packages * nodes), MIN_NODE_MIB),
    }
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())


@dataclass(frozen=True, slots=True)
class _Package:
    chiplets: int
    cores: int  # of a chiplet
    l3_kib: float  # of a chiplet


def _parts(real: _Package, nodes: int) -> Iterator[_Package]:
    """What can be left of a package, what has most chiplets last. Nodes share out the chiplets."""
    for chiplets in range(nodes, real.chiplets + 1, nodes):
        for cores in range(MIN_CORES, real.cores + 1):
            yield _Package(chiplets, cores, real.l3_kib * cores / real.cores)


def _l2_kib(cpu: Cpu, scale: float) -> int:
    """A power of two of sets; at least an L1, since L2 holds all that L1 holds."""
    step = cpu.l2.step_kib
    steps = max(int(cpu.l2.kib * scale / step), math.ceil(cpu.l1.kib / step))
    return step * (1 << steps.bit_length() - 1)


def _l3_kib(step: int, kib: float) -> int:
    if kib < step:
        raise TopologyRefused(
            f"cache_scale: leaves {kib:.3g} KiB of L3, and the least that is simulated is {step}"
        )
    return int(kib / step) * step


def _size(kib: float) -> str:
    return f"{kib / 1024:g} MiB" if kib >= 1024 else f"{kib:g} KiB"
