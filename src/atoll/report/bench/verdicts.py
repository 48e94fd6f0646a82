"""What a bench shows, in sentences, the same in every format. Pure."""

from __future__ import annotations

from collections import Counter

from atoll.bench.axes import DECIDES
from atoll.bench.estimates import judged
from atoll.report.numbers import duration, ratio, ratio_interval
from atoll.schema.size import gib, percent
from atoll.schema.summary import (
    AxisSeries,
    AxisSummary,
    BenchSummary,
    Decomposition,
    EntrantSummary,
    Measured,
    Speedup,
    SpreadSummary,
)
from atoll.schema.text import plural
from atoll.stats.paired import MIN_BLOCKS

# What the ratios and the medians of a table have to do with each other.
HOW_SPEEDUPS_COME = (
    "A speed-up is the median of the ratios within each block, not the ratio of the two medians."
)


# A setting in `equal_settings` -> its name in `DECIDES`.
_WORDS = {"task threads": "threads", "total heap": "heap", "query streams": "streams"}


def query_name(query: str) -> str:
    """A query has the name that --queries takes; the other rows have names in words."""
    names = {"geomean": "geometric mean", "pass": "whole pass", "throughput": "queries per second"}
    return names.get(query, query)


def wholes(summary: BenchSummary) -> tuple[str, ...]:
    """The rows of whole passes; the throughput is there if numbers of streams are compared."""
    compared = {one.query for entrant in summary.entrants for one in entrant.speedups}
    return ("pass", "throughput") if "throughput" in compared else ("pass",)


def candidate(summary: BenchSummary) -> str:
    """What is measured: 'cluster', or 'entrant' if Atoll started it."""
    return "cluster" if summary.entrants[0].url else "entrant"


def speedup_ratio(speedup: Speedup) -> str:
    """'1.25×', or '~1.25×' if it has no interval."""
    return f"{'' if speedup.interval else '~'}{ratio(speedup.value)}"


_TITLES = {"tpch": "TPC-H", "tpcds": "TPC-DS", "jcch": "JCC-H", "join": "The join"}


def title(summary: BenchSummary) -> str:
    if summary.scale_factor is None:
        return f"SQL from {summary.suite}"
    name, _, variant = summary.suite.partition(":")
    if variant.isdecimal():
        variant = f"seed {variant}"
    suite = _TITLES.get(name, name) + (f" ({variant})" if variant else "")
    return f"{suite} at scale factor {summary.scale_factor:g}"


def state(summary: BenchSummary) -> str:
    """'6 complete blocks, 1 failed, 2 queries left out, run stopped (interrupted)'."""
    parts = [plural(summary.blocks_done, "complete block")]
    if summary.blocks_failed:
        parts.append(f"{summary.blocks_failed} failed")
    if summary.left_out:
        parts.append(f"{plural(len(summary.left_out), 'query')} left out")
    reason = f" ({summary.reason})" if summary.reason else ""
    return f"{', '.join(parts)}, run {summary.status}{reason}"


def answers(summary: BenchSummary) -> str:
    """Whether the answers were right, or the same, if the right ones are unknown."""
    known = summary.answers_known
    count, differing = summary.answers, summary.answers_differing
    if not count:
        return "No answer came."
    if differing:
        differ = "was wrong" if known else "differed from the first answer to its query"
        if differing > 1 and known:
            differ = "were wrong"
        return f"{differing} of {plural(count, 'answer')} {differ}."
    if known:
        return f"All answers were right ({count} checked)."
    return f"All answers to a query were the same ({count} compared)."


def clock(summary: BenchSummary) -> str:
    """What timed the queries."""
    return "the engine's own client" if summary.fingerprint.clock == "client" else "the bench"


def confidence(summary: BenchSummary) -> str:
    return percent(summary.confidence)


def speedup_of(entrant: EntrantSummary, query: str) -> Speedup | None:
    return next((one for one in entrant.speedups if one.query == query), None)


def times_of(entrant: EntrantSummary, query: str) -> Measured | None:
    return next((one for one in entrant.times if one.query == query), None)


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
    """What distinguishes it from others of its engine: 'wic', 'win/bind', 'host:8080'."""
    return entrant.label.removeprefix(f"{entrant.engine}/")


def spreads(summary: BenchSummary) -> list[str]:
    """One line for each entrant under Atoll's scheduler: how many chiplets it was on."""
    return [
        f"{one.label}: {spread_range(one.spread)} of {plural(one.spread.chiplets, 'chiplet')}, "
        f"mean {one.spread.mean:.2g}, {plural(one.spread.changes, 'change')}"
        for one in summary.entrants
        if one.spread
    ]


def spread_range(spread: SpreadSummary) -> str:
    if spread.lowest == spread.highest:
        return str(spread.lowest)
    return f"{spread.lowest} to {spread.highest}"


