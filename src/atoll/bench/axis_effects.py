"""What each axis of a bench does: the speed-up at each of its values. Pure.

A series has equal values on all other axes, so its points differ in this axis only. The reference
is the default of the axis where that is measured, else its first value. Of `cores` it is the fewest
cores: the points are then a scalability curve (numa-distributed-engines figure 8, olap-on-chiplets
figure 9). On the axis `streams` a speed-up is one of throughput: a pass has more queries there, and
each takes longer because others run at the same time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from atoll.bench.axes import ALL, KNOB
from atoll.bench.cells import policy_of
from atoll.bench.estimates import GEOMEAN, THROUGHPUT, speedup_of
from atoll.schema.plan import Policy
from atoll.schema.results import AxisValues, Entrant, RunHeader
from atoll.schema.summary import AxisPoint, AxisSeries, AxisSummary
from atoll.stats import paired

# label -> block -> geometric mean over the queries, in seconds
Means = Mapping[str, Mapping[int, float]]

_WIM = Policy.WIM.value
_DEFAULTS = {"n": _WIM, "cores": ALL}


@dataclass(frozen=True, slots=True)
class Load:
    """What an entrant did in its measured passes."""

    pass_s: Mapping[int, float]  # block -> seconds of the whole pass for each of its queries
    p50_s: float | None  # of a query; None if there are too few runs
    p90_s: float | None
    p99_s: float | None


class _Found(NamedTuple):
    value: str
    default: bool
    entrant: Entrant


def axis_summaries(
    header: RunHeader, means: Means, loads: Mapping[str, Load]
) -> tuple[AxisSummary, ...]:
    """The axes that are varied, without those of which no two values can be compared."""
    found = (
        AxisSummary(name=axis.name, series=_series(axis, header.entrants, means, loads))
        for axis in header.axes
    )
    return tuple(one for one in found if one.series)


def _series(
    axis: AxisValues, entrants: tuple[Entrant, ...], means: Means, loads: Mapping[str, Load]
) -> tuple[AxisSeries, ...]:
    groups: dict[tuple[str, tuple[tuple[str, str], ...]], dict[str, _Found]] = {}
    for entrant in entrants:
        for cell in entrant.cells:
            others = {
                name: value
                for name, value in cell.values.items()
                if name != axis.name and (name, value) != ("policy", _WIM)
            }
            default = axis.name not in cell.values
            value = cell.values.get(axis.name) or _default(axis.name, cell.values, entrant)
            if axis.name == "policy":
                default = value == _WIM
            group = groups.setdefault((entrant.engine, tuple(sorted(others.items()))), {})
            group.setdefault(value, _Found(value, default, entrant))
    return tuple(
        _one(axis, engine, dict(others), list(group.values()), means, loads)
        for (engine, others), group in groups.items()
        if len({found.entrant.label for found in group.values()}) > 1
    )


def _default(axis: str, values: Mapping[str, str], entrant: Entrant) -> str:
    """What the absence of a value means."""
    if axis == "policy":
        return policy_of(values)
    if axis.startswith(KNOB):
        return entrant.knobs[axis.removeprefix(KNOB)]
    if axis == "scheduler" and entrant.scheduler:
        return entrant.scheduler
    return _DEFAULTS.get(axis, "default")


def _one(
    axis: AxisValues,
    engine: str,
    others: dict[str, str],
    found: list[_Found],
    means: Means,
    loads: Mapping[str, Load],
) -> AxisSeries:
    named = {one.entrant.label for one in found if not one.default}
    points = [one for one in found if not (one.default and one.entrant.label in named)]
    order = list(axis.values)
    points.sort(
        key=lambda one: (
            (_number(axis.name, one.entrant) or 0, order.index(one.value) + 1)
            if one.value in order
            else (_number(axis.name, one.entrant) or 0, 0)
        )
    )
    defaults = [one.entrant for one in found if one.default]
    base = points[0].entrant if axis.name == "cores" or not defaults else defaults[0]
    return AxisSeries(
        engine=engine,
        others=others,
        reference=base.label,
        points=tuple(
            _load_point(one, base, loads)
            if axis.name == "streams"
            else _point(axis.name, one, base, means)
            for one in points
        ),
    )


def _point(axis: str, one: _Found, base: Entrant, means: Means) -> AxisPoint:
    label = one.entrant.label
    estimate = None if label == base.label else paired.speedup(means[base.label], means[label])
    return AxisPoint(
        value=one.value,
        label=label,
        x=_number(axis, one.entrant),
        speedup=None if estimate is None else speedup_of(GEOMEAN, estimate),
    )


def _load_point(one: _Found, base: Entrant, loads: Mapping[str, Load]) -> AxisPoint:
    label = one.entrant.label
    mine, reference = loads[label], loads[base.label]
    estimate = None
    if label != base.label:
        estimate = paired.speedup(reference.pass_s, mine.pass_s)
    return AxisPoint(
        value=one.value,
        label=label,
        x=_number("streams", one.entrant),
        speedup=None if estimate is None else speedup_of(THROUGHPUT, estimate),
        queries_per_s=1 / median(mine.pass_s.values()) if mine.pass_s else None,
        p50_s=mine.p50_s,
        p90_s=mine.p90_s,
        p99_s=mine.p99_s,
    )


def _number(axis: str, entrant: Entrant) -> float | None:
    if entrant.plan is None:
        return None
    match axis:
        case "cores":
            return sum(slot.cores for slot in entrant.plan.slots)
        case "n":
            return len(entrant.plan.slots)
        case "streams":
            return entrant.streams
    return None
