"""The engines' own statistics of their queries: in the measured passes, and in profiles. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from atoll.bench.results import Results
from atoll.errors import UsageError
from atoll.schema.results import Line, PassDone, QueryProfiled, QueryWork
from atoll.schema.summary import WorkSummary


@dataclass(frozen=True, slots=True)
class Peak:
    """The largest memory of one query at one time, over all instances together."""

    size_bytes: int
    query: str
    label: str
    block: int
    source: str  # whose figure it is


def work_summary(lines: Sequence[Line], label: str) -> WorkSummary | None:
    """Summarise one entrant's finished passes; None if the engine reported nothing."""
    done = {line.block for line in lines if isinstance(line, PassDone) and line.label == label}
    mine = [
        line
        for line in lines
        if isinstance(line, QueryWork | QueryProfiled)
        and line.label == label
        and line.block in done
    ]
    counted = [line for line in mine if isinstance(line, QueryWork)]
    largest = _largest(mine)
    if not counted and largest is None:
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
    return WorkSummary(
        **means,
        peak_bytes=largest.size_bytes if largest else None,
        peak_query=largest.query if largest else "",
        peak_source=largest.source if largest else "",
    )


def observed_peak(results: Results, engine: str, *, where: str) -> Peak:
    """The engine's largest query over all its entrants. Raises UsageError if there is none."""
    labels = {one.label for one in results.header.entrants if one.engine == engine}
    largest = _largest(line for line in results.lines if getattr(line, "label", None) in labels)
    if largest is None:
        raise UsageError(
            f"{where}: contains no peak memory of {engine}'s queries; give one with --peak SIZE"
        )
    return largest


def peaks(lines: Iterable[Line]) -> Iterator[Peak]:
    """Of the lines that have one. An engine has it either of passes or of profiles."""
    for line in lines:
        if isinstance(line, QueryWork | QueryProfiled):
            told = line.work if isinstance(line, QueryWork) else line.profile
            if told is not None and told.peak_bytes is not None:
                yield Peak(told.peak_bytes, line.query, line.label, line.block, told.peak_source)


def _largest(lines: Iterable[Line]) -> Peak | None:
    return max(peaks(lines), key=lambda one: one.size_bytes, default=None)
