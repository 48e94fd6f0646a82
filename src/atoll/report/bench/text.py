"""A bench in the terminal, in 80 columns: figures for each query, warnings, then the verdicts.

The verdicts come last, where a reader looks when a long bench has ended. Simulated fills come
first.
"""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from atoll.report.bench import tables, verdicts
from atoll.report.bench.fills import ABOUT, emulated, fills_sentences, fills_tables
from atoll.report.numbers import duration, ratio_interval
from atoll.report.table import Row, Table
from atoll.report.terminal.grid import Fitted, grid, titled
from atoll.schema.summary import AxisSummary, BenchSummary, Decomposition

_STYLES = {"faster": "green", "slower": "red", "geomean": "bold"}
# Columns of labels: they differ at the end.
_LABELS = ("deployment", "entrant", "cluster", "simulated")
_BREAKING = ("with",)  # names several values, and rows may differ in any of them
# The columns of words in the tables that say why.
_WHY_WORDS = ("deployment", "query", "operator", "over", "what", "baseline", "here", "queries")
_SHORT = {"no significant difference": "no difference"}


def bench_text(summary: BenchSummary) -> RenderableType:
    """The whole summary."""
    where = "from" if summary.entrants[0].url else "on"
    parts: list[RenderableType] = [
        Text(f"{verdicts.title(summary)}, {verdicts.state(summary)}", style="bold"),
        Text(f"{summary.basis} {where} {summary.machine}", style="dim"),
    ]
    figures, fills = _figures(summary), _fills(summary)
    # Beside simulated fills the times mean nothing.
    parts += fills or ([figures] if figures.table.rows else [])
    if mark := emulated(summary):
        parts.insert(0, Text(mark, style="bold white on red"))
    if any(one.speedups for one in summary.entrants):
        parts.append(Text(verdicts.HOW_SPEEDUPS_COME, style="dim"))
    tails = tables.tail_table(summary)
    if tails.rows and not fills:
        parts.append(Padding(_drawn(tails, ("query", tails.columns[1])), (1, 0)))
    dim = [f"Equal for all policies: {line}" for line in verdicts.equal_settings(summary)]
    dim += [f"Chiplets used by {line}" for line in verdicts.spreads(summary)]
    parts += [Text(line, style="dim") for line in dim]
    work = tables.work_table(summary)
    if work.rows:
        work = work._replace(title=f"{work.title}, per pass, as the engine counts it")
        parts.append(Padding(_drawn(work, ("deployment", "in query")), (1, 0, 0, 0)))
    places = tables.places_table(summary)
    if places.rows:
        places = places._replace(title=f"{places.title}, per pass")
        parts.append(Padding(_drawn(places, ("deployment",)), (1, 0, 0, 0)))
    parts += why_text(summary)
    for one in summary.entrants:
        lines = verdicts.process_lines(one)
        parts += [Text(f"{one.label}: {line}", style="dim") for line in lines]
    parts += [Text(f"Note: {note}") for note in summary.notes]
    parts += [
        Text.assemble(("Warning: ", "yellow"), warning.message) for warning in summary.warnings
    ]
    parts.append(Text(verdicts.answers(summary)))
    for axis in verdicts.shown_axes(summary):
        parts.append(Padding(_axis(axis), (1, 0, 0, 0)))
    for decomposition in summary.decompositions:
        parts.append(Padding(_steps(decomposition), (1, 0, 0, 0)))
        parts += [Text(line) for line in verdicts.decomposition_notes(decomposition)]
    if sentences := [*fills_sentences(summary), *verdicts.verdicts(summary)]:
        parts.append(Padding(Text("\n".join(sentences), style="bold"), (1, 0, 0, 0)))
    return Group(*parts)


def _fills(summary: BenchSummary) -> list[RenderableType]:
    found = fills_tables(summary)
    tables = [Padding(_drawn(table, ("simulated",)), (1, 0, 0, 0)) for table in found]
    return [*tables, Padding(Text(ABOUT, style="dim"), (0, 0, 1, 0))] if found else []


