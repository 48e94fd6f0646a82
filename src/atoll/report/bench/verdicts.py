"""What a bench shows, in sentences, the same in every format. Pure."""

from __future__ import annotations

import re
from collections import Counter

from atoll.report.numbers import ratio, ratio_interval
from atoll.schema.size import gib, percent
from atoll.schema.summary import (
    BenchSummary,
    Decomposition,
    EntrantSummary,
    Measured,
    Speedup,
    SpreadSummary,
)
from atoll.schema.text import plural
from atoll.stats.paired import MIN_BLOCKS

_NUMBERED = re.compile(r"q\d+")


def query_name(query: str) -> str:
    """'Q1' for the queries of a suite; a user's query is named after its file."""
    names = {"geomean": "geometric mean", "pass": "whole pass"}
    return names.get(query, query.upper() if _NUMBERED.fullmatch(query) else query)


def title(summary: BenchSummary) -> str:
    if summary.scale_factor is None:
        return f"SQL from {summary.suite}"
    suite = {"tpch": "TPC-H"}.get(summary.suite, summary.suite)
    return f"{suite} at scale factor {summary.scale_factor:g}"


def state(summary: BenchSummary) -> str:
    """'6 complete blocks, run stopped (interrupted)'."""
    reason = f" ({summary.reason})" if summary.reason else ""
    return f"{plural(summary.blocks_done, 'complete block')}, run {summary.status}{reason}"


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
    """One sentence for each entrant that has a baseline: is it faster?"""
    return [
        _verdict(summary, entrant, entrant.baseline)
        for entrant in summary.entrants
        if entrant.baseline
    ]


def _verdict(summary: BenchSummary, entrant: EntrantSummary, base: str) -> str:
    label = entrant.label
    speedup = speedup_of(entrant, "geomean")
    if speedup is None:
        return f"{label} cannot be compared with {base}: no block in which both finished."
    over = f"{ratio(speedup.value)} as fast over {plural(len(summary.queries), 'query')}"
    blocks = plural(speedup.blocks, "block")
    if speedup.interval is None:
        return (
            f"Too few blocks to compare {label} with {base}: {over} in {blocks}; an interval "
            f"needs at least {MIN_BLOCKS} blocks."
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
        parts = [
            f"{name} {values.pop() if len(values) == 1 else 'NOT EQUAL'}"
            for name, values in settings.items()
            if values
        ]
        lines.append(f"{engine}: {', '.join(parts)}")
    return lines


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
