"""The tables of a bench, the same on the page and in Markdown. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from atoll.bench.spreads import Course
from atoll.report.bench.verdicts import (
    baseline,
    candidate,
    clock,
    query_name,
    series_name,
    speedup_of,
    speedup_ratio,
    times_of,
    wholes,
)
from atoll.report.environment import environment_rows
from atoll.report.numbers import duration, moment, number, ratio_interval, share_interval
from atoll.report.table import Row, Table, without_blank_columns
from atoll.schema.size import gib, percent
from atoll.schema.summary import (
    AxisPoint,
    AxisSummary,
    BenchSummary,
    Decomposition,
    EntrantSummary,
    Speedup,
)

LOAD_COLUMNS = ("queries/s", "p50", "p90", "p99")
MOST_CHANGES = 200  # of the spread; the results file has all


def speedup_table(summary: BenchSummary) -> Table:
    return Table(
        f"Speed-up over {baseline(summary)}",
        ("query", candidate(summary), "over", "speed-up", "interval", "blocks", "verdict"),
        [
            (
                query_name(query),
                entrant.label,
                entrant.baseline or "",
                speedup_ratio(speedup),
                ratio_interval(speedup.interval),
                str(speedup.blocks),
                speedup.verdict,
            )
            for query in ("geomean", *summary.queries, *wholes(summary))
            for entrant in summary.entrants
            if (speedup := speedup_of(entrant, query))
        ],
    )


def axis_table(axis: AxisSummary) -> Table:
    """The geometric mean over the queries, at each value of the axis; of streams the throughput,
    and how long a query takes."""
    several, loaded = len(axis.series) > 1, axis.name == "streams"
    ratio = "throughput" if loaded else "times as fast"
    columns: Row = (axis.name, "entrant", ratio, "interval", "blocks", "verdict")
    columns += LOAD_COLUMNS if loaded else ()
    rows: list[Row] = []
    for series in axis.series:
        for point in series.points:
            speedup = point.speedup
            is_base = point.label == series.reference
            missing = "1× (reference)" if is_base else "–"
            row = (
                point.value,
                point.label,
                speedup_ratio(speedup) if speedup else missing,
                ratio_interval(speedup.interval) if speedup else "–",
                str(speedup.blocks) if speedup else "–",
                speedup.verdict if speedup else "",
                *(_load(point) if loaded else ()),
            )
            rows.append((series_name(axis, series), *row) if several else row)
    return Table(f"By {axis.name}", ("with", *columns) if several else columns, rows)


def _load(point: AxisPoint) -> Row:
    rate = point.queries_per_s
    times = (point.p50_s, point.p90_s, point.p99_s)
    return (
        "–" if rate is None else f"{rate:.3g}",
        *("–" if seconds is None else duration(seconds) for seconds in times),
    )


def time_table(summary: BenchSummary) -> Table:
    return Table(
        "Times",
        ("query", candidate(summary), "median", "interval", "min", "max", "blocks", "outliers"),
        [
            (
                query_name(query),
                entrant.label,
                duration(times.median_s),
                (
                    f"{duration(times.interval.low)} to {duration(times.interval.high)}"
                    if times.interval
                    else "–"
                ),
                duration(times.min_s),
                duration(times.max_s),
                str(times.blocks),
                ", ".join(f"block {block + 1}" for block in times.outlier_blocks) or "none",
            )
            for query in (*summary.queries, "pass")
            for entrant in summary.entrants
            if (times := times_of(entrant, query))
        ],
    )


def tail_table(summary: BenchSummary) -> Table:
    """High percentiles, for the queries that have enough runs."""

    def shown(seconds: float | None) -> str:
        return "–" if seconds is None else duration(seconds)

    return Table(
        "Slow runs: percentiles of all runs",
        ("query", candidate(summary), "runs", "p95", "p99"),
        [
            (
                query_name(query),
                entrant.label,
                str(times.runs),
                shown(times.p95_s),
                shown(times.p99_s),
            )
            for query in (*summary.queries, "pass")
            for entrant in summary.entrants
            if (times := times_of(entrant, query)) and times.p95_s is not None
        ],
    )


def entrant_table(summary: BenchSummary) -> Table:
    if summary.entrants[0].url:  # Atoll planned none of them
        return Table(
            "Clusters",
            ("cluster", "streams", "blocks done", "failed"),
            [
                (one.label, str(one.streams), str(one.blocks_done), str(one.blocks_failed))
                for one in summary.entrants
            ],
        )
    columns = (
        "entrant",
        "scheduler",
        "instances",
        "threads",
        "heap",
        "shuffle partitions",
        "streams",
        "blocks done",
        "failed",
    )
    rows = [
        (
            entrant.label,
            _scheduler(entrant),
            *_planned(entrant),
            str(entrant.streams),
            str(entrant.blocks_done),
            str(entrant.blocks_failed),
        )
        for entrant in summary.entrants
    ]
    return Table("Deployments", columns, rows)


def _scheduler(entrant: EntrantSummary) -> str:
    return "Atoll's" if entrant.scheduler == "atoll" else "its own"


def _planned(entrant: EntrantSummary) -> Row:
    """Instances, threads, heap and shuffle partitions; '–' if no plan started the entrant."""
    known = (
        entrant.instances,
        entrant.threads,
        None if entrant.heap_bytes is None else gib(entrant.heap_bytes),
        entrant.shuffle_partitions,
    )
    return tuple("–" if value is None else str(value) for value in known)


def change_table(courses: Iterable[Course]) -> Table:
    """The first MOST_CHANGES changes of the spread, the start of each server included."""
    rows: list[Row] = [
        (
            course.label,
            str(course.block + 1),
            str(course.slot),
            f"{spell.begin_s:+.3f} s",
            str(spell.spread),
            spell.reason,
        )
        for course in courses
        for spell in course.spells
    ]
    more = len(rows) - MOST_CHANGES
    if more > 0:
        rows[MOST_CHANGES:] = [("", "", "", "", "", f"and {more} more, in the results file")]
    columns = ("entrant", "block", "slot", "time", "chiplets", "reason")
    return Table("Every change, and its reason", columns, rows)


def work_table(summary: BenchSummary) -> Table:
    """The counters of the engines for one pass, and the largest query's memory."""
    return without_blank_columns(
        Table(
            "What the queries used",
            ("deployment", "task time", "GC", "exchanged", "spilled", "read", "peak", "in query"),
            [
                (
                    one.label,
                    "–" if work.run_s is None else duration(work.run_s),
                    "–" if work.gc_s is None or not work.run_s else percent(work.gc_s / work.run_s),
                    *map(_size, (work.shuffle_bytes, work.spilled_bytes, work.read_bytes)),
                    _size(work.peak_bytes),
                    query_name(work.peak_query) or "–",
                )
                for one in summary.entrants
                if (work := one.work)
            ],
        )
    )


