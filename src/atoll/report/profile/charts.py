"""The charts of a profile: distributions, memory under load, caches, STREAM, sharing, churn. Pure.

The distribution is split by what two PUs are to each other (as arcas-runtime, fig. 3, reads it);
STREAM stands on a ground that says in which level the arrays lay, so that no cache's figure is
taken for the memory's (olap-on-chiplets, fig. 5, is one).
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from atoll.infer.relations import Relation
from atoll.report.svg import scale as scales
from atoll.report.svg.picture import Picture
from atoll.report.svg.plot import Axis, Mark, Point, Region, Series, plot
from atoll.report.words import plural
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

_CDF_POINTS = 120
PER_WORDS = {
    "machine": "one process",
    "node": "one per node",
    "chiplet": "one per chiplet",
    "core": "one per core",
    "n": "n processes",
}


def cdf_picture(named: Sequence[tuple[str, Sequence[Relation]]], title: str) -> Picture | None:
    """The share of pairs that are at most so far; a line for each kind of pair."""
    found = [(f"{prefix}{one.name}", one) for prefix, some in named for one in some]
    if not found:
        return None
    scale = scales.span(np.concatenate([one.values for _, one in found]))
    series = [Series(name, _steps(one), dots=False, step=True) for name, one in found]
    if len(named) == 1 and len(found) > 1:
        whole = Relation("all pairs", np.sort(np.concatenate([o.values for _, o in found])), 0)
        series.append(Series("all pairs", _steps(whole), dots=False, grey=True, step=True))
    shares = [(share, percent(share)) for share in (0, 0.25, 0.5, 0.75, 1)]
    return plot(
        title, "how many pairs are at most so far from each other, by kind of pair",
        _log_axis("latency, ns one way", scale), Axis("share of pairs", 0, 1.03, shares, False),
        series,
    )  # fmt: skip


def loaded_picture(curves: Sequence[LoadedCurve]) -> Picture | None:
    """Latency over the bandwidth that others use."""
    series = [
        Series(
            f"node {c.cpu_node} to memory {c.memory_node}",
            [_point(p.bandwidth_gbs, p.latency_ns, f"{scales.number(p.bandwidth_gbs)} GB/s", "ns")
             for p in c.points],
        )
        for c in curves if c.points
    ]  # fmt: skip
    if not series:
        return None
    most = max(p.x for one in series for p in one.points) or 1.0
    return plot(
        "Memory latency under load",
        f"one PU follows dependent loads while {plural(curves[0].loaders, 'other')} load the "
        "memory; where it turns up, the memory is full",
        _linear_axis("bandwidth of the others, GB/s", most),
        _log_axis("latency, ns", scales.span(_values(series))), series,
    )  # fmt: skip


def cache_pictures(curves: Sequence[CacheCurve]) -> list[Picture]:
    """Latency and bandwidth of each curve over the working set, with the levels that it shows."""
    return [picture for curve in curves if curve.points for picture in _cache(curve)]


def _cache(curve: CacheCurve) -> list[Picture]:
    sizes = scales.span(np.array([p.working_set_bytes for p in curve.points], dtype=float), 1.15)
    x = _size_axis("working set", sizes)
    page = "huge pages" if curve.huge_pages else "small pages: the TLB's misses are in it"
    regions, last = [], sizes.low
    for level in curve.levels:
        words = f"{gib(level.capacity_bytes)}, {scales.number(level.latency_ns)} ns"
        regions.append(Region(last, level.capacity_bytes, f"L{level.level}", words))
        last = level.capacity_bytes
    if curve.levels and curve.memory_latency_ns is not None:
        words = f"{scales.number(curve.memory_latency_ns)} ns"
        regions.append(Region(last, sizes.high, "memory", words))
    latency = Series("latency", [
        _point(p.working_set_bytes, p.latency_ns, gib(p.working_set_bytes), "ns")
        for p in curve.points])  # fmt: skip
    found = [
        plot(f"Caches as CPU {curve.cpu} sees them: latency",
             f"dependent loads in random order, {page}; shaded: how far each level reaches",
             x, _log_axis("latency, ns", scales.span(_values([latency]), 1.3)), [latency],
             regions)
    ]  # fmt: skip
    bandwidth = Series("bandwidth", [
        _point(p.working_set_bytes, p.bandwidth_gbs, gib(p.working_set_bytes), "GB/s")
        for p in curve.points if p.bandwidth_gbs])  # fmt: skip
    if bandwidth.points:
        found.append(
            plot(f"Caches as CPU {curve.cpu} sees them: bandwidth", f"one PU reads, {page}",
                 x, _log_axis("GB/s", scales.span(_values([bandwidth]), 1.3)), [bandwidth],
                 [region._replace(note="") for region in regions])
        )  # fmt: skip
    return found


def stream_picture(runs: Sequence[StreamRun]) -> Picture | None:
    """The kernel nearest to triad that was run; a line for each way to split it into processes."""
    kernel = next((k for k in reversed(StreamKernel) if any(run.kernel is k for run in runs)), None)
    mine = sorted(
        (run for run in runs if run.kernel is kernel), key=lambda run: run.working_set_bytes
    )
    if kernel is None:
        return None
    ways = dict.fromkeys((run.per, run.processes, run.threads) for run in mine)
    threads = {way[2] for way in ways}
    series = [
        Series(
            stream_words(per, processes) + ("" if len(threads) == 1 else f", {count} thr."),
            [_point(run.working_set_bytes, run.bandwidth_gbs,
                    f"{gib(run.working_set_bytes)} in {run.level}", "GB/s")
             for run in mine if (run.per, run.processes, run.threads) == (per, processes, count)],
        )
        for per, processes, count in ways
    ]  # fmt: skip
    sizes = scales.span(np.array([run.working_set_bytes for run in mine], dtype=float), 1.15)
    who = f"{plural(next(iter(threads)), 'thread')} in all; " if len(threads) == 1 else ""
    return plot(
        f"STREAM {kernel.value}", f"{who}shaded: where the arrays lie. Only the part marked "
        "memory tells of the memory",
        _size_axis("all arrays of all processes together", sizes),
        _log_axis("GB/s", scales.span(_values(series), 1.3)), series, _level_regions(mine, sizes),
    )  # fmt: skip


def stream_words(per: str, processes: int) -> str:
    words = PER_WORDS[per]
    return words if per == "machine" else f"{words} ({processes})"


def _level_regions(runs: Sequence[StreamRun], sizes: scales.Scale) -> list[Region]:
    """Where the level changes, half-way between two sizes; where runs of a size differ is said."""
    named = []
    for size, some in itertools.groupby(runs, key=lambda run: run.working_set_bytes):
        levels = Counter(run.level for run in some)
        named.append((size, "/".join(sorted(levels))))
    regions: list[Region] = []
    for index, (size, name) in enumerate(named):
        after = named[index + 1][0] if index + 1 < len(named) else None
        stop = float(np.sqrt(float(size) * after)) if after else sizes.high
        if regions and regions[-1].name == name:
            regions[-1] = regions[-1]._replace(stop=stop)
        else:
            regions.append(Region(regions[-1].stop if regions else sizes.low, stop, name))
    return regions


def sharing_picture(one: Sharing) -> Picture | None:
    """The same threads on few chiplets and on many; who is the faster is seen at the crossing."""
    if not one.points:
        return None
    series = [
        Series(name, [_point(p.vector_bytes, getattr(p, field), gib(p.vector_bytes), "GB/s")
                      for p in one.points])
        for name, field in (("together", "local_gbs"), ("spread", "distributed_gbs"))
    ]  # fmt: skip
    sizes = scales.span(np.array([p.vector_bytes for p in one.points], dtype=float), 1.15)
    marks = []
    if one.crossing_bytes is not None:
        words = f"from {gib(one.crossing_bytes)} on, spread is faster"
        marks.append(Mark(one.crossing_bytes, words))
    return plot(
        f"Local against distributed cache: {one.operation}",
        f"{plural(one.threads, 'thread')} on PUs {_brief(one.local_pus)} (together) and "
        f"{_brief(one.distributed_pus)} (spread)",
        _size_axis("vector", sizes), _log_axis("GB/s", scales.span(_values(series), 1.3)),
        series, [], marks,
    )  # fmt: skip


def churn_picture(runs: Sequence[ChurnRun]) -> Picture | None:
    """Wall time of an operation by threads: flat scales, rising does not."""
    if not runs:
        return None
    series = []
    for name in dict.fromkeys(run.allocator for run in runs):
        mine = sorted((r for r in runs if r.allocator == name), key=lambda run: run.threads)
        points = []
        for run in mine:
            where = f"{plural(run.threads, 'thread')}, {run.overhead:.2f}× the memory asked for"
            points.append(_point(run.threads, churn_ns(run), where, "ns"))
        series.append(Series(name, points))
    counts = sorted({run.threads for run in runs})
    x = Axis("threads", counts[0] / 1.1, counts[-1] * 1.1, [(n, str(n)) for n in _thin(counts)])
    return plot(
        "Allocators under churn", "time of one allocation or free, as a thread sees it; flat is "
        "good, rising is a lock that all wait for",
        x, _log_axis("ns", scales.span(_values(series), 1.3)), series,
    )  # fmt: skip


def churn_ns(run: ChurnRun) -> Figure:
    """A thread's time for one operation."""
    each = 1e9 * run.threads / run.operations
    seconds = run.seconds
    return seconds.model_copy(
        update={"value": seconds.value * each, "low": seconds.low * each,
                "high": seconds.high * each}
    )  # fmt: skip


