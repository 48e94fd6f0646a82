"""What a profile shows, in sentences: the machine, and reasons to doubt a figure. Pure.

The terminal and the page share them. '~' marks a figure that did not settle; what was not measured
is listed with its reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from atoll.infer.relations import Relation, cores, relations
from atoll.report.numbers import Unit, figure, marked, number, number_range
from atoll.report.profile.charts import processes_label
from atoll.report.profile.inference import verdict
from atoll.report.profile.tables import best_stream
from atoll.schema.base import Record
from atoll.schema.confidence import LEAST_CONFIDENCE
from atoll.schema.profile import Figure, Kind, PairMatrix, Profile, StreamKernel, Watch
from atoll.schema.size import gib, percent
from atoll.schema.text import plural

EMULATED = (
    "EMULATED CPU: these figures mean nothing. They show that the command runs, not what any "
    "machine does."
)
_WIDE = 1.3  # the 95th percentile of a kind of pairs over the 5th: one number would mislead
_SOURCES = {
    "latency": "by latency",
    "bandwidth": "by bandwidth alone",
    "both": "by latency and bandwidth",
    "none": "",
}
_PAIRS = {
    "SMT siblings": "between SMT siblings",
    "all pairs": "between any two",
    "other cores": "between cores",
}


def headline(profile: Profile) -> list[str]:
    """What the machine is: its shape and distances, its memory, its caches."""
    return [words for words in (_shape(profile), _memory(profile), _caches(profile)) if words]


def _shape(profile: Profile) -> str:
    inference = profile.inference
    latency = profile.core_latency_cas_ns or profile.core_latency_store_ns
    distances = [_distance(kind, "ns") for kind in relations(latency, inference)]
    if inference and inference.source == "bandwidth":  # latencies do not show the groups
        bandwidths = relations(profile.core_bandwidth_gbs, inference)
        distances = [_distance(kind, "GB/s") for kind in bandwidths]
        distances += [_distance(kind, "ns") for kind in relations(latency, None)]
    if inference is None:
        parts = [f"{plural(len(profile.cpus), 'CPU')} measured"]
    else:
        confidence = f"confidence {inference.confidence:.2f}"
        parts = [plural(len(inference.packages), "package")] if inference.packages else []
        if inference.chiplets:
            basis = ", ".join(filter(None, (_SOURCES[inference.source], confidence)))
            parts.append(f"{verdict(inference, _chiplets(profile))} ({basis})")
        else:
            # Without a sure answer, two PUs may also be threads of one core.
            if inference.smt or inference.confidence >= LEAST_CONFIDENCE:
                parts.append(plural(cores(profile), "core"))
            else:
                parts.append(plural(len(profile.cpus), "CPU"))
            none = "no chiplets" if inference.packages else "no chiplets or packages"
            parts.append(f"{verdict(inference, '', none)} ({confidence})")
        if inference.smt:
            most = max(len(group) for group in inference.smt)
            parts.append(f"{plural(most, 'thread')} per core")
    words = ", ".join(parts)
    return f"{words}: {', '.join(distances)}." if distances else f"{words}."


def _chiplets(profile: Profile) -> str:
    """'16 chiplets of 6 cores', '7 chiplets of 6 to 8 cores'."""
    assert profile.inference is not None
    siblings = {pu: group for group in profile.inference.smt for pu in group}
    sizes = [
        len({min(siblings.get(pu, (pu,))) for pu in group}) for group in profile.inference.chiplets
    ]
    low, high = min(sizes), max(sizes)
    each = plural(low, "core") if low == high else f"{low} to {high} cores"
    return f"{plural(len(sizes), 'chiplet')} of {each}"


def _distance(kind: Relation, unit: Unit) -> str:
    low, high = kind.quantile(0.05), kind.quantile(0.95)
    where = _PAIRS.get(kind.name, kind.name)
    if low and high / low > _WIDE:
        return f"{number_range(low, high, settled=kind.settled)} {unit} {where}"
    return f"{figure(kind.quantile(0.5), unit, settled=kind.settled)} {where}"


def _memory(profile: Profile) -> str:
    parts = []
    if profile.nodes:
        for local, where in ((True, "own node"), (False, "another node")):
            cells = [
                cell
                for i, row in zip(profile.nodes.cpu_nodes, profile.nodes.latency_ns, strict=True)
                for j, cell in zip(profile.nodes.memory_nodes, row, strict=True)
                if cell and (i == j) is local
            ]
            if cells:
                parts.append(f"{_latencies(cells)} to {where}")
    best = best_stream(profile.stream, StreamKernel.TRIAD, "memory")
    if best:
        way = processes_label(best.per, best.processes).replace("one per", "one process per")
        arrays = gib(best.working_set_bytes)
        parts.append(f"{marked(best.bandwidth_gbs)} GB/s triad over {arrays} with {way}")
    return f"Memory: {', '.join(parts)}." if parts else ""


def _caches(profile: Profile) -> str:
    """The caches of the first curve; the table has the others."""
    curve = next((curve for curve in profile.caches if curve.levels), None)
    if curve is None:
        return ""
    levels = [
        f"L{level.level} {gib(level.capacity_bytes)} at "
        + figure(level.latency_ns, "ns", settled=settled)
        for level, settled in zip(curve.levels, curve.settled, strict=False)
    ]
    in_use = ", while others used them" if Kind.CACHE.value in _disturbed(profile) else ""
    return f"Caches as seen from CPU {curve.cpu}{in_use}: {', '.join(levels)}."


def _latencies(cells: Sequence[Figure]) -> str:
    values = sorted(cell.value for cell in cells)
    settled = all(cell.settled for cell in cells)
    if values[-1] <= values[0] * 1.1:
        return figure(values[len(values) // 2], "ns", settled=settled)
    return f"{number_range(values[0], values[-1], settled=settled)} ns"


# ---- Reasons to doubt a figure --------------------------------------------------------------


def doubts(profile: Profile) -> list[str]:
    """What a reader must know before trusting a figure, the most serious first.

    That the CPU was emulated is not among them: every report shows it larger.
    """
    lines = [
        f"{one.verdict} {one.figure}: {number(one.measured)} {one.unit} measured, "
        f"{number(one.expected)} {one.unit} expected for {one.model} ({one.reason})"
        for one in profile.expectations
        if one.verdict == "misconfigured?"
    ]
    loose, total = unsettled(profile)
    if loose:
        lines.append(
            f"{loose:,} of {total:,} figures did not settle within {percent(profile.settle)} in "
            "the time given; they are kept as measured and marked with ~"
        )
    # A disturbance beyond the limit is among the notices; a smaller one is listed here.
    reported = _disturbed(profile)
    lines += [
        f"while measuring {watch.kind.value}: {', '.join(causes)}"
        for watch in profile.watch
        if watch.kind.value not in reported and (causes := _disturbances(watch))
    ]
    return [*lines, *(f"{one.message} [{one.code}]" for one in profile.notices)]


def left_out(profile: Profile) -> list[str]:
    return [f"{one.message} [{one.code}]" for one in profile.left_out]


def unsettled(profile: Profile) -> tuple[int, int]:
    """How many figures did not settle, and how many there are."""
    matrices = (
        profile.core_latency_cas_ns,
        profile.core_latency_store_ns,
        profile.core_bandwidth_gbs,
    )
    single = list(
        _figures(
            (
                profile.nodes,
                profile.loaded,
                profile.caches,
                profile.stream,
                profile.sharing,
                profile.churn,
            )
        )
    )
    loose = sum(len(set(matrix.unsettled)) for matrix in matrices if matrix)
    total = sum(_pair_count(matrix) for matrix in matrices if matrix)
    return loose + sum(not one.settled for one in single), total + len(single)


def _disturbed(profile: Profile) -> set[str]:
    """The kinds of measurement that a notice calls disturbed."""
    return {
        notice.message.partition(":")[0] for notice in profile.notices if notice.code == "disturbed"
    }


def _disturbances(watch: Watch) -> list[str]:
    shares = (
        (watch.steal_share, "of the CPU time taken by the hypervisor"),
        (watch.others_share, "of the CPU time taken by other processes"),
        (watch.frequency_drift, "change of a core's speed"),
    )
    misplaced = (
        (watch.misplaced_threads, "sample", "CPU"),
        (watch.misplaced_pages, "page", "node"),
    )
    causes = [f"{percent(share)} {what}" for share, what in shares if share and share >= 0.01]
    causes += [
        f"{plural(count, what)} on the wrong {where}" for count, what, where in misplaced if count
    ]
    return causes


def _pair_count(matrix: PairMatrix) -> int:
    return sum(
        value is not None and i != j
        for i, row in enumerate(matrix.values)
        for j, value in enumerate(row)
    )


def _figures(part: object) -> Iterable[Figure]:
    """Every figure in a record, at any depth."""
    if isinstance(part, Figure):
        yield part
    elif isinstance(part, Record):
        for name in type(part).model_fields:
            yield from _figures(getattr(part, name))
    elif isinstance(part, tuple):
        for item in part:
            yield from _figures(item)
