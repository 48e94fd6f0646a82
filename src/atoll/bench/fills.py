"""Simulated fills of an entrant: means over its finished measured passes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from atoll.schema.fills import LINE_BYTES, FillCounts, Mode
from atoll.schema.results import Line, PassDone, PassFills
from atoll.schema.summary import FillsSummary, ModeFills


def fills_summary(lines: Sequence[Line], label: str) -> FillsSummary | None:
    """None if no finished pass was counted. Passes on another machine, or of another quantum, than
    the first (after --resume) are left out."""
    done = {line.block for line in lines if isinstance(line, PassDone) and line.label == label}
    counted = [
        line.fills
        for line in lines
        if isinstance(line, PassFills)
        and line.label == label
        and line.block in done
        and line.fills is not None
    ]
    if not counted:
        return None
    alike = [one for one in counted if _setting(one) == _setting(counted[0])]
    counts = FillCounts.model_validate(_mean([one.model_dump() for one in alike]))
    return FillsSummary(
        passes=len(alike),
        simulated_s=counts.simulated_s,
        user=_of_mode(counts, "user"),
        kernel=_of_mode(counts, "kernel"),
        counts=counts,
    )


def _of_mode(counts: FillCounts, mode: Mode) -> ModeFills:
    rows, sources = counts.rows(mode), counts.sources(mode)
    instructions = sum(row.instructions for row in rows)
    stalls = sum(row.stall_cycles for row in rows)
    return ModeFills(
        sources=sources,
        crossings=counts.crossings(mode),
        written_bytes=sum(sum(row.written) for row in rows) * LINE_BYTES,
        lines_per_1000_instructions=1000 * sources.lines / instructions if instructions else None,
        # Not above 1, though the rows are read one after the other.
        queue_share=min(sum(row.queue_cycles for row in rows) / stalls, 1) if stalls else None,
    )


def _setting(counts: FillCounts) -> tuple[Any, ...]:
    machine = (counts.node_of_chiplet, counts.package_of_node)
    return counts.quantum_cycles, counts.clock_mhz, *machine


def _mean(found: Sequence[Any]) -> Any:
    """Number by number, over values of one shape."""
    first = found[0]
    if isinstance(first, dict):
        return {name: _mean([one[name] for one in found]) for name in first}
    if isinstance(first, tuple):
        return tuple(_mean(values) for values in zip(*found, strict=True))
    return round(fmean(found)) if isinstance(first, int) else first