# ---- Parts ----------------------------------------------------------------------------------


def _steps(one: Relation) -> list[Point]:
    """The distribution by quantiles, so that 100,000 pairs are as light as 100."""
    count = min(_CDF_POINTS, max(len(one.values), 2))
    shares = np.linspace(0, 1, count)
    values = np.quantile(one.values, shares)
    return [Point(float(v), float(s), float(s), float(s), True, "")
            for v, s in zip(values, shares, strict=True)]  # fmt: skip


def _point(x: float, found: Figure, where: str, unit: scales.Unit) -> Point:
    tip = (
        f"{where}: {scales.figure_words(found.value, unit)}, interval "
        f"{scales.number(found.low)} to {scales.number(found.high)}"
        + ("" if found.settled else ", did not settle")
    )
    return Point(x, found.value, found.low, found.high, found.settled, tip)


def _values(series: Iterable[Series]) -> scales.Array:
    return np.array([p.y for one in series for p in one.points], dtype=float)


def _log_axis(label: str, scale: scales.Scale) -> Axis:
    ticks = [(tick, scales.tick_words(tick)) for tick in scales.log_ticks(scale)]
    return Axis(label, scale.low, scale.high, ticks)


def _size_axis(label: str, scale: scales.Scale) -> Axis:
    return Axis(label, scale.low, scale.high, [(t, gib(int(t))) for t in scales.size_ticks(scale)])


def _linear_axis(label: str, most: float) -> Axis:
    ticks = scales.even_ticks(0, most * 1.05, 7)
    return Axis(label, 0, most * 1.05, [(tick, scales.tick_words(tick)) for tick in ticks], False)


def _thin(counts: Sequence[int]) -> list[int]:
    """Counts that do not stand on each other on a logarithmic axis."""
    kept: list[int] = []
    for count in counts:
        if not kept or count / kept[-1] > 1.25:
            kept.append(count)
    return kept


def _brief(pus: Sequence[int]) -> str:
    words = format_cpulist(pus)
    return words if len(words) <= 28 else f"{words[:25]}..."