def verdicts(summary: BenchSummary) -> list[str]:
    """One sentence for each entrant that has a baseline: is it faster? None of an emulated CPU."""
    if summary.basis == "emulated":
        return []
    return [
        _verdict(summary, entrant, entrant.baseline)
        for entrant in summary.entrants
        if entrant.baseline
    ]


def _verdict(summary: BenchSummary, entrant: EntrantSummary, base: str) -> str:
    label = entrant.label
    speedup = judged(entrant.speedups)
    if speedup is None:
        return f"{label} cannot be compared with {base}: no block in which both finished."
    over = f"{speedup_ratio(speedup)} as fast over {plural(len(summary.queries), 'query')}"
    if speedup.query == "throughput":
        over = f"{speedup_ratio(speedup)} as many queries per second"
    blocks = plural(speedup.blocks, "block")
    if speedup.interval is None:
        return (
            f"Cannot tell whether {label} is faster than {base}: {over} in {blocks}, and an "
            f"interval needs at least {MIN_BLOCKS} blocks."
        )
    interval = f"{confidence(summary)} interval {ratio_interval(speedup.interval)}"
    figures = f"{over} ({interval}, {blocks})"
    if speedup.verdict == "no significant difference":
        return f"No significant difference between {label} and {base}: {figures}."
    return f"{label} is {speedup.verdict} than {base}: {figures}."


def equal_settings(summary: BenchSummary) -> list[str]:
    """For each engine, the settings that all its entrants share.

    A setting that differs has a warning of its own. A cluster that was already running is left out:
    its settings are unknown.
    """
    planned = [entrant for entrant in summary.entrants if not entrant.url]
    lines = []
    for engine in dict.fromkeys(entrant.engine for entrant in planned):
        entrants = [entrant for entrant in planned if entrant.engine == engine]
        settings = {
            "task threads": {str(entrant.threads) for entrant in entrants},
            "total heap": {gib(entrant.heap_bytes or 0) for entrant in entrants},
            "shuffle partitions": {
                str(entrant.shuffle_partitions)
                for entrant in entrants
                if entrant.shuffle_partitions is not None
            },
            "query streams": {str(entrant.streams) for entrant in entrants},
        }
        chosen = {
            "malloc": {str(entrant.malloc) for entrant in entrants},
            "transparent huge pages": {str(entrant.thp) for entrant in entrants},
        }
        # 'system', and None in older results, are the default.
        settings |= {name: found for name, found in chosen.items() if found - {"system", "None"}}
        meant = {word for axis in summary.axes for word in DECIDES.get(axis.name, ())}
        parts = [
            f"{name} {values.pop() if len(values) == 1 else 'NOT EQUAL'}"
            for name, values in settings.items()
            if values and (len(values) == 1 or _WORDS.get(name, name) not in meant)
        ]
        lines.append(f"{engine}: {', '.join(parts)}")
    return lines


def shown_axes(summary: BenchSummary) -> list[AxisSummary]:
    """The axes with a section of their own. Policies and schedulers alone have the whole report."""
    if {axis.name for axis in summary.axes} <= {"policy", "scheduler"}:
        return []
    return list(summary.axes)


def series_name(axis: AxisSummary, series: AxisSeries) -> str:
    """What is equal in the series: 'policy=win'; '' if the axis has only one."""
    engines = {one.engine for one in axis.series}
    parts = [series.engine] if len(engines) > 1 else []
    parts += [f"{name}={value}" for name, value in series.others.items()]
    if not parts and len(axis.series) > 1:
        parts = ["wim"]
    return ", ".join(parts)


def decomposition_notes(decomposition: Decomposition) -> list[str]:
    """What a reader must not conclude from the steps."""
    lines = []
    if decomposition.why_no_shares:
        lines.append(f"No shares: {decomposition.why_no_shares}.")
    unsure = [
        f"{step.before} → {step.after}"
        for step in decomposition.steps
        if step.speedup.verdict == "no significant difference"
    ]
    if unsure:
        shares = "its share" if len(unsure) == 1 else "their shares"
        disregard = "" if decomposition.why_no_shares else f", so disregard {shares}"
        lines.append(f"Not significantly different from 1×{disregard}: {', '.join(unsure)}.")
    return lines


def process_lines(entrant: EntrantSummary) -> list[str]:
    """The processes of a cluster, those with the same placement on one line."""
    alike = Counter(
        (one.process, ", ".join(sorted(one.masks)), one.memory_policy) for one in entrant.processes
    )
    return [
        f"{count} × {process}: CPUs {masks}, memory policy {policy or 'unknown'}"
        for (process, masks, policy), count in alike.items()
    ]


def explained(summary: BenchSummary) -> list[str]:
    """What the operators took together, and where the plan is the same."""
    return [
        f"{why.label}: the operators of {plural(why.queries, 'query')} took "
        f"{duration(why.after_s)} of threads instead of {duration(why.before_s)} under "
        f"{why.baseline}; the plans {'differ' if why.plan else 'are the same'}."
        for why in summary.why
    ]
