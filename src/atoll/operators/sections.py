"""A program on the task runtime as operators: each of its code sections is one. Pure.

See docs/runtime-profiler.md. Sections have no edges: which one gives to which, the runtime cannot
know, so the user adds edges to the file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from pydantic import ValidationError

from atoll.errors import UsageError
from atoll.schema.operator_graph import Activity, GraphOperator, Known, OperatorGraph, Source
from atoll.schema.runtime_profile import RuntimeProfile, Section
from atoll.schema.size import percent

_LINE_BYTES = 64  # of all CPUs whose fills the runtime can count


def graph_of(profile: RuntimeProfile, *, where: str) -> OperatorGraph:
    """The sections by name, over all workers. Raises UsageError if there are none, and for times
    that no clock can have measured."""
    parts: dict[str, list[Section]] = defaultdict(list)
    for worker in profile.workers:
        for section in worker.sections:
            if section.entered:
                parts[section.name].append(section)
    if not parts or profile.seconds == 0:
        raise UsageError(f"{where}: no code section ran; see docs/runtime-profiler.md on sections")
    try:
        return _graph(parts, profile)
    except ValidationError:
        raise UsageError(
            f"{where}: by its times the sections do more than any machine can; take the profile "
            "again"
        ) from None


def _graph(parts: Mapping[str, Sequence[Section]], profile: RuntimeProfile) -> OperatorGraph:
    return OperatorGraph(
        rate=None,
        seconds=profile.seconds,
        operators=tuple(
            GraphOperator(
                id=name,
                parallel=len(found) > 1,
                activity=Activity(
                    duty=Known(
                        value=sum(one.seconds for one in found) / profile.seconds,
                        source=Source.MEASURED,
                        how="time in the section on all workers, without suspensions",
                    ),
                    memory_gbs=_memory_gbs(found, profile),
                ),
            )
            for name, found in sorted(parts.items())
        ),
        notes=(
            "sections have no edges: add them to the file, under `edges`",
            "the rate of the program is not known: add it to the file, under `rate`",
            *profile.remarks,
        ),
    )


def _memory_gbs(parts: Sequence[Section], profile: RuntimeProfile) -> Known | None:
    """From the sample of the time in which fills were counted. None: they were not."""
    sampled_s = sum(one.fills_s for one in parts)
    lines = [
        count
        for one in parts
        if one.fills_s > 0
        for count in (one.fills.memory_local, one.fills.memory_remote)
    ]
    counted = [count for count in lines if count is not None]
    if not counted or len(counted) < len(lines):
        return None
    whole_s = sum(one.seconds for one in parts)
    simulated = profile.fills_source == "simulated"
    share = percent(min(sampled_s / whole_s, 1.0)) if whole_s else "0 %"
    return Known(
        value=sum(counted) * _LINE_BYTES / 1e9 / sampled_s * (whole_s / profile.seconds),
        source=Source.ESTIMATED if simulated else Source.MEASURED,
        how=("simulated " if simulated else "")
        + f"lines loaded from memory x {_LINE_BYTES} B, counted in {share} of the time; "
        "without what is written back",
    )
