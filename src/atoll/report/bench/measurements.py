"""Every single measurement of a bench as CSV. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from atoll.schema.results import BlockFailed, Line, QueryFailed, QueryTime, RunHeader
from atoll.schema.summary import BenchSummary

_PASS = ("run_id", "suite", "scale_factor", "machine_id", "block")
_ENTRANT = ("label", "engine", "policy", "scheduler", "instances")
_QUERY = ("phase", "stream", "query", "seconds", "engine_seconds", "rows", "answer")
_COLUMNS = (*_PASS, *_ENTRANT, *_QUERY, "used", "outlier", "detail")


def csv_text(header: RunHeader, lines: Iterable[Line], summary: BenchSummary) -> str:
    """A row for each query time, warm-ups included, and for each failed query and block.

    `used` shows whether the figures of the report rest on the row.
    """
    entrants = {entrant.label: entrant for entrant in header.entrants}
    outliers = {
        (entrant.label, times.query, block)
        for entrant in summary.entrants
        for times in entrant.times
        for block in times.outlier_blocks
    }
    kept = list(lines)
    done = {(line.label, line.block) for line in kept if line.record == "pass"}
    out = io.StringIO()
    writer = csv.DictWriter(out, _COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for line in kept:
        if not isinstance(line, QueryTime | BlockFailed | QueryFailed):
            continue
        entrant = entrants[line.label]
        plan = entrant.plan
        row: dict[str, object] = {
            "run_id": header.run_id,
            "suite": header.suite,
            "scale_factor": "" if header.scale_factor is None else f"{header.scale_factor:g}",
            "machine_id": header.machine_id,
            "block": line.block,
            "label": line.label,
            "engine": entrant.engine,
            "policy": plan.policy.value if plan else "",
            "scheduler": entrant.scheduler or "",
            "instances": plan.all_instances if plan else "",
        }
        if isinstance(line, BlockFailed):
            row |= {"phase": "failed", "used": "no", "outlier": "no", "detail": line.error}
        elif isinstance(line, QueryFailed):
            row |= {
                "phase": line.phase,
                "stream": line.stream,
                "query": line.query,
                "answer": "failed",
                "used": "no",
                "outlier": "no",
                "detail": line.error,
            }
        else:
            used = line.phase == "measured" and (line.label, line.block) in done
            used = used and line.query in summary.queries
            outlier = used and (line.label, line.query, line.block) in outliers
            row |= {
                "phase": line.phase,
                "stream": line.stream,
                "query": line.query,
                "seconds": f"{line.seconds:.6f}",
                "engine_seconds": f"{line.engine_seconds:.6f}",
                "rows": line.rows,
                "answer": line.answer,
                "used": "yes" if used else "no",
                "outlier": "yes" if outlier else "no",
                "detail": line.detail,
            }
        writer.writerow({name: _cell(value) for name, value in row.items()})
    return out.getvalue()


def _cell(value: object) -> str:
    """Text that a spreadsheet would take for a formula gets a leading quote."""
    text = str(value)
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
