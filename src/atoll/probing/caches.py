"""Measures latency and bandwidth over the working set, and infers the caches from the curve.

One PU walks, and then reads, ever larger data, in huge pages if available. The steps in latency are
the caches (atoll.infer.capacities). The system's claims stand next to them, since the two differ: a
hypervisor hides an L3 or shows one that twenty other guests share. The points are measured ends
first and then in between, so that a lack of time thins the curve and does not shorten it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from atoll.infer.capacities import Capacity, cache_levels
from atoll.probing.places import (
    biggest_cache_bytes,
    chiplet_groups,
    coarse_first,
    core_cpus,
    data_caches,
    log_spaced,
)
from atoll.probing.requests import Chase, Move
from atoll.probing.run import Run
from atoll.schema.machine import Machine
from atoll.schema.profile import CacheCurve, CacheLevel, CachePoint, Figure, Mode
from atoll.schema.size import GIB, MIB, gib

FIRST_BYTES = 4 << 10
MOST_BYTES = GIB
_LEAST_LAST_BYTES = 64 * MIB
# Beyond the largest cache that the system claims, so that memory itself shows.
_BEYOND = 4
_PER_OCTAVE = {Mode.QUICK: 2, Mode.FULL: 4}
_LINE_BYTES = 64
# The rest is for touching memory first and starting threads.
_SAMPLING_SHARE = 0.5
_MOST_S = 0.25
# No known cache is as large: beyond it lies memory, even if the system reports no caches.
_SURELY_MEMORY_BYTES = 512 * MIB


def measure_caches(run: Run) -> tuple[CacheCurve, ...]:
    """The curve of one PU; in full mode, of one for each kind of core and chiplet."""
    cpus = curve_cpus(run)
    curves = []
    for place, cpu in enumerate(cpus):
        if run.out_of_time(f"the cache curve of CPU {cpu}"):
            continue
        curve = _curve(run, cpu, run.seconds_left() / (len(cpus) - place), place, len(cpus))
        if curve is not None:
            curves.append(curve)
    return tuple(curves)


def curve_cpus(run: Run) -> tuple[int, ...]:
    """One PU of each kind. Equal caches are measured once; but if the chiplets are unequal, full
    mode measures one PU on the L3 of each chiplet."""
    cores = core_cpus(run)
    if run.mode is Mode.QUICK:
        return cores[:1]
    size_of = {cpu: len(group) for group in chiplet_groups(run) for cpu in group}
    sorts: dict[tuple[object, ...], int] = {}
    for cpu in cores:
        sizes = tuple(cache.size_bytes for cache in data_caches(run.machine, cpu))
        sorts.setdefault((size_of.get(cpu), sizes), cpu)
    return tuple(sorts.values())


def working_sets(run: Run, cpu: int) -> list[int]:
    """Rising sizes from 4 KiB to well beyond the largest cache, as far as memory is free."""
    biggest = biggest_cache_bytes(run.machine, [cpu])
    wanted = max(_LEAST_LAST_BYTES, _BEYOND * biggest) if biggest else MOST_BYTES
    node = run.home_node(cpu)
    free = run.free_bytes() if node is None else run.node_free_bytes(node)
    last = min(wanted, MOST_BYTES, free)
    if last < wanted and last == free:
        run.leave_out(
            "memory",
            f"cache curve of CPU {cpu}: ends at {gib(last)} because no more memory is free; "
            f"it takes {gib(min(wanted, MOST_BYTES))} to show memory itself",
        )
    return log_spaced(FIRST_BYTES, last, _PER_OCTAVE[run.mode], multiple=_LINE_BYTES)


def _curve(run: Run, cpu: int, time_s: float, place: int, curves: int) -> CacheCurve | None:
    sizes = working_sets(run, cpu)
    ends_s = run.elapsed_s() + time_s
    points: dict[int, CachePoint] = {}
    huge: list[bool] = []
    order = list(coarse_first(len(sizes)))
    for number, index in enumerate(order):
        left_s = ends_s - run.elapsed_s()
        if left_s <= 0:
            missing = len(order) - number
            run.cut_short(f"cache curve of CPU {cpu}", missing, len(order), "working sets")
            break
        size = sizes[index]
        run.report((place + number / len(order)) / curves, f"{gib(size)} by CPU {cpu}")
        each_s = min(_MOST_S, _SAMPLING_SHARE * left_s / (len(order) - number) / 2)
        point, had_huge = _point(run, cpu, size, each_s)
        if point is not None:
            points[size] = point
            if size >= max(run.hello.huge_page_bytes, 1):
                huge.append(had_huge)
    if not points:
        return None
    had = bool(huge) and all(huge)
    if huge and not had:
        run.notice(
            "no-huge-pages",
            f"cache curve of CPU {cpu}: not all of its data got huge pages, so its latencies "
            "include address translation; see /sys/kernel/mm/transparent_hugepage/enabled",
        )
    in_order = tuple(points[size] for size in sorted(points))
    levels, memory_ns = concluded(run.machine, cpu, in_order)
    return CacheCurve(
        cpu=cpu, huge_pages=had, points=in_order, levels=levels, memory_latency_ns=memory_ns
    )


def _point(run: Run, cpu: int, size: int, each_s: float) -> tuple[CachePoint | None, bool]:
    what = f"cache curve of CPU {cpu}, {gib(size)}"
    home = run.home_node(cpu)
    chase = Chase(cpu=cpu, node=None, bytes=size, huge=True, budget_s=each_s)
    walked = run.attempt(chase, f"{what}, latency", node=home)
    if walked is None:
        return None, False
    latency = run.figure(walked.load_ns, walked, node=home)
    move = Move(cpus=(cpu,), node=None, bytes=size, op="read", huge=True, budget_s=each_s)
    moved = run.attempt(move, f"{what}, bandwidth", node=home)
    bandwidth: Figure | None = None
    if moved is not None:
        if moved.verified:
            bandwidth = run.figure(moved.gbs, moved, node=home)
        else:
            run.leave_out("unverified", f"{what}: the data read differ from the data written")
    point = CachePoint(working_set_bytes=size, latency_ns=latency, bandwidth_gbs=bandwidth)
    return point, walked.huge


def concluded(
    machine: Machine, cpu: int, points: Sequence[CachePoint]
) -> tuple[tuple[CacheLevel, ...], float | None]:
    """The cache levels, and memory's latency if the curve reached it."""
    sizes = [point.working_set_bytes for point in points]
    inferred = cache_levels(sizes, [point.latency_ns.value for point in points])
    claimed = [cache.size_bytes for cache in data_caches(machine, cpu)]
    levels = tuple(
        CacheLevel(
            level=number,
            capacity_bytes=level.capacity_bytes,
            latency_ns=level.latency_ns,
            sysfs_bytes=bytes_claimed,
        )
        for number, (level, bytes_claimed) in enumerate(
            zip(inferred.levels, matched(inferred.levels, claimed), strict=True), start=1
        )
    )
    memory_from = 2 * max(claimed) if claimed else _SURELY_MEMORY_BYTES
    reached = bool(sizes) and sizes[-1] >= memory_from
    return levels, inferred.beyond_ns if reached else None


def matched(levels: Sequence[Capacity], claimed: Sequence[int]) -> list[int | None]:
    """For each measured level, the size that the system claims for it. If both have equally many
    levels, in their order. Otherwise each claim goes to its nearest level, which keeps its
    nearest."""
    if len(levels) == len(claimed):
        return list(claimed)
    best: list[int | None] = [None] * len(levels)
    for claim in claimed:
        distances = [abs(math.log(claim / level.capacity_bytes)) for level in levels]
        if not distances:
            break
        nearest = distances.index(min(distances))
        before = best[nearest]
        capacity = levels[nearest].capacity_bytes
        if before is None or abs(math.log(before / capacity)) > distances[nearest]:
            best[nearest] = claim
    return best