def peak_sources(summary: BenchSummary) -> str:
    """Whose figure each engine's peak is: 'ENGINE: the engine's name of it'."""
    named = {one.engine: one.work.peak_source for one in summary.entrants if one.work}
    return "; ".join(f"{engine}: {source}" for engine, source in named.items() if source)


def _size(size_bytes: float | None) -> str:
    return "–" if size_bytes is None else gib(round(size_bytes))


def places_table(summary: BenchSummary) -> Table:
    """Where threads and pages were; the shares of local memory by how they were got."""
    return without_blank_columns(
        Table(
            "Where threads and memory were",
            (
                "deployment",
                "threads",
                "elsewhere",
                "migrations",
                "local (pages)",
                "local (resctrl)",
                "read",
                "written",
            ),
            [
                (
                    one.label,
                    number(places.threads),
                    number(places.elsewhere),
                    "–" if places.migrations is None else number(places.migrations),
                    *(
                        "–" if share is None else percent(share)
                        for share in (places.local_pages, places.local_resctrl)
                    ),
                    *map(_size, (places.read_bytes, places.written_bytes)),
                )
                for one in summary.entrants
                if (places := one.places)
            ],
        )
    )


def why_table(summary: BenchSummary) -> Table:
    """The operators that hold most of each gain or loss."""
    return Table(
        "Why: the operators that hold most of the gain or loss",
        ("deployment", "query", "operator", "over", "before", "after", "share"),
        [
            (
                why.label,
                one.query,
                one.operator,
                ", ".join(one.tables) or "–",
                duration(one.before_s),
                duration(one.after_s),
                percent(one.share),
            )
            for why in summary.why
            for one in why.operators
        ],
    )


def plan_change_table(summary: BenchSummary) -> Table:
    return Table(
        "Where the plans differ",
        ("deployment", "what", "baseline", "here", "queries"),
        [
            (why.label, one.what, one.before, one.after, ", ".join(one.queries))
            for why in summary.why
            for one in why.plan
        ],
    )


def step_table(decomposition: Decomposition) -> Table:
    """A row for each step, then the whole. A share is of the logarithm of the whole."""

    def row(before: str, after: str, changes: str, speedup: Speedup, share: str, of: str) -> Row:
        value, interval = speedup_ratio(speedup), ratio_interval(speedup.interval)
        return (f"{before} → {after}", changes, value, interval, speedup.verdict, share, of)

    steps = decomposition.steps
    rows = [
        row(
            step.before,
            step.after,
            step.changes,
            step.speedup,
            "–" if step.share is None else percent(step.share),
            share_interval(step.share_interval),
        )
        for step in steps
    ]
    whole = "–" if decomposition.why_no_shares else "100 %"
    rows.append(row(steps[0].before, steps[-1].after, "all steps", decomposition.whole, whole, "–"))
    columns = ("step", "changes", "times as fast", "interval", "verdict", "share", "interval")
    return Table(f"What each step contributes: {decomposition.engine}", columns, rows)


def bench_environment(summary: BenchSummary) -> Table:
    fingerprint = summary.fingerprint
    versions = [f"{name} {version}" for name, version in fingerprint.engine_versions.items()]
    checksum = (
        ("SQL checksum (SHA-256)", summary.suite_checksum)
        if summary.suite_checksum
        else ("Data checksum (SHA-256)", fingerprint.data_checksum)
    )
    rows = environment_rows(
        fingerprint,
        [("Machine", summary.machine), ("Machine id", summary.machine_id)],
        [
            ("Engines", ", ".join(versions)),
            ("Java", fingerprint.java_version),
            ("Clock of a query", clock(summary)),
            checksum,
            ("Run", f"{summary.run_id}, started {moment(summary.started_unix_s)}"),
            ("Command", summary.command),
        ],
    )
    return Table("Environment", ("what", "value"), rows)
