"""The charts of a profile: distributions, memory under load, caches, STREAM, sharing, churn. Pure.

The distribution of latencies is split by how two PUs are related (as in arcas-runtime, fig. 3).
STREAM has shaded regions that name the level in which the arrays lay, so that no reader takes a
cache's bandwidth for the memory's (as in olap-on-chiplets, fig. 5).
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from atoll.infer.relations import Relation
from atoll.report.numbers import Unit, cut, described, figure
from atoll.report.svg.axes import Array, Axis, Scale, linear_axis, log_axis, size_axis, span
from atoll.report.svg.elements import Picture
from atoll.report.svg.plot import Mark, Point, Region, Series, plot
from atoll.schema.cpulist import format_cpulist
from atoll.schema.profile import (
    CacheCurve,
    ChurnRun,
    Figure,
    LoadedCurve,
    Sharing,
    StreamKernel,
    StreamRun,
)
from atoll.schema.size import gib, percent
from atoll.schema.text import plural

_CDF_POINTS = 120
_PROCESSES = {
    "machine": "one process",
    "node": "one per node",
    "chiplet": "one per chiplet",
    "core": "one per core",
    "n": "n processes",
}


def cdf_picture(named: Sequence[tuple[str, Sequence[Relation]]], title: str) -> Picture | None:
    """The cumulative distribution of latencies, a line for each kind of pair."""
    kinds = [(f"{prefix}{kind.name}", kind) for prefix, some in named for kind in some]
    if not kinds:
        return None
    everything = np.sort(np.concatenate([kind.values for _, kind in kinds]))
    series = [Series(name, _quantiles(kind.values), dots=False, step=True) for name, kind in kinds]
    if len(named) == 1 and len(kinds) > 1:
        whole = _quantiles(everything)
        series.append(Series("all pairs", whole, dots=False, grey=True, step=True))
    shares = [(share, percent(share)) for share in (0, 0.25, 0.5, 0.75, 1)]
    return plot(
        title,
        "share of pairs with at most this latency, by kind of pair",
        log_axis("latency, ns one way", span(everything)),
        Axis("share of pairs", Scale(0, 1.03, log=False), shares),
        series,
    )


def loaded_picture(curves: Sequence[LoadedCurve]) -> Picture | None:
    """Memory latency over the bandwidth that other PUs use."""
    series = [
        Series(
            f"node {c.cpu_node} to memory {c.memory_node}",
            [
                _point(p.bandwidth_gbs, p.latency_ns, figure(p.bandwidth_gbs, "GB/s"), "ns")
                for p in c.points
            ],
        )
        for c in curves
        if c.points
    ]
    if not series:
        return None
    most = max(p.x for one in series for p in one.points) or 1.0
    return plot(
        "Memory latency under load",
        f"one PU follows dependent loads while {plural(curves[0].loaders, 'other')} load the "
        "memory; it is saturated where the line turns up",
        linear_axis("bandwidth of the other PUs, GB/s", most),
        log_axis("latency, ns", span(_values(series))),
        series,
    )


def cache_pictures(curves: Sequence[CacheCurve]) -> list[Picture]:
    """Latency and bandwidth of each curve over the working set, with the cache levels."""
    return [picture for curve in curves if curve.points for picture in _cache(curve)]


def _cache(curve: CacheCurve) -> list[Picture]:
    sizes = span(np.array([p.working_set_bytes for p in curve.points], dtype=float), 1.15)
    x = size_axis("working set", sizes)
    pages = "huge pages" if curve.huge_pages else "small pages, TLB misses included"
    regions, last = [], sizes.low
    for level, settled in zip(curve.levels, curve.settled, strict=False):
        latency_ns = figure(level.latency_ns, "ns", settled=settled)
        note = f"{gib(level.capacity_bytes)}, {latency_ns}"
        regions.append(Region(last, level.capacity_bytes, f"L{level.level}", note))
        last = level.capacity_bytes
    if curve.levels and curve.memory_latency_ns is not None:
        note = figure(curve.memory_latency_ns, "ns", settled=curve.settled[-1])
        regions.append(Region(last, sizes.high, "memory", note))
    title = f"Caches as seen from CPU {curve.cpu}"
    latency = Series(
        "latency", [_sized(p.working_set_bytes, p.latency_ns, unit="ns") for p in curve.points]
    )
    pictures = [
        plot(
            f"{title}: latency",
            f"dependent loads in random order, {pages}; shaded: the reach of each level",
            x,
            log_axis("latency, ns", span(_values([latency]), 1.3)),
            [latency],
            regions,
        )
    ]
    bandwidth = Series(
        "bandwidth",
        [_sized(p.working_set_bytes, p.bandwidth_gbs) for p in curve.points if p.bandwidth_gbs],
    )
    if bandwidth.points:
        pictures.append(
            plot(
                f"{title}: bandwidth",
                f"one PU reads, {pages}",
                x,
                log_axis("GB/s", span(_values([bandwidth]), 1.3)),
                [bandwidth],
                [region._replace(note="") for region in regions],
            )
        )
    return pictures


def stream_picture(runs: Sequence[StreamRun]) -> Picture | None:
    """Triad, or the kernel most like it; a line for each way to split it into processes."""
    kernel = next((k for k in reversed(StreamKernel) if any(run.kernel is k for run in runs)), None)
    if kernel is None:
        return None
    shown = sorted(
        (run for run in runs if run.kernel is kernel), key=lambda run: run.working_set_bytes
    )
    ways = dict.fromkeys((run.per, run.processes, run.threads) for run in shown)
    threads = {way[2] for way in ways}
    series = [
        Series(
            processes_label(per, processes) + ("" if len(threads) == 1 else f", {count} thr."),
            [
                _sized(run.working_set_bytes, run.bandwidth_gbs, f" in {run.level}")
                for run in shown
                if (run.per, run.processes, run.threads) == (per, processes, count)
            ],
        )
        for per, processes, count in ways
    ]
    sizes = span(np.array([run.working_set_bytes for run in shown], dtype=float), 1.15)
    total = f"{plural(next(iter(threads)), 'thread')} in all; " if len(threads) == 1 else ""
    return plot(
        f"STREAM {kernel.value}",
        f"{total}shaded: where the arrays lie. Only the part marked memory is memory bandwidth",
        size_axis("all arrays of all processes together", sizes),
        log_axis("GB/s", span(_values(series), 1.3)),
        series,
        _level_regions(shown, sizes),
    )


def processes_label(per: str, processes: int) -> str:
    """'one process', 'one per chiplet (8)'."""
    return _PROCESSES[per] + ("" if per == "machine" else f" ({processes})")


def _level_regions(runs: Sequence[StreamRun], sizes: Scale) -> list[Region]:
    """Regions of one level, or 'L2/L3' where runs of one size lay in different levels."""
    named = [
        (size, "/".join(sorted(Counter(run.level for run in same))))
        for size, same in itertools.groupby(runs, key=lambda run: run.working_set_bytes)
    ]
    regions: list[Region] = []
    for index, (size, name) in enumerate(named):
        after = named[index + 1][0] if index + 1 < len(named) else None
        stop = float(np.sqrt(float(size) * after)) if after else sizes.high  # half-way
        if regions and regions[-1].name == name:
            regions[-1] = regions[-1]._replace(stop=stop)
        else:
            regions.append(Region(regions[-1].stop if regions else sizes.low, stop, name))
    return regions


def sharing_picture(sharing: Sharing) -> Picture | None:
    """The same threads on few chiplets and on many; the faster changes at the crossing."""
    if not sharing.points:
        return None
    series = [
        Series("together", [_sized(p.vector_bytes, p.local_gbs) for p in sharing.points]),
        Series("spread", [_sized(p.vector_bytes, p.distributed_gbs) for p in sharing.points]),
    ]
    sizes = span(np.array([p.vector_bytes for p in sharing.points], dtype=float), 1.15)
    marks = []
    if sharing.crossing_bytes is not None:
        label = f"spread is faster from {gib(sharing.crossing_bytes)}"
        marks.append(Mark(sharing.crossing_bytes, label))
    return plot(
        f"Local against distributed cache: {sharing.operation}",
        f"{plural(sharing.threads, 'thread')} on PUs {_pus(sharing.local_pus)} (together) and "
        f"{_pus(sharing.distributed_pus)} (spread)",
        size_axis("vector", sizes),
        log_axis("GB/s", span(_values(series), 1.3)),
        series,
        marks=marks,
    )


def churn_picture(runs: Sequence[ChurnRun]) -> Picture | None:
    """The time of one operation by number of threads."""
    if not runs:
        return None
    series = [
        Series(
            allocator,
            [
                _point(
                    run.threads,
                    run.operation_ns,
                    f"{plural(run.threads, 'thread')}, {run.overhead:.2f}× the requested memory",
                    "ns",
                )
                for run in sorted(runs, key=lambda run: run.threads)
                if run.allocator == allocator
            ],
        )
        for allocator in dict.fromkeys(run.allocator for run in runs)
    ]
    counts = sorted({run.threads for run in runs})
    ticks = [(count, str(count)) for count in _apart(counts)]
    return plot(
        "Allocators under churn",
        "time of one allocation or free in a thread; a flat line scales, a rising one shows a "
        "contended lock",
        Axis("threads", Scale(counts[0] / 1.1, counts[-1] * 1.1), ticks),
        log_axis("ns", span(_values(series), 1.3)),
        series,
    )


# ---- Parts ----------------------------------------------------------------------------------


def _quantiles(values: Array) -> list[Point]:
    """The distribution by quantiles, so that 100,000 pairs make no larger a file than 100."""
    shares = np.linspace(0, 1, min(_CDF_POINTS, max(len(values), 2)))
    return [
        Point(float(value), float(share), float(share), float(share), True, "")
        for value, share in zip(np.quantile(values, shares), shares, strict=True)
    ]


def _point(x: float, value: Figure, where: str, unit: Unit) -> Point:
    tip = f"{where}: {described(value, unit)}"
    return Point(x, value.value, value.low, value.high, value.settled, tip)


def _sized(size_bytes: int, value: Figure, where: str = "", unit: Unit = "GB/s") -> Point:
    return _point(size_bytes, value, gib(size_bytes) + where, unit)


def _values(series: Iterable[Series]) -> Array:
    return np.array([p.y for one in series for p in one.points], dtype=float)


def _apart(counts: Sequence[int]) -> list[int]:
    """Counts whose labels do not overlap on a logarithmic axis."""
    kept: list[int] = []
    for count in counts:
        if not kept or count / kept[-1] > 1.25:
            kept.append(count)
    return kept


def _pus(pus: Sequence[int]) -> str:
    return cut(format_cpulist(pus), 28)
