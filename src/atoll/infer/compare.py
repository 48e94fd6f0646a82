"""Compares two profiles: two settings of one machine, or two machines. Pure.

Machines may have different numbers of CPUs, so the comparison uses figures that mean the same on
both: kinds of pairs (SMT siblings, within a chiplet, across), the own and the other node, cache
levels, STREAM with the same working set in the same level, an allocator with the same threads. A
ratio is B over A, and its interval comes from the ends of both. A difference is reported only if
the intervals do not overlap and the difference is larger than either of them. A figure that did not
settle is marked.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from atoll.infer.relations import Array, Relation, cores, relations
from atoll.schema.base import Record
from atoll.schema.environment import LABELS
from atoll.schema.profile import (
    CacheCurve,
    Figure,
    Inference,
    NodeMatrix,
    Profile,
    StreamKernel,
    StreamRun,
)
from atoll.schema.size import gib
from atoll.schema.text import plural

Verdict = Literal["differs", "no difference", "only in A", "only in B"]
Unit = Literal["ns", "GB/s"]
_KINDS = ("SMT siblings", "within a chiplet", "across chiplets", "within a package",
          "other cores", "across packages", "all pairs")  # fmt: skip
_Z = 1.96


class Ratio(Record):
    """B over A."""

    value: float
    low: float
    high: float


class Compared(Record):
    topic: str
    what: str
    unit: Unit
    a: Figure | None
    b: Figure | None
    ratio: Ratio | None  # None: one is missing, or A is 0
    verdict: Verdict
    better: Literal["A", "B", ""]  # empty unless they differ

    @property
    def settled(self) -> bool:
        """Whether both figures settled, so that their ratio is trustworthy."""
        return all(one is None or one.settled for one in (self.a, self.b))


class Setting(Record):
    """A setting or property that differs and may explain a difference."""

    name: str
    a: str
    b: str


class Comparison(Record):
    a: str
    b: str
    same_machine: bool  # the machine ids, hence the layouts, are equal
    emulated: bool  # one machine is emulated: the figures mean nothing
    settings: tuple[Setting, ...]
    shapes: tuple[Setting, ...]  # the structure of the machines
    rows: tuple[Compared, ...]


class _Entry(NamedTuple):
    topic: str
    what: str
    unit: Unit
    figure: Figure


def compare_profiles(a: Profile, b: Profile) -> Comparison:
    """Every figure that means the same on both, in the order of A first."""
    left, right = list(_entries(a, b)), list(_entries(b, a))
    found_b = {entry[:3]: entry.figure for entry in right}
    found_a = {entry[:3]: entry.figure for entry in left}
    keys = list(dict.fromkeys([entry[:3] for entry in (*left, *right)]))
    order = {topic: n for n, topic in enumerate(dict.fromkeys(key[0] for key in keys))}
    rows = [
        compare_figures(*key, found_a.get(key), found_b.get(key))
        for key in sorted(keys, key=lambda key: order[key[0]])
    ]
    return Comparison(
        a=a.machine_title,
        b=b.machine_title,
        same_machine=a.machine_id == b.machine_id,
        emulated=a.emulated or b.emulated,
        settings=tuple(_settings(a, b)),
        shapes=tuple(
            Setting(name=name, a=one, b=other)
            for (name, one), (_, other) in zip(_shape(a), _shape(b), strict=True)
        ),
        rows=tuple(rows),
    )


def compare_figures(
    topic: str, what: str, unit: Unit, a: Figure | None, b: Figure | None
) -> Compared:
    ratio, better = None, ""
    verdict: Verdict = "only in A" if b is None else "only in B"
    if a is not None and b is not None:
        if a.value > 0:
            high = b.high / a.low if a.low > 0 else math.inf
            ratio = Ratio(value=b.value / a.value, low=b.low / a.high if a.high else 0, high=high)
        verdict = "differs" if _differ(a, b) else "no difference"
        if verdict == "differs":
            lower = "A" if a.value < b.value else "B"
            better = lower if unit == "ns" else {"A": "B", "B": "A"}[lower]
    return Compared(
        topic=topic, what=what, unit=unit, a=a, b=b, ratio=ratio, verdict=verdict,
        better="A" if better == "A" else "B" if better == "B" else "",
    )  # fmt: skip


def _differ(a: Figure, b: Figure) -> bool:
    apart = a.high < b.low or b.high < a.low
    return apart and abs(a.value - b.value) > max(a.high - a.low, b.high - b.low)


# ---- Figures that mean the same on both -----------------------------------------------------


def _entries(profile: Profile, other: Profile) -> Iterable[_Entry]:
    yield from _pairs(profile)
    yield from _nodes(profile.nodes)
    for curve in profile.loaded[:1]:
        if curve.points:
            last = max(curve.points, key=lambda point: point.bandwidth_gbs)
            where = f"node {curve.cpu_node} to memory {curve.memory_node}"
            yield _Entry("memory under load", f"idle, {where}", "ns", curve.points[0].latency_ns)
            yield _Entry("memory under load", f"full, {where}", "ns", last.latency_ns)
    yield from _caches(profile.caches)
    yield from _stream(profile, other)
    for sharing in profile.sharing:
        in_other = {p.vector_bytes for s in other.sharing if s.operation == sharing.operation
                  and s.threads == sharing.threads for p in s.points}  # fmt: skip
        common = [point for point in sharing.points if point.vector_bytes in in_other]
        threads = plural(sharing.threads, "thread")
        for point in common[:: max(1, len(common) // 4)]:
            what = f"{sharing.operation}, {threads}, {gib(point.vector_bytes)}"
            yield _Entry("cache sharing", f"{what}, together", "GB/s", point.local_gbs)
            yield _Entry("cache sharing", f"{what}, spread", "GB/s", point.distributed_gbs)
    both = {(run.allocator, run.threads) for run in other.churn}
    for run in profile.churn:
        if (run.allocator, run.threads) in both:
            what = f"{run.allocator}, {plural(run.threads, 'thread')}"
            topic = "allocators, time of one operation"
            yield _Entry(topic, what, "ns", run.operation_ns)


def _pairs(profile: Profile) -> Iterable[_Entry]:
    topics: tuple[tuple[str, Unit, str], ...] = (
        ("core_latency_cas_ns", "ns", "core latency, compare-and-swap"),
        ("core_latency_store_ns", "ns", "core latency, store and load"),
        ("core_bandwidth_gbs", "GB/s", "core bandwidth"),
    )
    for field, unit, topic in topics:
        matrix = getattr(profile, field)
        kinds = relations(matrix, profile.inference)
        if not kinds:
            continue
        spreads = [value for row in matrix.spreads for value in row if value is not None]
        spread = float(np.median(spreads)) if spreads else 0.0
        for one in sorted(kinds, key=lambda relation: _KINDS.index(relation.name)):
            if one.name != "all pairs":
                yield _Entry(topic, one.name, unit, _median(one, spread))
        whole = Relation(
            "all pairs",
            np.sort(np.concatenate([one.values for one in kinds])),
            sum(one.unsettled for one in kinds),
        )
        yield _Entry(topic, "all pairs", unit, _median(whole, spread))


def _median(found: Relation, spread: float) -> Figure:
    """The median over pairs. Its interval uses order statistics and is never narrower than that of
    one pair."""
    values: Array = found.values
    count = len(values)
    reach = _Z * math.sqrt(count) / 2
    low = values[max(0, math.floor(count / 2 - reach))]
    high = values[min(count - 1, math.ceil(count / 2 + reach))]
    middle = float(np.median(values))
    return Figure(
        value=middle, low=min(float(low), middle * max(0.0, 1 - spread)),
        high=max(float(high), middle * (1 + spread)), samples=count,
        settled=found.settled,
    )  # fmt: skip


def _nodes(nodes: NodeMatrix | None) -> Iterable[_Entry]:
    """The own and the other node, each by the median of its cells."""
    if nodes is None:
        return
    grids: tuple[tuple[Unit, tuple[tuple[Figure | None, ...], ...]], ...] = (
        ("ns", nodes.latency_ns), ("GB/s", nodes.bandwidth_gbs)
    )  # fmt: skip
    for unit, grid in grids:
        for local, words in ((True, "own node"), (False, "other node")):
            cells = [
                cell
                for i, row in zip(nodes.cpu_nodes, grid, strict=True)
                for j, cell in zip(nodes.memory_nodes, row, strict=True)
                if cell is not None and (i == j) is local
            ]
            if cells:
                cells.sort(key=lambda cell: cell.value)
                yield _Entry("memory by node", words, unit, cells[len(cells) // 2])


def _caches(curves: Sequence[CacheCurve]) -> Iterable[_Entry]:
    """The middle point of each level of the first curve, and memory's last point."""
    for curve in curves[:1]:
        below = 0
        for level in curve.levels:
            inside = [
                p for p in curve.points if below < p.working_set_bytes <= level.capacity_bytes
            ]
            if inside:
                middle = inside[len(inside) // 2]
                yield _Entry("caches", f"L{level.level}", "ns", middle.latency_ns)
                if middle.bandwidth_gbs is not None:
                    yield _Entry("caches", f"L{level.level}", "GB/s", middle.bandwidth_gbs)
            below = level.capacity_bytes
        if curve.points and curve.memory_latency_ns is not None:
            yield _Entry("caches", "memory", "ns", curve.points[-1].latency_ns)


def _stream(profile: Profile, other: Profile) -> Iterable[_Entry]:
    """For each division and level the largest working set that both ran there, memory first; of
    kernels other than triad only the figures from memory."""
    in_other = {(r.kernel, r.per, r.level, r.working_set_bytes) for r in other.stream}
    largest: dict[tuple[StreamKernel, str, str], StreamRun] = {}
    for run in sorted(profile.stream, key=lambda run: run.working_set_bytes):
        kept = run.kernel is StreamKernel.TRIAD or run.level == "memory"
        if kept and (run.kernel, run.per, run.level, run.working_set_bytes) in in_other:
            largest[run.kernel, run.per, run.level] = run
    levels = sorted({run.level for run in largest.values()}, key=lambda n: (n == "memory", n))
    for run in sorted(largest.values(), key=lambda run: -levels.index(run.level)):
        per = "one process" if run.per == "machine" else f"one per {run.per}"
        where = f"{gib(run.working_set_bytes)} in {run.level}"
        yield _Entry("STREAM", f"{run.kernel.value}, {per}, {where}", "GB/s", run.bandwidth_gbs)


# ---- Structure of the machines --------------------------------------------------------------


def _shape(profile: Profile) -> list[tuple[str, str]]:
    inference = profile.inference
    rows = [("CPUs measured", str(len(profile.cpus))), ("cores", str(cores(profile)))]
    rows += [
        ("packages", _count(inference, "packages")),
        ("chiplets", _count(inference, "chiplets")),
        ("confidence", "unknown" if inference is None else f"{inference.confidence:.2f}"),
    ]
    levels = profile.caches[0].levels if profile.caches else ()
    for number in (1, 2, 3):
        level = next((one for one in levels if one.level == number), None)
        rows.append((f"L{number} reaches", gib(level.capacity_bytes) if level else "unknown"))
    for operation in ("write", "read"):
        one = next((s for s in profile.sharing if s.operation == operation), None)
        crossing = "unknown" if one is None else (
            gib(one.crossing_bytes) if one.crossing_bytes else "none")  # fmt: skip
        rows.append((f"spreading pays from ({operation})", crossing))
    return rows


def _count(found: Inference | None, field: str) -> str:
    if found is None:
        return "unknown"
    groups = getattr(found, field)
    if not groups:
        return "none"
    sizes = sorted({len(group) for group in groups})
    return f"{len(groups)} of {' or '.join(map(str, sizes))} CPUs"


def _settings(a: Profile, b: Profile) -> Iterable[Setting]:
    """Differences in the environment and in the way of measuring."""
    plain = {"hostname_hash", "cgroup", "atoll_version"}
    for name in type(a.environment).model_fields:
        one, other = getattr(a.environment, name), getattr(b.environment, name)
        if one != other and name not in plain:
            shown = gib if name == "memory_bytes" else str
            yield Setting(name=LABELS[name], a=shown(one) or "unknown", b=shown(other) or "unknown")
    if a.mode is not b.mode:
        yield Setting(name="Mode of measuring", a=a.mode.value, b=b.mode.value)
