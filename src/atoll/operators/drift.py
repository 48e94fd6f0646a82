"""Whether the activity of operators has drifted from that by which they were placed. Pure.

An activity vector has drifted if one of its figures, duty or GB/s, was more than 20 % off the
planned one, all the time for 60 s, and always on the same side. A shorter burst does not count: the
headroom is for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from atoll.engines.placeable import OperatorThread
from atoll.schema.operator_graph import Activity, Known, OperatorGraph, Source
from atoll.schema.size import percent

BY = 0.2
FOR_S = 60.0
# What the clocks of a window of seconds cannot tell from noise, by figure.
MEMORY = "memory_gbs"
_LEAST = {"duty": 0.01, MEMORY: 0.1}

Figure = tuple[str, str]  # operator, name of a field of Activity


@dataclass(frozen=True, slots=True)
class Sample:
    """What was seen from one moment to another, on any clock."""

    began_s: float
    ended_s: float
    graph: OperatorGraph


@dataclass(frozen=True, slots=True)
class Drift:
    operator: str
    figure: str  # duty, memory_gbs
    planned: float
    now: float  # the mean over the time of the drift
    for_s: float

    def __str__(self) -> str:
        unit = "core" if self.figure == "duty" else "GB/s"
        off = f" ({percent(self.now / self.planned)})" if self.planned else ""
        return (
            f"{self.operator}: {self.now:.3g} {unit} for {self.for_s:.0f} s, and "
            f"{self.planned:.3g} was planned{off}"
        )


def figures(graph: OperatorGraph) -> dict[Figure, float]:
    """The known ones."""
    found: dict[Figure, float] = {}
    for one in graph.operators:
        for name in _LEAST:
            known: Known | None = getattr(one.activity, name, None)
            if known is not None:
                found[one.id, name] = known.value
    return found


def drifted(
    planned: OperatorGraph, samples: Sequence[Sample], *, by: float = BY, for_s: float = FOR_S
) -> list[Drift]:
    """What has drifted until the last sample. `samples`: one after the other, without gaps.

    Figures that are not known on both sides are left out. Linear in samples x operators.
    """
    if not samples:
        return []
    found = []
    seen = [figures(sample.graph) for sample in samples]
    for key, was in figures(planned).items():
        values: list[float] = []
        side = 0
        began_s = samples[-1].ended_s
        for sample, known in zip(reversed(samples), reversed(seen), strict=True):
            now = known.get(key)
            off = 0 if now is None else _off(was, now, by, _LEAST[key[1]])
            if now is None or not off or (side and off != side):
                break
            side, began_s = off, sample.began_s
            values.append(now)
        lasted_s = samples[-1].ended_s - began_s
        if values and lasted_s >= for_s:
            found.append(Drift(*key, was, fmean(values), lasted_s))
    return found


def _off(planned: float, now: float, by: float, least: float) -> int:
    """1: above by more than that, -1: below, 0: neither."""
    if abs(now - planned) <= max(by * planned, least):
        return 0
    return 1 if now > planned else -1


def renewed(planned: OperatorGraph, samples: Sequence[Sample]) -> OperatorGraph:
    """The graph with the activities of these samples: means, and the largest peak. What they do not
    know stays as it was planned."""
    seen = [
        {one.id: one.activity for one in sample.graph.operators if one.activity}
        for sample in samples
    ]
    operators = []
    for one in planned.operators:
        found = [known[one.id] for known in seen if one.id in known]
        activity = _mean(found, one.activity) if found else one.activity
        operators.append(one.model_copy(update={"activity": activity}))
    return planned.model_copy(
        update={
            "operators": tuple(operators),
            "rate": samples[-1].graph.rate,
            "seconds": samples[-1].ended_s - samples[0].began_s,
        }
    )


def _mean(found: Sequence[Activity], planned: Activity | None) -> Activity:
    peaks = [one.peak.value for one in found if one.peak]
    memory = [one.memory_gbs for one in found if one.memory_gbs]
    how = f"mean of {len(found)} samples"
    return Activity(
        duty=Known(value=fmean(one.duty.value for one in found), source=Source.MEASURED, how=how),
        peak=Known(value=max(peaks), source=Source.MEASURED, how="largest of the samples")
        if peaks
        else None,
        memory_gbs=memory[-1].model_copy(update={"value": fmean(one.value for one in memory)})
        if memory
        else planned.memory_gbs
        if planned
        else None,
        cache_bytes=planned.cache_bytes if planned else None,
    )


def thread_changes(
    before: Sequence[OperatorThread],
    now: Sequence[OperatorThread],
    masks: Mapping[OperatorThread, frozenset[int]],
    seats: Mapping[OperatorThread, frozenset[int]],
) -> list[str]:
    """What happened to the operators' threads, in words. `masks`: of the threads of `now`; `seats`:
    those that they should have."""
    old, new = set(before), set(now)
    have = {name for one in now for name in one.operators}
    lost = {name for one in before for name in one.operators} - have
    said = [f"{name}: its thread has ended" for name in sorted(lost)]
    again = {name for one in new - old for name in one.operators}
    said += [f"{name}: its thread was made again; apply the placement" for name in sorted(again)]
    said += [
        f"{', '.join(one.operators)}: thread {one.tid} was moved; apply the placement"
        for one in now
        if one in old and one in masks and masks[one] != seats[one]
    ]
    return said
