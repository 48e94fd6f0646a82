"""Simulated fills in tables and sentences, the same in every format. Pure.

They stand in tables of their own, never beside measured figures. Only user mode is shown: under
emulation the kernel's share is far too large (docs/simulated.md).
"""

from __future__ import annotations

from atoll.report.bench.verdicts import baseline
from atoll.report.numbers import duration, millions, ratio
from atoll.report.profile.findings import EMULATED
from atoll.report.table import Row, Table, without_blank_columns
from atoll.schema.fills import FillCounts
from atoll.schema.size import gib, percent
from atoll.schema.summary import BenchSummary, EntrantSummary, FillsSummary

# What a reader has to know of all these figures.
ABOUT = (
    "Simulated, not measured: cache lines of 64 bytes that L2s got in user mode, by a model of the "
    "machine's caches. Means over the measured passes."
)
EMULATED_TIMES = (
    "EMULATED CPU: the times mean nothing, and none are compared. The fills are simulated."
)


def emulated(summary: BenchSummary) -> str:
    """What the times of an emulated CPU are worth; '' of another CPU."""
    if summary.basis != "emulated":
        return ""
    return EMULATED_TIMES if counted(summary) else EMULATED


def counted(summary: BenchSummary) -> list[tuple[EntrantSummary, FillsSummary]]:
    return [(one, one.fills) for one in summary.entrants if one.fills]


def fills_tables(summary: BenchSummary) -> list[Table]:
    """By source, by border, and how fast they came; empty without simulated fills."""
    found = counted(summary)
    if not found:
        return []
    sources = ("own L3", "other chiplets", "other nodes", "local memory", "remote memory")
    borders = ("between chiplets", "between nodes", "between packages", "written back")
    over = f"other caches over {baseline(summary)}"
    time = ("simulated time", "quantum, cycles", "waits given up", "queue share")
    pace = ("lines per 1000 instructions", *time, over)
    return [
        # The first heading says of every figure what it is.
        without_blank_columns(Table(title, ("simulated", *columns), rows))
        for title, columns, rows in (
            (
                "Simulated fills by source, million lines",
                sources,
                [(one.label, *_sources(fills)) for one, fills in found],
            ),
            (
                "Simulated traffic",
                borders,
                [(one.label, *_crossings(fills)) for one, fills in found],
            ),
            (
                "Simulated pace",
                pace,
                [(one.label, *_pace(fills), elsewhere_ratio(summary, one)) for one, fills in found],
            ),
        )
    ]


def fills_sentences(summary: BenchSummary) -> list[str]:
    """One for each entrant that has a baseline: does it get less from other chiplets?"""
    fills = {one.label: elsewhere(found) for one, found in counted(summary)}
    return [
        f"Simulated: {one.label} got {millions(fills[one.label])} million lines from caches of "
        f"other chiplets, {one.baseline} got {millions(fills[one.baseline])} million"
        + (f" ({elsewhere_ratio(summary, one)})." if fills[one.baseline] else ".")
        for one, _ in counted(summary)
        if one.baseline in fills
    ]


def elsewhere_ratio(summary: BenchSummary, entrant: EntrantSummary) -> str:
    """Its lines from caches of other chiplets over the baseline's; '–' if there are none."""
    fills = {one.label: elsewhere(found) for one, found in counted(summary)}
    base = fills.get(entrant.baseline or "")
    if not base or entrant.label not in fills:
        return "–"
    value = fills[entrant.label] / base
    return "<0.01×" if 0 < value < 0.005 else ratio(value)


def elsewhere(fills: FillsSummary) -> int:
    """Lines from caches of other chiplets, of any node."""
    return fills.user.sources.other_chiplet + fills.user.sources.other_node


def _sources(fills: FillsSummary) -> Row:
    sources = fills.user.sources
    shown = {
        name: f"{millions(lines)} {f'({_percent(sources.share(name))})':>6}"
        for name, lines in sources.model_dump().items()
    }
    if len(fills.counts.package_of_node) == 1:
        shown |= {"other_node": "–", "remote_memory": "–"}
    return tuple(shown.values())


def _crossings(fills: FillsSummary) -> Row:
    crossed, borders = fills.user.crossings, _borders(fills.counts)
    sizes = (crossed.chiplet_bytes, crossed.node_bytes, crossed.package_bytes)
    shown = (gib(size) if there else "–" for size, there in zip(sizes, borders, strict=True))
    return (*shown, gib(fills.user.written_bytes))


def _pace(fills: FillsSummary) -> Row:
    rate, queues = fills.user.lines_per_1000_instructions, fills.user.queue_share
    return (
        "–" if rate is None else f"{rate:.2f}",
        duration(fills.simulated_s),
        f"{fills.counts.quantum_cycles:,}",
        f"{fills.counts.lost_patience:,}" if fills.counts.lost_patience else "–",
        _percent(queues) if queues else "–",
    )


def _borders(counts: FillCounts) -> tuple[bool, bool, bool]:
    """Whether the machine has any between chiplets of a node, nodes of a package, packages."""
    packages = counts.package_of_node
    return (
        len(set(counts.node_of_chiplet)) < len(counts.node_of_chiplet),
        len(set(packages)) < len(packages),
        len(set(packages)) > 1,
    )


def _percent(share: float) -> str:
    return "<1 %" if 0 < share < 0.005 else percent(share)
