"""Figures and verdicts in words, the same in every format. Pure."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime

from atoll.schema.size import gib, percent
from atoll.schema.summary import (
    BenchSummary,
    Decomposition,
    EntrantSummary,
    Interval,
    Measured,
    Speedup,
    SpreadSummary,
)
from atoll.stats.paired import MIN_BLOCKS

QUERY_WORDS = {"geomean": "geometric mean", "pass": "whole pass"}


_NUMBERED = re.compile(r"q\d+")


def query_name(query: str) -> str:
    """'Q1' as the suites' queries are known; the user's are called as their files are."""
    return QUERY_WORDS.get(query, query.upper() if _NUMBERED.fullmatch(query) else query)


def duration(seconds: float) -> str:
    """Three significant digits, in the unit that suits: '1.23 s', '45.3 ms'."""
    value, unit = (seconds, "s") if seconds >= 1 else (seconds * 1e3, "ms")
    if value >= 99.95:
        return f"{value:.0f} {unit}"
    return f"{value:.1f} {unit}" if value >= 9.995 else f"{value:.2f} {unit}"


def ratio(value: float) -> str:
    return f"{value:.2f}×"


def interval(found: Interval | None) -> str:
    return f"{found.low:.2f} to {found.high:.2f}" if found else "–"


def plural(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def size(number: int) -> str:
    return f"{number / 2**30:.1f} GiB" if number >= 1 << 30 else f"{number / 2**20:.0f} MiB"


def moment(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%d %H:%M UTC")


def title(summary: BenchSummary) -> str:
    if summary.scale_factor is None:
        return f"The SQL of {summary.suite}"
    suite = {"tpch": "TPC-H"}.get(summary.suite, summary.suite)
    return f"{suite} at scale factor {summary.scale_factor:g}"


def confidence(summary: BenchSummary) -> str:
    return percent(summary.confidence)


def speedup_of(entrant: EntrantSummary, query: str) -> Speedup | None:
    return next((found for found in entrant.speedups if found.query == query), None)


def times_of(entrant: EntrantSummary, query: str) -> Measured | None:
    return next((found for found in entrant.times if found.query == query), None)


def baseline(summary: BenchSummary) -> str:
    """What speed-ups are over: 'WIM', unless schedulers or clusters are compared."""
    first = summary.entrants[0]
    if first.url:
        return first.label
    schedulers = {one.label: one.scheduler for one in summary.entrants}
    mixed = any(
        schedulers.get(one.baseline) != one.scheduler for one in summary.entrants if one.baseline
    )
    return "the baseline" if mixed else "WIM"


def variant(entrant: EntrantSummary) -> str:
    """What tells it from others of its engine: 'wic', 'wic/atoll', 'win/bind', 'host:8080'."""
    return entrant.label.removeprefix(f"{entrant.engine}/")


def scheduler(entrant: EntrantSummary) -> str:
    return "Atoll's" if entrant.scheduler == "atoll" else "its own"


def spreads(summary: BenchSummary) -> list[str]:
    """One line for each entrant under Atoll's scheduler: over how many chiplets it sat."""
    return [
        f"{one.label}: {spread_range(one.spread)} of {plural(one.spread.chiplets, 'chiplet')}, "
        f"mean {one.spread.mean:.2g}, {plural(one.spread.changes, 'change')}"
        for one in summary.entrants
        if one.spread
    ]


def spread_range(found: SpreadSummary) -> str:
    if found.lowest == found.highest:
        return str(found.lowest)
    return f"{found.lowest} to {found.highest}"


def verdicts(summary: BenchSummary) -> list[str]:
    """One sentence for each entrant that has a baseline: did it pay?"""
    return [_verdict(summary, entrant) for entrant in summary.entrants if entrant.baseline]


def _verdict(summary: BenchSummary, entrant: EntrantSummary) -> str:
    found = speedup_of(entrant, "geomean")
    mine, base = entrant.label, entrant.baseline
    if found is None:
        return f"{mine} was not measured beside {base}: no block in which both finished."
    over = plural(len(summary.queries), "query").replace("querys", "queries")
    if found.interval is None:
        return (
            f"Too few blocks to tell {mine} from {base}: {ratio(found.value)} as fast over {over} "
            f"in {plural(found.blocks, 'block')}; {MIN_BLOCKS} blocks give an interval."
        )
    figures = (
        f"{ratio(found.value)} as fast over {over} ({confidence(summary)} interval "
        f"{interval(found.interval)}, {plural(found.blocks, 'block')})"
    )
    if found.verdict == "no significant difference":
        return f"No significant difference between {mine} and {base}: {figures}."
    return f"{mine} is {found.verdict} than {base}: {figures}."


