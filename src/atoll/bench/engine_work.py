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
    largest = max(counted, key=lambda line: line.work.peak_bytes)
    return WorkSummary(
        run_s=sum(line.work.run_s for line in counted) / passes,
        gc_s=sum(line.work.gc_s for line in counted) / passes,
        shuffle_bytes=sum(line.work.shuffle_bytes for line in counted) // passes,
        spilled_bytes=sum(line.work.spilled_bytes for line in counted) // passes,
        peak_bytes=largest.work.peak_bytes,
        peak_query=largest.query,
    )


def observed_peak(results: Results, engine: str, *, where: str) -> Peak:
    """The engine's largest query over all its entrants. Raises UsageError if there is none."""
    labels = {one.label for one in results.header.entrants if one.engine == engine}
    counted = [
        line for line in results.lines if isinstance(line, QueryWork) and line.label in labels
    ]
    if not counted:
        raise UsageError(
            f"{where}: contains no peak memory of {engine}'s queries; give one with --peak SIZE"
        )
    largest = max(counted, key=lambda line: line.work.peak_bytes)
    return Peak(largest.work.peak_bytes, largest.query, largest.label)
