"""A bench in the terminal: figures per query, then verdicts in words, then warnings.

Fits 80 columns. The verdicts come last, where the eye is when a long bench has ended.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from atoll.report import words
from atoll.schema.summary import BenchSummary, Decomposition

_STYLES = {"faster": "green", "slower": "red"}
_SHORT = {"no significant difference": "no difference", "too few blocks to tell": "too few"}


def bench_text(summary: BenchSummary) -> RenderableType:
    """The whole summary."""
    state = f"{words.plural(summary.blocks_done, 'whole block')}, run {summary.status}"
    if summary.reason:
        state += f" ({summary.reason})"
    parts: list[RenderableType] = [
        Text(f"{words.title(summary)}, {state}", style="bold"),
        Text(f"measured {_where(summary)} {summary.machine}", style="dim"),
        _table(summary),
    ]
    parts += [Text(f"Held equal: {line}", style="dim") for line in words.held_equal(summary)]
    parts += [Text(f"Spread of {line}", style="dim") for line in words.spreads(summary)]
    if rows := words.work_rows(summary):
        parts.append(Padding(_counted(rows), (1, 0, 0, 0)))
    for one in summary.entrants:
        parts += [Text(f"{one.label}: {line}", style="dim") for line in words.seats(one)]
    parts += [Text(f"Note: {note}") for note in summary.notes]
    parts += [
        Text.assemble(("Warning: ", "yellow"), warning.message) for warning in summary.warnings
    ]
    for found in summary.decompositions:
        parts += [Padding(_steps(found), (1, 0, 0, 0))]
        parts += [Text(line) for line in words.decomposition(summary, found)]
    if verdicts := words.verdicts(summary):
        parts.append(Padding(Text("\n".join(verdicts), style="bold"), (1, 0, 0, 0)))
    return Group(*parts)


def _where(summary: BenchSummary) -> str:
    return "from" if summary.entrants[0].url else "on"


def _counted(rows: Sequence[Sequence[str]]) -> Table:
    table = Table(
        box=None,
        padding=(0, 2, 0, 0),
        header_style="dim",
        pad_edge=False,
        title="What the queries of a pass took, as the engine counts",
        title_justify="left",
        title_style="bold",
    )
    for name in words.WORK_COLUMNS:
        left = name in ("deployment", "of")
        table.add_column(name, no_wrap=True, justify="left" if left else "right")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _steps(found: Decomposition) -> Table:
    """Labels without what all of them have: the engine, and Atoll's scheduler, which the title
    tells; what a step changes stands below it."""
    under = "/atoll" if found.steps[0].before.endswith("/atoll") else ""
    table = Table(
        box=None,
        padding=(0, 2, 0, 0),
        header_style="dim",
        pad_edge=False,
        title=f"What each step brings: {found.engine}"
        + (" under Atoll's scheduler" if under else ""),
        title_justify="left",
        title_style="bold",
    )
    for name in ("step", "", "interval", "share", "interval"):
        table.add_column(name, no_wrap=True, justify="left" if name == "step" else "right")
    for step, changes, value, interval, _, share, also in words.step_rows(found):
        short = step.replace(f"{found.engine}/", "")
        table.add_row(
            Text(short.replace(under, "") if under else short), value, interval, share, also
        )
        table.add_row(Text(f"  {changes}", style="dim"), "", "", "", "")
    return table


def _table(summary: BenchSummary) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    table.add_column("query", no_wrap=True)
    table.add_column("entrant", no_wrap=True, overflow="ellipsis")
    table.add_column("median", justify="right", no_wrap=True)
    over = words.baseline(summary)
    # No value has a blank: where a label needs the room, the header alone is broken.
    table.add_column("over WIM" if over == "WIM" else "speed-up", justify="right")
    table.add_column(f"{words.confidence(summary)} interval", no_wrap=True)
    table.add_column("", no_wrap=True)
    for query in (*summary.queries, "pass", "geomean"):
        shown = False
        for entrant in summary.entrants:
            times = words.times_of(entrant, query)
            found = words.speedup_of(entrant, query)
            if times is None and found is None:
                continue
            name = {"geomean": "geomean", "pass": "pass"}.get(query, words.query_name(query))
            flag = " ⚑" if times and times.outlier_blocks else ""
            table.add_row(
                "" if shown else Text(name, style="bold" if query == "geomean" else ""),
                entrant.label,
                words.duration(times.median_s) if times else "",
                words.ratio(found.value) if found else "",
                words.interval(found.interval) if found else "",
                Text(
                    _SHORT.get(found.verdict, found.verdict) + flag,
                    style=_STYLES.get(found.verdict, ""),
                )
                if found
                else Text(flag.strip()),
            )
            shown = True
    return table
