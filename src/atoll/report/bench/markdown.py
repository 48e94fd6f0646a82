"""The summary of a bench as Markdown, for a wiki or a pull request. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from atoll.report.bench import tables, verdicts
from atoll.report.bench.fills import ABOUT, emulated, fills_sentences, fills_tables
from atoll.report.table import Table
from atoll.schema.summary import BenchSummary


def markdown(summary: BenchSummary) -> str:
    """The whole report without its pictures."""
    parts = [
        f"# Atoll bench: {_text(verdicts.title(summary))}",
        f"**{mark}**" if (mark := emulated(summary)) else "",
        f"**{summary.basis.capitalize()}** on: {_text(summary.machine)}  \n"
        f"by: {_code(summary.command)}  \n" + _text(verdicts.state(summary)),
    ]
    if found := fills_tables(summary):
        parts += [part for table in found for part in _section(table)]
        parts += [ABOUT, _list(fills_sentences(summary))]
    parts += ["## Verdict", _list([*verdicts.verdicts(summary), verdicts.answers(summary)])]
    for axis in verdicts.shown_axes(summary):
        parts += _section(tables.axis_table(axis))
    for decomposition in summary.decompositions:
        parts += _section(tables.step_table(decomposition))
        parts.append(_list(verdicts.decomposition_notes(decomposition)))
    if summary.warnings:
        warnings = [f"- {_text(one.message)} ({one.code})" for one in summary.warnings]
        parts += ["## Warnings", "\n".join(warnings)]
    if summary.notes:
        parts += ["## Notes", _list(summary.notes)]
    speedups, tails = tables.speedup_table(summary), tables.tail_table(summary)
    if speedups.rows:
        parts += [*_section(speedups), verdicts.HOW_SPEEDUPS_COME]
    if not found:  # beside simulated fills the times mean nothing
        parts += [*_section(tables.time_table(summary)), *_section(tails)]
    parts += _section(tables.entrant_table(summary))
    parts += _titled_list("Equal for all policies:", verdicts.equal_settings(summary))
    for one in summary.entrants:
        title = f"Processes of {_text(one.label)} on this machine:"
        parts += _titled_list(title, verdicts.process_lines(one))
    said = (tables.work_table, tables.places_table, tables.why_table, tables.plan_change_table)
    for table in said:
        parts += _section(table(summary))
    parts += _titled_list("", verdicts.explained(summary))
    title = "Chiplets in use under Atoll's scheduler, in the measured passes:"
    parts += _titled_list(title, verdicts.spreads(summary))
    parts += _section(tables.bench_environment(summary))
    return "\n\n".join(filter(None, parts)) + "\n"


def _section(table: Table) -> list[str]:
    """Nothing if the table has no rows."""
    if not table.rows:
        return []
    rows = [table.columns, ["---"] * len(table.columns)]
    rows += [[_text(cell) for cell in row] for row in table.rows]
    drawn = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return [f"## {_text(table.title)}", drawn]


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {_text(line)}" for line in lines)


def _titled_list(title: str, lines: list[str]) -> list[str]:
    return [title, _list(lines)] if lines else []


def _text(text: str) -> str:
    """One line of text without special meaning in Markdown or in the HTML made from it."""
    entities = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return " ".join("".join(f"\\{c}" if c in "\\`*_[]|#~" else c for c in entities).split())


def _code(text: str) -> str:
    """A code span, fenced by more backticks than the text has in a row."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {' '.join(text.split())} {fence}"