def why_text(summary: BenchSummary) -> list[RenderableType]:
    """The operators and the plans; empty if no engine told."""
    return [
        *(
            Padding(_drawn(table, _WHY_WORDS), (1, 0, 0, 0))
            for table in (tables.why_table(summary), tables.plan_change_table(summary))
            if table.rows
        ),
        *map(Text, verdicts.explained(summary)),
    ]


def _drawn(table: Table, words: tuple[str, ...]) -> Group:
    """A table of the page for the terminal; the columns other than `words` are numbers."""
    return titled(table.title, Fitted(table, words, _LABELS, _STYLES, _BREAKING))


def _axis(axis: AxisSummary) -> Group:
    """Without the entrant where the columns before it name it. The page has p90 too."""
    loaded, several = axis.name == "streams", len(axis.series) > 1
    what = "queries per second of the whole pass" if loaded else "geometric mean over the queries"
    rows: list[Row] = []
    for row in tables.axis_table(axis).rows:
        load = row[-len(tables.LOAD_COLUMNS) :] if loaded else ()
        *first, value, label, ratio, interval, _, verdict = row[: len(row) - len(load)]
        of = (*load[:2], load[-1]) if load else () if several else (label,)
        word = _SHORT.get(verdict, verdict)
        rows.append((*first, value, *of, ratio.split(" ")[0], interval, word))
    who = () if several else ("entrant",)
    middle = ("queries/s", "p50", "p99", "over") if loaded else (*who, "speed-up")
    columns = (*(("with",) if several else ()), "", *middle, "interval", "")
    return _drawn(Table(f"By {axis.name}, {what}", columns, rows), ("with", "entrant", ""))


def _steps(decomposition: Decomposition) -> Group:
    """Two lines a step; what all labels share is in the title."""
    steps = tables.step_table(decomposition)
    shared = "/atoll" if decomposition.steps[0].before.endswith("/atoll") else ""
    shown = grid()
    for name in ("step", "", "interval", "share", "interval"):
        shown.add_column(name, no_wrap=True, justify="left" if name == "step" else "right")
    for step, changes, value, interval, _, share, share_interval in steps.rows:
        short = step.replace(f"{decomposition.engine}/", "")
        label = Text(short.replace(shared, "") if shared else short)
        shown.add_row(label, value, interval, share, share_interval)
        shown.add_row(Text(f"  {changes}", style="dim"), "", "", "", "")
    return titled(steps.title + (" under Atoll's scheduler" if shared else ""), shown)


def _figures(summary: BenchSummary) -> Fitted:
    candidate = verdicts.candidate(summary)
    compared = any(entrant.speedups for entrant in summary.entrants)
    over = "over WIM" if verdicts.baseline(summary) == "WIM" else "speed-up"
    ratios = (over, f"{verdicts.confidence(summary)} interval") if compared else ()
    several = compared and len({entrant.engine for entrant in summary.entrants}) > 1
    rows: list[Row] = []
    for query in (*summary.queries, *verdicts.wholes(summary), "geomean"):
        name = "queries/s" if query == "throughput" else query
        for entrant in summary.entrants:
            times = verdicts.times_of(entrant, query)
            speedup = verdicts.speedup_of(entrant, query)
            if times is None and speedup is None and not (several and query == "geomean"):
                continue  # but the reference of each engine tells whose the lines below are
            verdict = speedup.verdict if speedup else ""
            flag = " ⚑" if times and times.outlier_blocks else ""
            shown = (
                verdicts.speedup_ratio(speedup) if speedup else "",
                ratio_interval(speedup.interval) if speedup else "",
            )
            rows.append(
                (
                    name,
                    entrant.label,
                    duration(times.median_s) if times else "",
                    *(shown if compared else ()),
                    (_SHORT.get(verdict, verdict) + flag).strip(),
                )
            )
            name = ""
    columns = ("query", candidate, "median", *ratios, "")
    return Fitted(Table("", columns, rows), ("query", candidate, ""), _LABELS, _STYLES)
