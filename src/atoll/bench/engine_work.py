"""The engines' own statistics of their queries in the measured passes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from atoll.bench.results import Results
from atoll.errors import UsageError
from atoll.schema.results import Line, PassDone, QueryWork
from atoll.schema.summary import WorkSummary


@dataclass(frozen=True, slots=True)
class Peak:
    """The largest memory of one query at one time, over all instances together."""

    size_bytes: int
    query: str
    label: str


def work_summary(lines: Sequence[Line], label: str) -> WorkSummary | None:
    """Summarise one entrant's finished passes; None if the engine reported nothing."""
    done = {line.block for line in lines if isinstance(line, PassDone) and line.label == label}
    counted = [
        line
        for line in lines
        if isinstance(line, QueryWork) and line.label == label and line.block in done
    ]
    if not counted:
        return None
    passes = len({line.block for line in counted})
    sums = {
        name: sum(known)
        for name in ("run_s", "gc_s", "shuffle_bytes", "spilled_bytes", "read_bytes")
        if (known := [value for line in counted if (value := getattr(line.work, name)) is not None])
    }
    means = {
        name: whole / passes if name.endswith("_s") else whole // passes
        for name, whole in sums.items()
    }
    largest = _largest(counted)
    return WorkSummary(
        **means,
        peak_bytes=largest.work.peak_bytes if largest else None,
        peak_query=largest.query if largest else "",
        peak_source=largest.work.peak_source if largest else "",
    )


def observed_peak(results: Results, engine: str, *, where: str) -> Peak:
    """The engine's largest query over all its entrants. Raises UsageError if there is none."""
    labels = {one.label for one in results.header.entrants if one.engine == engine}
    counted = [
        line for line in results.lines if isinstance(line, QueryWork) and line.label in labels
    ]
    largest = _largest(counted)
    if largest is None or largest.work.peak_bytes is None:
        raise UsageError(
            f"{where}: contains no peak memory of {engine}'s queries; give one with --peak SIZE"
        )
    return Peak(largest.work.peak_bytes, largest.query, largest.label)


def _largest(counted: Sequence[QueryWork]) -> QueryWork | None:
    """The line with the largest peak; None if no line has one."""
    known = [line for line in counted if line.work.peak_bytes is not None]
    return max(known, key=lambda line: line.work.peak_bytes or 0, default=None)
