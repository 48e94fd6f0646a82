"""The chart of one axis: a curve over numbers, else a bar for each value. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from atoll.report.bench.verdicts import series_name, speedup_ratio
from atoll.report.numbers import cut, ratio_interval, tick_label
from atoll.report.svg.axes import Scale, even_ticks, linear_axis
from atoll.report.svg.elements import WIDTH, Picture, line, rect, text
from atoll.report.svg.palette import SERIES
from atoll.report.svg.plot import Point, Series, plot
from atoll.report.svg.rows import Row, Tick, fitting, row_charts
from atoll.schema.summary import AxisPoint, AxisSeries, AxisSummary

_UNITS = {"cores": "cores", "n": "worker instances", "streams": "concurrent queries"}
_LEFT, _RIGHT = 210.0, 170.0
_BAR, _GAP = 16.0, 6.0
_LONGEST = 28


def axis_charts(axis: AxisSummary) -> list[Picture]:
    """Times as fast as the reference of each series, with intervals."""
    most = max(_high(point) for series in axis.series for point in series.points)
    if axis.name in _UNITS:
        return [_curves(axis, most)]
    return _bars(axis, most)


def _curves(axis: AxisSummary, most: float) -> Picture:
    loaded = axis.name == "streams"
    what = "times the queries per second of" if loaded else "times as fast as"
    widest = max(point.x or 0 for series in axis.series for point in series.points)
    return plot(
        f"{'Throughput' if loaded else 'Speed-up'} by {axis.name}",
        f"{what} the reference; the dashes of a point are its interval",
        linear_axis(_UNITS[axis.name], widest),
        linear_axis("times the throughput" if loaded else "times as fast", most),
        [
            Series(
                cut(series_name(axis, series) or series.engine, _LONGEST),
                [_on_curve(series, point) for point in series.points if _known(series, point)],
            )
            for series in axis.series
        ],
    )


def _bars(axis: AxisSummary, most: float) -> list[Picture]:
    scale = Scale(0, most * 1.05, log=False)

    def row(series: AxisSeries, points: Sequence[AxisPoint], colour: int) -> Row:
        marks: list[str] = []
        y = 0.0
        if name := series_name(axis, series):
            marks.append(text(8, _BAR / 2 + 4, name, "bold"))
            y += _BAR + _GAP
        for point in points:
            marks += _bar(series, point, y, scale, colour)
            y += _BAR + _GAP
        return Row(y + _GAP, "".join(marks))

    return row_charts(
        f"Speed-up by {axis.name}",
        WIDTH,
        [
            Tick(_x(scale, tick), f"{tick_label(tick)}×", "one" if tick == 1 else "grid")
            for tick in even_ticks(0, scale.high, 7)
        ],
        [
            row(series, part, 1 + number % SERIES)
            for number, series in enumerate(axis.series)
            for part in fitting(series.points, _BAR + _GAP)
        ],
    )


def _x(scale: Scale, value: float) -> float:
    return _LEFT + scale.at(value) * (WIDTH - _LEFT - _RIGHT)


def _bar(series: AxisSeries, point: AxisPoint, y: float, scale: Scale, colour: int) -> list[str]:
    middle = y + _BAR / 2
    name = text(_LEFT - 12, middle + 4, cut(point.value, _LONGEST), "", "end")
    if not _known(series, point):
        return [name, text(_LEFT + 6, middle + 4, "no block finished", "soft")]
    value = point.speedup.value if point.speedup else 1.0
    kind = f"bar f{colour if point.speedup else 0}"
    tip = _tip(series, point)
    end = _x(scale, value)
    parts = [
        name,
        rect(
            _LEFT,
            y,
            max(end - _LEFT, 1.5),
            _BAR,
            kind,
            tip,
            rx=2,
            role="img",
            aria_label=tip,
            data_label=point.label,
            data_value=point.value,
            data_speedup=f"{value:.6g}",
        ),
    ]
    if point.speedup and point.speedup.interval:
        low, high = (
            _x(scale, bound) for bound in (point.speedup.interval.low, point.speedup.interval.high)
        )
        parts.append(line(low, middle, high, middle, "whisker"))
        parts += [line(x, middle - 4, x, middle + 4, "whisker") for x in (low, high)]
        end = max(end, high)
    figure = speedup_ratio(point.speedup) if point.speedup else "1× (reference)"
    return [*parts, text(end + 8, middle + 4, figure, "soft haloed")]


def _on_curve(series: AxisSeries, point: AxisPoint) -> Point:
    speedup = point.speedup
    value = speedup.value if speedup else 1.0
    interval = speedup.interval if speedup else None
    return Point(
        x=point.x or 0,
        y=value,
        low=interval.low if interval else value,
        high=interval.high if interval else value,
        settled=speedup is None or interval is not None,
        tip=_tip(series, point),
    )


def _tip(series: AxisSeries, point: AxisPoint) -> str:
    if point.speedup is None:
        return f"{point.label}: the reference"
    interval = ratio_interval(point.speedup.interval)
    return (
        f"{point.label}: {speedup_ratio(point.speedup)} over {series.reference}, interval "
        f"{interval}, {point.speedup.verdict}"
    )


def _known(series: AxisSeries, point: AxisPoint) -> bool:
    return point.speedup is not None or point.label == series.reference


def _high(point: AxisPoint) -> float:
    if point.speedup is None:
        return 1.0
    return point.speedup.interval.high if point.speedup.interval else point.speedup.value
