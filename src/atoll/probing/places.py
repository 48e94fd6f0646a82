"""Chooses the CPUs for threads and determines their caches. Pure except for the run's state.

A kind that measures memory or caches puts one thread on a core, because siblings share its ports
and caches and would measure each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from atoll.probing.run import Run
from atoll.schema.machine import Cache, Machine

CpuGroup = tuple[int, ...]


def core_cpus(run: Run) -> CpuGroup:
    """The first CPU in use of each core, sorted."""
    usable = frozenset(run.cpus)
    firsts = (min(usable.intersection(core.pus), default=None) for core in run.machine.cores)
    return tuple(sorted(cpu for cpu in firsts if cpu is not None))


def node_groups(run: Run) -> dict[int, CpuGroup]:
    """`core_cpus` by memory node, without CPUs that belong to no node."""
    groups: dict[int, list[int]] = {}
    for cpu in core_cpus(run):
        node = run.node_of(cpu)
        if node is not None:
            groups.setdefault(node, []).append(cpu)
    return {node: tuple(cpus) for node, cpus in sorted(groups.items())}


def chiplet_groups(run: Run) -> tuple[CpuGroup, ...]:
    """`core_cpus` by chiplet, from the machine's record or this run's own figures."""
    cores = frozenset(core_cpus(run))
    groups = (tuple(sorted(cores.intersection(chiplet))) for chiplet in run.chiplets)
    return tuple(group for group in groups if group)


def data_caches(machine: Machine, cpu: int) -> tuple[Cache, ...]:
    """The caches that hold a CPU's data, by level, as the system reports them."""
    held = (c for c in machine.caches if cpu in c.pus and c.kind != "instruction" and c.size_bytes)
    return tuple(sorted(held, key=lambda cache: cache.level))


def biggest_cache_bytes(machine: Machine, cpus: Sequence[int]) -> int:
    """The largest cache of any of the CPUs; 0 if the system reports none."""
    sizes = (cache.size_bytes for cpu in cpus for cache in data_caches(machine, cpu))
    return max(sizes, default=0)


def all_cache_bytes(machine: Machine, cpus: Sequence[int]) -> int:
    """The total size of the CPUs' largest cache level."""
    totals: dict[int, int] = {}
    for cache in machine.caches:
        if cache.kind != "instruction" and not frozenset(cpus).isdisjoint(cache.pus):
            totals[cache.level] = totals.get(cache.level, 0) + cache.size_bytes
    return max(totals.values(), default=0)


def coarse_first(count: int) -> Iterator[int]:
    """0 to count - 1, ends first and then ever finer in between, so that a lack of time thins a
    curve and does not shorten it."""
    if count > 0:
        yield 0
    step = 1
    while step < count - 1:
        step *= 2
    seen = {0}
    if count > 1:
        yield count - 1
        seen.add(count - 1)
    while step >= 1:
        for index in range(0, count, step):
            if index not in seen:
                seen.add(index)
                yield index
        step //= 2


def log_spaced(first: int, last: int, per_octave: int, *, multiple: int) -> list[int]:
    """Rising sizes from `first` to `last`, both included, rounded down to a multiple."""
    sizes = {last // multiple * multiple}
    number = 0
    while (size := first * 2 ** (number / per_octave)) < last:
        sizes.add(int(size) // multiple * multiple)
        number += 1
    return sorted(size for size in sizes if size > 0)
