"""Compares local and distributed cache: the same threads on few chiplets, or spread over many.

Follows olap-on-chiplets 4.4 and arcas-runtime 2.3: each thread writes, or reads, its chunk of a
vector over many iterations. On one chiplet the threads are close together and have its L3; spread
evenly over a node's chiplets they have all L3s. The size from which spreading is always faster
decides between WICP-local and WICP-mixed (atoll.infer.crossing). The two take turns at every size,
so that a slow phase of the machine affects both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from atoll.infer.crossing import crossing_bytes
from atoll.probing.places import (
    CpuGroup,
    all_cache_bytes,
    chiplet_groups,
    coarse_first,
    core_cpus,
)
from atoll.probing.requests import Vector
from atoll.probing.run import Run
from atoll.schema.profile import Figure, Mode, Sharing, SharingPoint
from atoll.schema.size import GIB, MIB, gib

FIRST_BYTES = 38  # as in the paper, whose last size is 38 GB
LAST_BYTES = 38_000_000_000
ITERATIONS = 1_000
_MOST_QUICK_BYTES = GIB
_FINE_FROM_BYTES = 3_800_000  # from here each size is twice the one before
_TIMES_CACHES = 4  # and beyond this many times the caches, ten times
_FINE_UP_TO_BYTES = 256 * MIB  # if the system reports no caches
_SAMPLING_SHARE = 0.5
_MOST_S = 0.5
_OPERATIONS: tuple[Literal["write", "read"], ...] = ("write", "read")


@dataclass(frozen=True, slots=True)
class Spread:
    """Two placements of the same number of threads."""

    local: CpuGroup
    distributed: CpuGroup


def measure_sharing(run: Run) -> tuple[Sharing, ...]:
    """Writing and reading; empty if no node has two chiplets."""
    spread = spread_over(regions(run))
    if spread is None:
        run.leave_out(
            "few-chiplets",
            f"sharing: needs two chiplets in one region, but {len(chiplet_groups(run))} "
            "with CPUs in use are known",
        )
        return ()
    sizes = vector_sizes(run, spread)
    order = [sizes[index] for index in coarse_first(len(sizes))]
    points: dict[tuple[str, int], SharingPoint] = {}
    todo = [(operation, size) for size in order for operation in _OPERATIONS]
    for number, (operation, size) in enumerate(todo):
        if run.seconds_left() <= 0:
            run.cut_short("sharing", len(todo) - number, len(todo), "points")
            break
        run.report(number / len(todo), f"{operation} {gib(size)}")
        left_s = run.seconds_left() / (len(todo) - number)
        point = _point(run, spread, operation, size, min(_MOST_S, _SAMPLING_SHARE * left_s / 2))
        if point is not None:
            points[operation, size] = point
    found = (
        (operation, [points[operation, size] for size in sizes if (operation, size) in points])
        for operation in _OPERATIONS
    )
    return tuple(_sharing(spread, operation, own) for operation, own in found if own)


def regions(run: Run) -> list[tuple[CpuGroup, ...]]:
    """Chiplets by node; by package if every node has only one."""
    chiplets = chiplet_groups(run)
    package_of = {pu: core.package for core in run.machine.cores for pu in core.pus}
    by_node: dict[object, list[CpuGroup]] = {}
    by_package: dict[object, list[CpuGroup]] = {}
    for chiplet in chiplets:
        by_node.setdefault(run.node_of(chiplet[0]), []).append(chiplet)
        by_package.setdefault(package_of.get(chiplet[0]), []).append(chiplet)
    chosen = by_node if any(len(group) > 1 for group in by_node.values()) else by_package
    return [tuple(group) for group in chosen.values()]


def spread_over(groups: Sequence[Sequence[CpuGroup]]) -> Spread | None:
    """As many threads as the largest chiplet has cores: on that chiplet, and dealt to all chiplets
    of the region that has the most. None if no region has two."""
    several = [group for group in groups if len(group) > 1]
    if not several:
        return None
    chiplets = max(several, key=len)
    local = max(chiplets, key=len)
    dealt: list[int] = []
    for turn in range(len(local)):
        dealt += [chiplet[turn] for chiplet in chiplets if turn < len(chiplet)]
    return Spread(local, tuple(sorted(dealt[: len(local)])))


def vector_sizes(run: Run, spread: Spread) -> list[int]:
    """Rising sizes from the paper's 38 B to its 38 GB, or as far as memory is free: decades, but
    doubling where caches end, so that the crossing is found to within a factor of two."""
    free = run.free_bytes()
    home = run.home_node(spread.local[0])
    if home is not None:
        free = min(free, run.node_free_bytes(home))
    last = min(LAST_BYTES, free, _MOST_QUICK_BYTES if run.mode is Mode.QUICK else LAST_BYTES)
    caches = _TIMES_CACHES * all_cache_bytes(run.machine, core_cpus(run))
    fine_up_to = max(_FINE_UP_TO_BYTES, caches)
    sizes, size = [], FIRST_BYTES
    while size <= last:
        sizes.append(size)
        size *= 2 if _FINE_FROM_BYTES <= size < fine_up_to else 10
    return sizes


def _point(
    run: Run, spread: Spread, operation: Literal["write", "read"], size: int, each_s: float
) -> SharingPoint | None:
    figures: list[Figure] = []
    for name, cpus in (("local", spread.local), ("distributed", spread.distributed)):
        request = Vector(
            cpus=cpus, bytes=size, op=operation, iterations=ITERATIONS, budget_s=each_s
        )
        answer = run.attempt(request, f"sharing, {operation} of {gib(size)}, {name}")
        if answer is None:
            return None
        if not answer.verified:
            run.leave_out("unverified", f"sharing, {operation} of {gib(size)}: the data were wrong")
            return None
        figures.append(run.figure(answer.gbs, answer))
    return SharingPoint(vector_bytes=size, local_gbs=figures[0], distributed_gbs=figures[1])


def _sharing(
    spread: Spread, operation: Literal["write", "read"], points: Sequence[SharingPoint]
) -> Sharing:
    return Sharing(
        operation=operation,
        threads=len(spread.local),
        local_pus=spread.local,
        distributed_pus=spread.distributed,
        points=tuple(points),
        crossing_bytes=crossing_bytes(points),
    )
