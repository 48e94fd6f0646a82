"""The paper's numbers and ours as bars, a group for each figure. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from atoll.experiments.ours import Ours
from atoll.report.experiment.tables import Figure, figures, names, sign
from atoll.report.numbers import cut, number, tick_label
from atoll.report.svg.axes import Scale, even_ticks
from atoll.report.svg.elements import WIDTH, Picture, line, rect, text
from atoll.report.svg.palette import SERIES
from atoll.report.svg.rows import Row, Tick, fitting, row_charts
from atoll.schema.experiment import Experiment
from atoll.stats.paired import Interval

_LEFT, _RIGHT = 200.0, 100.0
_BAR, _GAP = 13.0, 4.0
_LONGEST = 30
# Who, basis, value, interval, colour
_Bar = tuple[str, str, float, Interval | None, int]


def side_charts(experiment: Experiment, found: Sequence[Ours]) -> list[Picture]:
    """Each unit has its own pictures, because a bar's length has one meaning only."""
    units: dict[str, list[Figure]] = {}
    for one in figures(experiment, found):
        units.setdefault(one.unit, []).append(one)
    return [
        chart for unit, rows in units.items() for chart in _charts(experiment, unit, rows, found)
    ]


def _charts(
    experiment: Experiment, unit: str, rows: Sequence[Figure], found: Sequence[Ours]
) -> list[Picture]:
    groups: dict[str, list[_Bar]] = {}
    for one in rows:
        groups.setdefault(one.term, []).extend(_bars(one, found))
    bars = [bar for group in groups.values() for bar in group]
    most = max((bar[3].high if bar[3] else bar[2] for bar in bars), default=1)
    scale = Scale(0, most * 1.05, log=False)

    def row(term: str, group: Sequence[_Bar]) -> Row:
        marks = [text(8, _BAR, term, "bold small")]
        y = _BAR + _GAP + 2
        for bar in group:
            marks += _drawn(bar, unit, y, scale)
            y += _BAR + _GAP
        return Row(y + 2 * _GAP, "".join(marks))

    return row_charts(
        f"{experiment.figure}: published and ours, {unit}",
        WIDTH,
        [Tick(_x(scale, tick), tick_label(tick)) for tick in even_ticks(0, scale.high, 7)],
        [row(term, part) for term, group in groups.items() for part in fitting(group, _BAR + _GAP)],
    )


def _x(scale: Scale, value: float) -> float:
    return _LEFT + scale.at(value) * (WIDTH - _LEFT - _RIGHT)


def _bars(one: Figure, found: Sequence[Ours]) -> Iterator[_Bar]:
    engine = f"{one.engine} " if one.engine else ""
    for each in one.published:
        yield f"{engine}published, {each.machine}", "published", each.value, None, 0
    ours = zip(names(found), found, one.measured, strict=True)
    for index, (name, own, reading) in enumerate(ours):
        if reading is not None and not reading.by_name:
            estimate = reading.estimate
            yield (
                f"{engine}{own.basis}, {name}",
                own.basis,
                estimate.value,
                estimate.interval,
                1 + index % SERIES,
            )


def _drawn(bar: _Bar, unit: str, y: float, scale: Scale) -> Iterator[str]:
    who, basis, value, interval, colour = bar
    middle = y + _BAR / 2
    end = _x(scale, value)
    yield text(_LEFT - 8, middle + 4, cut(who, _LONGEST), "soft small", "end")
    yield rect(
        _LEFT,
        y,
        max(end - _LEFT, 1.5),
        _BAR,
        f"bar f{colour}",
        f"{who}: {number(value)}{sign(unit)}",
        rx=2,
        data_basis=basis,
        data_value=f"{value:.6g}",
    )
    if interval is not None and interval.low < interval.high:
        low, high = (_x(scale, bound) for bound in (interval.low, interval.high))
        yield line(low, middle, high, middle, "whisker")
        end = max(end, high)
    rough = "~" if basis != "published" and interval is None else ""
    yield text(end + 8, middle + 4, f"{rough}{number(value)}{sign(unit)}", "soft small haloed")
