"""The summary as Markdown, and every single measurement as CSV. Pure."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

from atoll.bench.spreads import Course
from atoll.report import words
from atoll.schema.results import BlockFailed, Line, QueryTime, RunHeader
from atoll.schema.summary import BenchSummary, EntrantSummary

CSV_COLUMNS = (
    "run_id",
    "suite",
    "scale_factor",
    "machine_id",
    "block",
    "label",
    "engine",
    "policy",
    "scheduler",
    "instances",
    "phase",
    "stream",
    "query",
    "seconds",
    "engine_seconds",
    "rows",
    "answer",
    "used",
    "outlier",
    "detail",
)


def markdown(summary: BenchSummary) -> str:
    """The whole report for a wiki or a pull request, pictures left out."""
    equal = [f"- {_md(line)}" for line in words.held_equal(summary)]
    parts = [
        f"# Atoll bench: {_md(words.title(summary))}",
        f"**Measured** on: {_md(summary.machine)}  \nby: {_code(summary.command)}  \n"
        f"{words.plural(summary.blocks_done, 'whole block')}, run {summary.status}"
        + (f" ({_md(summary.reason)})" if summary.reason else ""),
        "## Verdict",
        "\n".join(f"- {_md(line)}" for line in words.verdicts(summary))
        or "There is nothing to compare with.",
    ]
    for found in summary.decompositions:
        said = [f"- {_md(line)}" for line in words.decomposition(summary, found)]
        parts.append(f"## Decomposition of {_md(found.engine)}")
        parts.append(_md_table(words.STEP_COLUMNS, words.step_rows(found)))
        parts += ["\n".join(said)] if said else []
    if summary.warnings:
        parts += [
            "## Warnings",
            "\n".join(f"- {_md(w.message)} ({w.code})" for w in summary.warnings),
        ]
    if summary.notes:
        parts += ["## Notes", "\n".join(f"- {_md(note)}" for note in summary.notes)]
    parts += [
        f"## Speed-up over {words.baseline(summary)}",
        _md_table(SPEEDUP_COLUMNS, speedup_rows(summary)),
        "## Times",
        _md_table(TIME_COLUMNS, time_rows(summary)),
        "## Deployments",
        _md_table(ENTRANT_COLUMNS, entrant_rows(summary)),
        *(["Held equal between policies:\n\n" + "\n".join(equal)] if equal else []),
        *_clusters(summary),
        *_counted(summary),
        *_spreads(summary),
        "## Environment",
        _md_table(("what", "value"), words.fingerprint_rows(summary)),
    ]
    return "\n\n".join(parts) + "\n"


def _clusters(summary: BenchSummary) -> list[str]:
    return [
        f"Processes of {_md(one.label)} on this machine:\n\n"
        + "\n".join(f"- {_md(line)}" for line in words.seats(one))
        for one in summary.entrants
        if one.processes
    ]


def _counted(summary: BenchSummary) -> list[str]:
    rows = words.work_rows(summary)
    return ["## What queries took", _md_table(words.WORK_COLUMNS, rows)] if rows else []


def _spreads(summary: BenchSummary) -> list[str]:
    lines = [f"- {_md(line)}" for line in words.spreads(summary)]
    return (
        [
            "Spread over chiplets under Atoll's scheduler, in the measured passes:\n\n"
            + "\n".join(lines)
        ]
        if lines
        else []
    )


MOST_CHANGES = 200  # of the spread that are told one by one
CHANGE_COLUMNS = ("entrant", "block", "slot", "at", "chiplets", "why")
SPEEDUP_COLUMNS = ("query", "entrant", "over", "speed-up", "interval", "blocks", "verdict")
TIME_COLUMNS = ("query", "entrant", "median", "interval", "min", "max", "blocks", "outliers")
ENTRANT_COLUMNS = (
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


def speedup_rows(summary: BenchSummary) -> list[tuple[str, ...]]:
    return [
        (
            words.query_name(query),
            entrant.label,
            entrant.baseline or "",
            words.ratio(found.value),
            words.interval(found.interval),
            str(found.blocks),
            found.verdict,
        )
        for query in ("geomean", *summary.queries, "pass")
        for entrant in summary.entrants
        if (found := words.speedup_of(entrant, query))
    ]


def time_rows(summary: BenchSummary) -> list[tuple[str, ...]]:
    return [
        (
            words.query_name(query),
            entrant.label,
            words.duration(found.median_s),
            (
                f"{words.duration(found.interval.low)} to {words.duration(found.interval.high)}"
                if found.interval
                else "–"
            ),
            words.duration(found.min_s),
            words.duration(found.max_s),
            str(found.blocks),
            ", ".join(f"block {block + 1}" for block in found.outlier_blocks) or "none",
        )
        for query in (*summary.queries, "pass")
        for entrant in summary.entrants
        if (found := words.times_of(entrant, query))
    ]


def entrant_rows(summary: BenchSummary) -> list[tuple[str, ...]]:
    return [
        (
            entrant.label,
            words.scheduler(entrant),
            *_planned(entrant),
            str(entrant.streams),
            str(entrant.blocks_done),
            str(entrant.blocks_failed),
        )
        for entrant in summary.entrants
    ]


def _planned(entrant: EntrantSummary) -> tuple[str, ...]:
    """Instances, threads, heap and shuffle partitions; unknown of what no plan started."""
    heap = entrant.heap_bytes
    known = (
        entrant.instances,
        entrant.threads,
        words.size(heap) if heap is not None else None,
        entrant.shuffle_partitions,
    )
    return tuple("–" if value is None else str(value) for value in known)


def change_rows(courses: Iterable[Course]) -> list[tuple[str, ...]]:
    """The first MOST_CHANGES changes of the spread, the start of each server among them."""
    rows: list[tuple[str, ...]] = [
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
    left = len(rows) - MOST_CHANGES
    if left > 0:
        rows[MOST_CHANGES:] = [("", "", "", "", "", f"and {left} more, in the results file")]
    return rows


def csv_text(header: RunHeader, lines: Iterable[Line], summary: BenchSummary) -> str:
    """A row per query time, warm-ups included, and per failed block.

    `used` says whether the figures of the report rest on it.
    """
    entrants = {entrant.label: entrant for entrant in header.entrants}
    counted = {
        entrant.label: {found.query: frozenset(found.outlier_blocks) for found in entrant.times}
        for entrant in summary.entrants
    }
    kept = list(lines)
    done = {(line.label, line.block) for line in kept if line.record == "pass"}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for line in kept:
        if not isinstance(line, QueryTime | BlockFailed):
            continue
        entrant = entrants[line.label]
        plan = entrant.plan
        who: tuple[object, ...] = (
            header.run_id,
            header.suite,
            "" if header.scale_factor is None else f"{header.scale_factor:g}",
            header.machine_id,
            line.block,
            line.label,
            entrant.engine,
            plan.policy.value if plan else "",
            entrant.scheduler or "",
            len(plan.slots) if plan else "",
        )
        if isinstance(line, BlockFailed):
            what: tuple[object, ...] = (
                "failed",
                "",
                "",
                "",
                "",
                "",
                "",
                "no",
                "no",
                line.error,
            )
        else:
            used = line.phase == "measured" and (line.label, line.block) in done
            outlier = used and line.block in counted[line.label].get(line.query, ())
            what = (
                line.phase,
                line.stream,
                line.query,
                f"{line.seconds:.6f}",
                f"{line.engine_seconds:.6f}",
                line.rows,
                line.answer,
                "yes" if used else "no",
                "yes" if outlier else "no",
                line.detail,
            )
        writer.writerow([_cell(value) for value in (*who, *what)])
    return out.getvalue()


def _cell(value: object) -> str:
    """Text that a spreadsheet would take for a formula gets a leading quote."""
    text = str(value)
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def _md_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *([_md(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _md(text: str) -> str:
    """Text that means only itself in Markdown and in the HTML that comes of it, on one line."""
    entities = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return " ".join("".join(f"\\{c}" if c in "\\`*_[]|#~" else c for c in entities).split())


def _code(text: str) -> str:
    """A code span, fenced by more backticks than the text has in a row."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {' '.join(text.split())} {fence}"
