"""What a profile says, in sentences and rows, the same in the terminal and on the page. Pure.

The first sentences say what the machine is. A figure that did not settle carries '~'; what was
not measured is said with its reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from atoll.infer.crossing import TIE
from atoll.infer.relations import Relation, cores, relations
from atoll.report.profile.charts import churn_ns, stream_words
from atoll.report.svg.scale import Unit, figure_words, number
from atoll.report.words import plural
from atoll.schema.base import Record
from atoll.schema.cpulist import brief_cpulist
from atoll.schema.profile import Figure, Kind, PairMatrix, Profile, Sharing, StreamKernel, StreamRun
from atoll.schema.size import gib, percent

EMULATED = (
    "EMULATED CPU: these figures mean nothing. They show that the command runs, not what any "
    "machine does."
)
_WIDE = 1.3  # 95 % over 5 % of a kind of pairs: one number would be wrong
_SOURCES = {
    "latency": "by latency",
    "bandwidth": "by bandwidth alone",
    "both": "by latency and bandwidth",
    "none": "",
}


def headline(profile: Profile) -> list[str]:
    """What the machine is: its shape and distances, its memory, its caches."""
    return [words for words in (_shape(profile), _memory(profile), _caches(profile)) if words]


def _shape(profile: Profile) -> str:
    found = profile.inference
    latency = profile.core_latency_cas_ns or profile.core_latency_store_ns
    distances = [_distance(one, "ns") for one in relations(latency, found)]
    if found and found.source == "bandwidth":  # in latency all are alike
        alike = [_distance(one, "ns") for one in relations(latency, None)]
        distances = [_distance(one, "GB/s") for one in relations(profile.core_bandwidth_gbs, found)]
        distances += alike
    count = cores(profile)
    if found is None:
        parts = [f"{plural(len(profile.cpus), 'CPU')} measured"]
    else:
        sure = f"confidence {found.confidence:.2f}"
        parts = [plural(len(found.packages), "package")] if found.packages else []
        if found.chiplets:
            how = ", ".join(filter(None, (_SOURCES[found.source], sure)))
            parts.append(f"{_islands(profile)} ({how})")
        elif found.packages:
            parts.append(f"{plural(count, 'core')}, no chiplets ({sure})")
        else:
            parts.append(f"{plural(count, 'core')} without chiplets or packages ({sure})")
        if found.smt:
            most = max(len(group) for group in found.smt)
            parts.append(plural(most, "thread") + " a core")
    words = ", ".join(parts)
    return f"{words}: {', '.join(distances)}." if distances else f"{words}."


def _islands(profile: Profile) -> str:
    """'16 chiplets of 6 cores', '7 chiplets of 6 to 8 cores'."""
    assert profile.inference is not None
    smt = {pu: group for group in profile.inference.smt for pu in group}
    sizes = [len({min(smt.get(pu, (pu,))) for pu in g}) for g in profile.inference.chiplets]
    low, high = min(sizes), max(sizes)
    each = plural(low, "core") if low == high else f"{low} to {high} cores"
    return f"{plural(len(sizes), 'chiplet')} of {each}"


def _distance(one: Relation, unit: Unit) -> str:
    low, high = one.quantile(0.05), one.quantile(0.95)
    names = {"SMT siblings": "between SMT siblings", "all pairs": "between any two",
             "other cores": "between cores"}  # fmt: skip
    where = names.get(one.name, one.name)
    if low and high / low > _WIDE:
        return f"{number(low)} to {figure_words(high, unit)} {where}"
    return f"{figure_words(one.quantile(0.5), unit)} {where}"


def _memory(profile: Profile) -> str:
    parts = []
    if profile.nodes:
        for local, words in ((True, "its own node"), (False, "another node")):
            cells = [
                cell.value
                for i, row in zip(profile.nodes.cpu_nodes, profile.nodes.latency_ns, strict=True)
                for j, cell in zip(profile.nodes.memory_nodes, row, strict=True)
                if cell and (i == j) is local
            ]
            if cells:
                parts.append(f"{_range(cells, 'ns')} to {words}")
    best = best_stream(profile.stream, StreamKernel.TRIAD, "memory")
    if best:
        way = stream_words(best.per, best.processes).replace("one per", "one process per")
        size = gib(best.working_set_bytes)
        parts.append(f"{marked(best.bandwidth_gbs)} GB/s triad over {size} with {way}")
    return f"Memory: {', '.join(parts)}." if parts else ""


def _caches(profile: Profile) -> str:
    """Of the first curve: others are in the table."""
    curve = next((one for one in profile.caches if one.levels), None)
    if curve is None:
        return ""
    levels = [
        f"L{level.level} {gib(level.capacity_bytes)} at {figure_words(level.latency_ns, 'ns')}"
        for level in curve.levels
    ]
    disturbed = any(
        one.code == "disturbed" and one.message.startswith(f"{Kind.CACHE}:")
        for one in profile.notices
    )
    return (
        f"Caches as CPU {curve.cpu} sees them{', while others used it' if disturbed else ''}: "
        f"{', '.join(levels)}."
    )


def _range(values: Sequence[float], unit: Unit) -> str:
    low, high = min(values), max(values)
    if high <= low * 1.1:
        return figure_words(sorted(values)[len(values) // 2], unit)
    return f"{number(low)} to {figure_words(high, unit)}"


def marked(figure: Figure) -> str:
    """The figure, with '~' where it did not settle."""
    return ("" if figure.settled else "~") + number(figure.value)


def interval(figure: Figure) -> str:
    return f"{number(figure.low)} to {number(figure.high)}"


def best_stream(runs: Iterable[StreamRun], kernel: StreamKernel, level: str) -> StreamRun | None:
    mine = [run for run in runs if run.kernel is kernel and run.level == level]
    return max(mine, key=lambda run: run.bandwidth_gbs.value, default=None)


# ---- What is to be doubted -------------------------------------------------------------------


def doubts(profile: Profile) -> list[str]:
    """What a reader must know before believing a figure, the loudest first."""
    found = [EMULATED] if profile.emulated else []
    found += [
        f"{one.verdict} {one.figure}: {number(one.measured)} {one.unit} measured, "
        f"{number(one.expected)} {one.unit} expected of {one.model} ({one.reason})"
        for one in profile.expectations
        if one.verdict == "misconfigured?"
    ]
    loose, all_ = unsettled(profile)
    if loose:
        found.append(
            f"{loose:,} of {all_:,} figures did not settle within {percent(profile.settle)} in the "
            "time given; they are kept as they came and marked with ~"
        )
    # Probing tells what was too much; what stayed below is told here, once.
    told = {one.message.partition(":")[0] for one in profile.notices if one.code == "disturbed"}
    for one in profile.watch:
        if one.kind.value in told:
            continue
        words = [
            f"{percent(share)} {what}"
            for share, what in (
                (one.steal_share, "of the CPU time taken by the hypervisor"),
                (one.others_share, "taken by other processes"),
                (one.frequency_drift, "drift of a core's speed"),
            )
            if share is not None and share >= 0.01
        ]
        words += [
            f"{plural(count, what)} on another {where} than asked for"
            for count, what, where in (
                (one.misplaced_threads, "sample", "CPU"),
                (one.misplaced_pages, "page", "node"),
            )
            if count
        ]
        if words:
            found.append(f"while measuring {one.kind.value}: {', '.join(words)}")
    found += [f"{one.message} [{one.code}]" for one in profile.notices]
    return found


def left_out(profile: Profile) -> list[str]:
    return [f"{one.message} [{one.code}]" for one in profile.left_out]


def unsettled(profile: Profile) -> tuple[int, int]:
    """How many figures did not settle, and how many there are."""
    matrices = (
        profile.core_latency_cas_ns, profile.core_latency_store_ns, profile.core_bandwidth_gbs
    )  # fmt: skip
    loose = sum(len(set(one.unsettled)) for one in matrices if one)
    whole = sum(_measured(one) for one in matrices if one)
    for figure in _figures(
        (profile.nodes, profile.loaded, profile.caches, profile.stream, profile.sharing,
         profile.churn)
    ):  # fmt: skip
        loose += not figure.settled
        whole += 1
    return loose, whole


def _measured(matrix: PairMatrix) -> int:
    return sum(
        value is not None and i != j
        for i, row in enumerate(matrix.values)
        for j, value in enumerate(row)
    )


def _figures(found: object) -> Iterable[Figure]:
    """Every figure in a record, however deep."""
    if isinstance(found, Figure):
        yield found
    elif isinstance(found, Record):
        for name in type(found).model_fields:
            yield from _figures(getattr(found, name))
    elif isinstance(found, tuple):
        for part in found:
            yield from _figures(part)


# ---- Rows ------------------------------------------------------------------------------------

PAIR_COLUMNS = ("pairs", "median", "5 to 95 %", "count", "~")
CACHE_COLUMNS = ("CPU", "level", "reaches", "sysfs says", "latency")
STREAM_COLUMNS = ("kernel", "processes", "threads", "level", "arrays", "GB/s", "interval")
SHARING_COLUMNS = ("operation", "threads", "crossing", "together", "spread", "so")
EXPECTED_COLUMNS = ("figure", "expected", "measured", "verdict", "why", "source")
LOADED_COLUMNS = ("CPUs", "memory", "idle", "half load", "full load", "most")


def pair_rows(matrix: PairMatrix | None, profile: Profile, unit: Unit) -> list[tuple[str, ...]]:
    return [
        (
            one.name,
            figure_words(one.quantile(0.5), unit),
            f"{number(one.quantile(0.05))} to {number(one.quantile(0.95))}",
            f"{len(one.values):,}",
            f"~{one.unsettled:,}" if one.unsettled else "",
        )
        for one in relations(matrix, profile.inference)
    ]


def loaded_rows(profile: Profile) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for curve in profile.loaded:
        if not curve.points:
            continue
        most = max(point.bandwidth_gbs for point in curve.points)
        half = min(curve.points, key=lambda point: abs(point.bandwidth_gbs - most / 2))
        first, last = curve.points[0], curve.points[-1]
        rows.append(
            (f"node {curve.cpu_node}", f"node {curve.memory_node}",
             *(f"{marked(point.latency_ns)} ns" for point in (first, half, last)),
             figure_words(most, "GB/s"))
        )  # fmt: skip
    return rows


def cache_rows(profile: Profile) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for curve in profile.caches:
        for level in curve.levels:
            claimed = gib(level.sysfs_bytes) if level.sysfs_bytes else "nothing"
            rows.append(
                (str(curve.cpu), f"L{level.level}", gib(level.capacity_bytes), claimed,
                 figure_words(level.latency_ns, "ns"))
            )  # fmt: skip
        if curve.memory_latency_ns is not None:
            latency = figure_words(curve.memory_latency_ns, "ns")
            rows.append((str(curve.cpu), "memory", "", "", latency))
    return rows


def stream_rows(profile: Profile, *, brief: bool = False) -> list[tuple[str, ...]]:
    """The best run of each kernel, way and level, memory first: it is what people look for.

    `brief`: of kernels other than the first only the best figure of the memory.
    """
    best: dict[tuple[object, ...], StreamRun] = {}
    for run in profile.stream:
        key = (run.level, run.kernel, run.per)
        if key not in best or run.bandwidth_gbs.value > best[key].bandwidth_gbs.value:
            best[key] = run
    order = {kernel: index for index, kernel in enumerate(reversed(StreamKernel))}
    levels = sorted({run.level for run in best.values()}, key=lambda name: (name == "memory", name))
    ranked = sorted(
        best.values(), key=lambda r: (-levels.index(r.level), order[r.kernel], r.processes)
    )
    if brief and ranked:
        lead = min((run.kernel for run in ranked), key=lambda kernel: order[kernel])
        tops = [best_stream(ranked, kernel, "memory") for kernel in StreamKernel]
        ranked = [run for run in ranked if run.kernel is lead or run in tops]
    return [
        (run.kernel.value, stream_words(run.per, run.processes), str(run.threads), run.level,
         gib(run.working_set_bytes), marked(run.bandwidth_gbs), interval(run.bandwidth_gbs))
        for run in ranked
    ]  # fmt: skip


def sharing_rows(profile: Profile) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for one in profile.sharing:
        if not one.points:
            continue
        if one.crossing_bytes is not None:
            crossing = gib(one.crossing_bytes)
            so = f"together below {crossing}, spread above"
        else:
            crossing, so = "none", _without_crossing(one)
        rows.append(
            (one.operation, str(one.threads), crossing,
             *(f"{number(max(values))} GB/s" for values in (
                 [point.local_gbs.value for point in one.points],
                 [point.distributed_gbs.value for point in one.points])), so)
        )  # fmt: skip
    return rows


def _without_crossing(one: Sharing) -> str:
    """Far past all caches the two are alike, so the last point alone says nothing."""
    together = any(p.local_gbs.value > p.distributed_gbs.value * (1 + TIE) for p in one.points)
    spread = any(p.distributed_gbs.value > p.local_gbs.value * (1 + TIE) for p in one.points)
    if together and spread:
        return "now the one, now the other"
    return "together" if together else "spread" if spread else "alike"


def churn_table(profile: Profile) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """A row an allocator: a column for each number of threads, and the widest overhead."""
    counts = sorted({run.threads for run in profile.churn})
    rows: list[tuple[str, ...]] = []
    for name in dict.fromkeys(run.allocator for run in profile.churn):
        mine = {run.threads: run for run in profile.churn if run.allocator == name}
        cells = [marked(churn_ns(mine[n])) if n in mine else "-" for n in counts]
        rows.append((name, *cells, f"{max(run.overhead for run in mine.values()):.2f}×"))
    return ("allocator", *map(str, counts), "memory"), rows


def expected_rows(profile: Profile) -> list[tuple[str, ...]]:
    return [
        (one.figure, f"{number(one.expected)} {one.unit}", f"{number(one.measured)} {one.unit}",
         one.verdict, one.reason, one.source)
        for one in profile.expectations
    ]  # fmt: skip


def environment_rows(profile: Profile) -> list[tuple[str, str]]:
    """What the figures hold for; unknown is said."""
    env = profile.environment
    rows = [
        ("Machine", profile.machine_title),
        ("Machine id", profile.machine_id),
        ("Measured", f"{profile.created}, {profile.mode.value}, {profile.seconds:.0f} s"),
        ("CPUs", brief_cpulist(profile.cpus)),
        ("Clock", profile.clock),
        ("CPU model", env.cpu_model),
        ("Memory", gib(env.memory_bytes)),
        ("Virtualization", env.virtualization),
        ("Kernel", env.kernel),
        ("Kernel command line", env.kernel_cmdline),
        ("Microcode", env.microcode),
        ("Transparent huge pages", f"{env.thp_enabled} / defrag {env.thp_defrag}"),
        ("AutoNUMA (numa_balancing)", env.numa_balancing),
        ("CPU governor", env.governor),
        ("Affinity mask", env.affinity),
        ("Cgroup", env.cgroup),
        ("Host (hashed)", env.hostname_hash),
        ("Atoll", env.atoll_version),
    ]
    return [(name, value or "unknown") for name, value in rows]