def held_equal(summary: BenchSummary) -> list[str]:
    """Per engine, what is the same for all its entrants; what is not is a warning already.

    Of clusters that ran already nothing is known but the streams."""
    planned = [entrant for entrant in summary.entrants if not entrant.url]
    lines = []
    for engine in dict.fromkeys(entrant.engine for entrant in planned):
        mine = [entrant for entrant in planned if entrant.engine == engine]
        figures = {
            "task threads": {str(entrant.threads) for entrant in mine},
            "total heap": {size(entrant.heap_bytes or 0) for entrant in mine},
            "shuffle partitions": {str(entrant.shuffle_partitions) for entrant in mine},
            "query streams": {str(entrant.streams) for entrant in mine},
        }
        parts = [
            f"{word} {found.pop() if len(found) == 1 else 'NOT EQUAL'}"
            for word, found in figures.items()
        ]
        lines.append(f"{engine}: {', '.join(parts)}")
    return lines


WORK_COLUMNS = ("deployment", "in tasks", "of it GC", "shuffled", "spilled", "peak", "of")


def work_rows(summary: BenchSummary) -> list[tuple[str, ...]]:
    """What the engines counted a pass: threads in tasks, bytes, and the largest query's memory."""
    return [
        (
            one.label,
            duration(work.run_s),
            percent(work.gc_s / work.run_s) if work.run_s else "",
            gib(work.shuffle_bytes),
            gib(work.spilled_bytes),
            gib(work.peak_bytes),
            query_name(work.peak_query),
        )
        for one in summary.entrants
        if (work := one.work)
    ]


STEP_COLUMNS = ("step", "changes", "times as fast", "interval", "verdict", "share", "interval")


def step_rows(found: Decomposition) -> list[tuple[str, ...]]:
    """A row per step, then the whole. A share is of the logarithm of the whole."""
    rows: list[tuple[str, ...]] = [
        (
            f"{step.before} → {step.after}",
            step.changes,
            ratio(step.speedup.value),
            interval(step.speedup.interval),
            step.speedup.verdict,
            "–" if step.share is None else percent_of(step.share),
            share_interval(step.share_interval),
        )
        for step in found.steps
    ]
    whole = found.whole
    rows.append(
        (
            f"{found.steps[0].before} → {found.steps[-1].after}",
            "all of it",
            ratio(whole.value),
            interval(whole.interval),
            whole.verdict,
            "–" if found.why_no_shares else "100 %",
            "–",
        )
    )
    return rows


def percent_of(share: float) -> str:
    return f"{100 * share:.0f} %"


def share_interval(found: Interval | None) -> str:
    return f"{100 * found.low:.0f} to {100 * found.high:.0f} %" if found else "–"


def decomposition(summary: BenchSummary, found: Decomposition) -> list[str]:
    """What is told of it in sentences, the honest part first."""
    lines = []
    if found.why_no_shares:
        lines.append(f"No shares: {found.why_no_shares}.")
    unsure = [
        f"{step.before} → {step.after}"
        for step in found.steps
        if step.speedup.verdict == "no significant difference"
    ]
    if unsure:
        lines.append(
            f"Not told from 1 at {confidence(summary)}, so read no share into "
            f"{'it' if len(unsure) == 1 else 'them'}: {', '.join(unsure)}."
        )
    return lines


def seats(entrant: EntrantSummary) -> list[str]:
    """A cluster's processes in words: those that sit alike together."""
    alike = Counter(
        (one.process, ", ".join(sorted(one.masks)), one.memory_policy) for one in entrant.processes
    )
    return [
        f"{count} × {process}: CPUs {masks}, memory policy {policy or 'unknown'}"
        for (process, masks, policy), count in alike.items()
    ]


def fingerprint_rows(summary: BenchSummary) -> list[tuple[str, str]]:
    """The environment, name and value; unknown is said."""
    found = summary.fingerprint
    versions = [f"{name} {version}" for name, version in found.engine_versions.items()]
    rows = [
        ("Machine", summary.machine),
        ("Machine id", summary.machine_id),
        ("Host (hashed)", found.hostname_hash),
        ("Virtualization", found.virtualization),
        ("Kernel", found.kernel),
        ("Kernel command line", found.kernel_cmdline),
        ("Microcode", found.microcode),
        ("Transparent huge pages", " / defrag ".join(filter(None, _thp(summary)))),
        ("AutoNUMA (numa_balancing)", found.numa_balancing),
        ("CPU governor", found.governor),
        ("Affinity mask", found.affinity),
        ("Cgroup", found.cgroup),
        ("Engines", ", ".join(versions)),
        ("Java", found.java_version),
        (
            "SQL checksum (SHA-256)" if summary.suite_checksum else "Data checksum (SHA-256)",
            summary.suite_checksum or found.data_checksum,
        ),
        ("Atoll", found.atoll_version),
        ("Run", f"{summary.run_id}, started {moment(summary.started_unix_s)}"),
        ("Command", summary.command),
    ]
    return [(name, value or "unknown") for name, value in rows]


def _thp(summary: BenchSummary) -> tuple[str, str]:
    return summary.fingerprint.thp_enabled, summary.fingerprint.thp_defrag
