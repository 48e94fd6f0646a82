"""Determines the memory level that holds a working set, from each thread's share and caches. Pure.

A cache that several threads share gives each an equal part. Capacities are measured ones if the
cache curve shows as many levels as the system claims; otherwise the claims. If the system reports
none, the measured levels alone count, with the last level shared by all threads.

Memory begins at twice the last level, and never below the size that the system claims for it. A set
slightly larger than a cache still has a part in it, a larger one than a walk shows with a busy
neighbour, so its bandwidth is not the memory's. Such a set is reported to sit in both. If nothing
is known, it sits in memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from atoll.probing.places import CpuGroup, data_caches
from atoll.schema.machine import Machine
from atoll.schema.profile import CacheCurve

# A PU's levels, fastest first: name, bytes, and the PUs in use that share it.
Reach = tuple[tuple[str, int, frozenset[int]], ...]

MEMORY = "memory"
_SURELY_PAST = 2


def reaches(
    machine: Machine, cpus: Sequence[int], curves: Sequence[CacheCurve]
) -> dict[int, Reach]:
    """The levels of each of the CPUs."""
    used = frozenset(cpus)
    by_cpu: dict[int, Reach] = {}
    for cpu in cpus:
        caches = data_caches(machine, cpu)
        claims = [cache.size_bytes for cache in caches]
        curve = next((c for c in curves if c.cpu == cpu), None) or next(
            (c for c in curves if _claims(machine, c.cpu) == claims), None
        )
        if caches:
            measured = [level.capacity_bytes for level in curve.levels] if curve else []
            sizes = measured if len(measured) == len(claims) else claims
            by_cpu[cpu] = _with_both(
                [
                    (f"L{cache.level}", size, used.intersection(cache.pus))
                    for cache, size in zip(caches, sizes, strict=True)
                ],
                claims[-1],
            )
        elif curve is not None:
            last, own = len(curve.levels), frozenset((cpu,))
            by_cpu[cpu] = _with_both(
                [
                    (f"L{level.level}", level.capacity_bytes, used if level.level == last else own)
                    for level in curve.levels
                ],
                0,
            )
        else:
            by_cpu[cpu] = ()
    return by_cpu


def _with_both(levels: list[tuple[str, int, frozenset[int]]], claimed_bytes: int) -> Reach:
    """Adds the level for sets that sit both in the last cache and in memory."""
    if not levels:
        return ()
    name, size, sharers = levels[-1]
    both = (f"{name} and {MEMORY}", max(_SURELY_PAST * size, claimed_bytes), sharers)
    return (*levels, both)


def sits_in(reach: dict[int, Reach], processes: Sequence[CpuGroup], thread_bytes: float) -> str:
    """The slowest level that any thread's share needs: 'L1' to 'L3', 'L3 and memory', or
    'memory'."""
    active = frozenset(cpu for cpus in processes for cpu in cpus)
    deepest, name = -1, MEMORY
    for cpu in active:
        levels = reach.get(cpu, ())
        depth = next(
            (
                index
                for index, (_, size, sharers) in enumerate(levels)
                if thread_bytes <= size / max(1, len(active.intersection(sharers)))
            ),
            len(levels),
        )
        own = levels[depth][0] if depth < len(levels) else MEMORY
        if own == MEMORY:
            return MEMORY
        if depth > deepest:
            deepest, name = depth, own
    return name


def _claims(machine: Machine, cpu: int) -> list[int]:
    return [cache.size_bytes for cache in data_caches(machine, cpu)]
