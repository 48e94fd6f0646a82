"""The tables of a profile, the same in the terminal and on the page. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from atoll.infer.crossing import TIE
from atoll.infer.relations import relations
from atoll.report.environment import environment_rows
from atoll.report.numbers import Unit, figure, mark, marked, number, number_range, ratio
from atoll.report.profile.charts import processes_label
from atoll.report.table import Row, Table
from atoll.schema.cpulist import brief_cpulist
from atoll.schema.profile import (
    Expectation,
    Figure,
    PairMatrix,
    Profile,
    Sharing,
    StreamKernel,
    StreamRun,
)
from atoll.schema.size import gib


def pair_tables(profile: Profile) -> list[Table]:
    """Core-to-core figures by kind of pair."""
    measured: tuple[tuple[str, PairMatrix | None, Unit], ...] = (
        ("Core-to-core latency, compare-and-swap", profile.core_latency_cas_ns, "ns"),
        ("Core-to-core latency, store and load", profile.core_latency_store_ns, "ns"),
        ("Core-to-core bandwidth", profile.core_bandwidth_gbs, "GB/s"),
    )
    columns = ("pairs", "median", "5 to 95 %", "count", "not settled")
    return [
        Table(title, columns, _pair_rows(matrix, profile, unit))
        for title, matrix, unit in measured
        if matrix
    ]


def memory_tables(profile: Profile, *, brief: bool = False) -> list[Table]:
    """Memory, caches and what software sees; those that have rows.

    `brief`: of STREAM's kernels other than the first, only the best figure of the memory.
    """
    tables = (
        Table(
            "Memory latency under load",
            ("CPUs", "memory", "idle", "half load", "full load", "highest"),
            _loaded_rows(profile),
        ),
        Table(
            "Caches, as latency shows them",
            ("CPU", "level", "reaches", "sysfs reports", "latency"),
            _cache_rows(profile),
        ),
        Table(
            "STREAM, the best of each level; only 'memory' is memory bandwidth",
            ("kernel", "processes", "threads", "level", "arrays", "GB/s", "interval"),
            stream_rows(profile, brief=brief),
        ),
        Table(
            "Local against distributed cache",
            ("operation", "threads", "crossing", "together", "spread", "faster"),
            sharing_rows(profile),
        ),
        _churn_table(profile),
    )
    return [table for table in tables if table.rows]


def catalog_table(profile: Profile) -> Table:
    """What the catalog expects of the CPU model against what was measured."""
    return Table(
        "Against the catalog",
        ("figure", "expected", "measured", "verdict", "reason", "source"),
        [
            (
                one.figure,
                f"{number(one.expected)} {one.unit}",
                f"{mark(_is_settled(profile, one))}{number(one.measured)} {one.unit}",
                one.verdict,
                one.reason,
                one.source,
            )
            for one in profile.expectations
        ],
    )


def profile_environment(profile: Profile) -> list[Row]:
    return environment_rows(
        profile.environment,
        [
            ("Machine", profile.machine_title),
            ("Machine id", profile.machine_id),
            ("Measured", f"{profile.created}, {profile.mode.value}, {profile.seconds:.0f} s"),
            ("CPUs", brief_cpulist(profile.cpus)),
            ("Clock", profile.clock),
            ("CPU model", profile.environment.cpu_model),
            ("Memory", gib(profile.environment.memory_bytes)),
        ],
    )


def best_stream(runs: Iterable[StreamRun], kernel: StreamKernel, level: str) -> StreamRun | None:
    matching = [run for run in runs if run.kernel is kernel and run.level == level]
    return max(matching, key=lambda run: run.bandwidth_gbs.value, default=None)


def _pair_rows(matrix: PairMatrix, profile: Profile, unit: Unit) -> list[Row]:
    return [
        (
            kind.name,
            figure(kind.quantile(0.5), unit, settled=kind.settled),
            number_range(kind.quantile(0.05), kind.quantile(0.95)),
            f"{len(kind.values):,}",
            f"~{kind.unsettled:,}" if kind.unsettled else "",
        )
        for kind in relations(matrix, profile.inference)
    ]


def _loaded_rows(profile: Profile) -> list[Row]:
    rows: list[Row] = []
    for curve in profile.loaded:
        if not curve.points:
            continue
        most = max(point.bandwidth_gbs for point in curve.points)
        half = min(curve.points, key=lambda point: abs(point.bandwidth_gbs - most / 2))
        points = (curve.points[0], half, curve.points[-1])
        rows.append(
            (
                f"node {curve.cpu_node}",
                f"node {curve.memory_node}",
                *(f"{marked(point.latency_ns)} ns" for point in points),
                figure(most, "GB/s"),
            )
        )
    return rows


def _cache_rows(profile: Profile) -> list[Row]:
    rows: list[Row] = []
    for curve in profile.caches:
        rows += [
            (
                str(curve.cpu),
                f"L{level.level}",
                gib(level.capacity_bytes),
                gib(level.sysfs_bytes) if level.sysfs_bytes else "nothing",
                figure(level.latency_ns, "ns", settled=settled),
            )
            for level, settled in zip(curve.levels, curve.settled, strict=False)
        ]
        if curve.memory_latency_ns is not None:
            latency = figure(curve.memory_latency_ns, "ns", settled=curve.settled[-1])
            rows.append((str(curve.cpu), "memory", "", "", latency))
    return rows


def stream_rows(profile: Profile, *, brief: bool = False) -> list[Row]:
    """The best run of each kernel, way to split it and level, memory first."""
    best: dict[tuple[object, ...], StreamRun] = {}
    for run in profile.stream:
        key = (run.level, run.kernel, run.per)
        if key not in best or run.bandwidth_gbs.value > best[key].bandwidth_gbs.value:
            best[key] = run
    order = {kernel: index for index, kernel in enumerate(reversed(StreamKernel))}
    levels = sorted({run.level for run in best.values()}, key=lambda name: (name == "memory", name))
    ranked = sorted(
        best.values(), key=lambda run: (-levels.index(run.level), order[run.kernel], run.processes)
    )
    if brief and ranked:
        lead = min((run.kernel for run in ranked), key=lambda kernel: order[kernel])
        tops = [best_stream(ranked, kernel, "memory") for kernel in StreamKernel]
        ranked = [run for run in ranked if run.kernel is lead or run in tops]
    return [
        (
            run.kernel.value,
            processes_label(run.per, run.processes),
            str(run.threads),
            run.level,
            gib(run.working_set_bytes),
            marked(run.bandwidth_gbs),
            number_range(run.bandwidth_gbs.low, run.bandwidth_gbs.high),
        )
        for run in ranked
    ]


def sharing_rows(profile: Profile) -> list[Row]:
    rows: list[Row] = []
    for sharing in profile.sharing:
        if not sharing.points:
            continue
        if sharing.crossing_bytes is None:
            crossing, faster = "none", _without_crossing(sharing)
        else:
            crossing = gib(sharing.crossing_bytes)
            faster = f"together below {crossing}, spread above"
        together = max((p.local_gbs for p in sharing.points), key=_value)
        spread = max((p.distributed_gbs for p in sharing.points), key=_value)
        rows.append(
            (
                sharing.operation,
                str(sharing.threads),
                crossing,
                f"{marked(together)} GB/s",
                f"{marked(spread)} GB/s",
                faster,
            )
        )
    return rows


def _value(figure: Figure) -> float:
    return figure.value


def _is_settled(profile: Profile, expected: Expectation) -> bool:
    """Whether the figure that was compared with the catalog settled."""
    same = [r.bandwidth_gbs for r in profile.stream if r.bandwidth_gbs.value == expected.measured]
    return all(one.settled for one in same)


def _without_crossing(sharing: Sharing) -> str:
    """By all points: far beyond the caches the two are alike, so the last proves nothing."""
    pairs = [(p.local_gbs.value, p.distributed_gbs.value) for p in sharing.points]
    together = any(local > distributed * (1 + TIE) for local, distributed in pairs)
    spread = any(distributed > local * (1 + TIE) for local, distributed in pairs)
    if together and spread:
        return "varies"
    return "together" if together else "spread" if spread else "alike"


def _churn_table(profile: Profile) -> Table:
    """A row for each allocator, a column for each number of threads, and the largest overhead."""
    counts = sorted({run.threads for run in profile.churn})
    rows: list[Row] = []
    for name in dict.fromkeys(run.allocator for run in profile.churn):
        runs = {run.threads: run for run in profile.churn if run.allocator == name}
        cells = [marked(runs[count].operation_ns) if count in runs else "-" for count in counts]
        rows.append((name, *cells, ratio(max(run.overhead for run in runs.values()))))
    return Table(
        "Allocators under churn: ns per operation by threads; memory used over requested",
        ("allocator", *map(str, counts), "memory"),
        rows,
    )
