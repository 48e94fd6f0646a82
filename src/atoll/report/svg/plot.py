"""A plot with lines, intervals, shaded regions and marks, on linear or logarithmic axes. Pure.

Lines differ by colour, by dashes and by a name at their end. A hollow point did not settle. Each
point carries its figure as a tooltip.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from atoll.report.svg.picture import SERIES, WIDTH, Picture, escaped, heading, line, rect, text

_LEFT, _RIGHT, _BOTTOM = 76.0, 160.0, 54.0
_TOP = 96.0  # names of regions and marks stand above it
_HEIGHT = 250.0
_ACROSS = WIDTH - _LEFT - _RIGHT
_LETTER = 6.9  # mean width of a letter of 13 px
_APART = 15.0  # between names of lines


class Axis(NamedTuple):
    label: str
    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    log: bool = True

    def share(self, value: float) -> float:
        if self.log:
            found = math.log(max(value, 1e-9) / self.low) / math.log(self.high / self.low)
        else:
            found = (value - self.low) / (self.high - self.low)
        return min(max(found, 0.0), 1.0)


class Point(NamedTuple):
    x: float
    y: float
    low: float
    high: float
    settled: bool
    tip: str


class Series(NamedTuple):
    name: str
    points: Sequence[Point]
    dots: bool = True
    grey: bool = False
    step: bool = False  # a staircase, as distributions are


class Region(NamedTuple):
    """A part of the x axis, shaded."""

    start: float
    stop: float
    name: str
    note: str = ""


class Mark(NamedTuple):
    """An x that matters."""

    x: float
    name: str


def plot(
    title: str,
    subtitle: str,
    x: Axis,
    y: Axis,
    series: Sequence[Series],
    regions: Sequence[Region] = (),
    marks: Sequence[Mark] = (),
) -> Picture:
    """Names of lines stand at their right ends, so that no legend is to be matched."""
    parts = [heading(title, subtitle)]
    parts += _regions(regions, x)
    parts += _axes(x, y)
    for mark in marks:
        at = _x(x, mark.x)
        parts.append(line(at, _TOP - 4, at, _TOP + _HEIGHT, "mark"))
        parts.append(text(at, _TOP - 10, mark.name, "ink small bold", "middle"))
    names: list[tuple[float, int, str, int]] = []
    for index, one in enumerate(series):
        if not one.points:
            continue
        number = 0 if one.grey else 1 + index % SERIES
        parts += _line(one, number, index, x, y)
        names.append((round(_y(y, one.points[-1].y)), index, one.name, number))
    parts += _names(names)
    return Picture(title, WIDTH, _TOP + _HEIGHT + _BOTTOM, "".join(parts))


def _x(axis: Axis, value: float) -> float:
    return _LEFT + axis.share(value) * _ACROSS


def _y(axis: Axis, value: float) -> float:
    return _TOP + (1 - axis.share(value)) * _HEIGHT


def _regions(regions: Sequence[Region], x: Axis) -> list[str]:
    parts = []
    for number, region in enumerate(regions):
        left, right = _x(x, region.start), _x(x, region.stop)
        parts.append(rect(left, _TOP, right - left, _HEIGHT, f"zone{number % 2}"))
        middle = (left + right) / 2
        name_up = 26 if region.note else 10
        for words, up, kind in (
            (region.name, name_up, "ink small bold"),
            (region.note, 10, "soft small"),
        ):
            if right - left > _LETTER * 0.85 * len(words):
                parts.append(text(middle, _TOP - up, words, kind, "middle"))
    return parts


def _axes(x: Axis, y: Axis) -> list[str]:
    parts = []
    for tick, words in y.ticks:
        at = _y(y, tick)
        parts.append(line(_LEFT, at, _LEFT + _ACROSS, at, "grid"))
        parts.append(text(_LEFT - 8, at + 4, words, "soft small", "end"))
    for tick, words in x.ticks:
        at = _x(x, tick)
        parts.append(line(at, _TOP + _HEIGHT, at, _TOP + _HEIGHT + 5, "axis"))
        parts.append(text(at, _TOP + _HEIGHT + 19, words, "soft small", "middle"))
    parts.append(line(_LEFT, _TOP + _HEIGHT, _LEFT + _ACROSS, _TOP + _HEIGHT, "axis"))
    parts.append(text(_LEFT + _ACROSS / 2, _TOP + _HEIGHT + 40, x.label, "soft", "middle"))
    parts.append(text(22, _TOP + _HEIGHT / 2, y.label, "soft", "middle", -90))
    return parts


def _line(one: Series, number: int, index: int, x: Axis, y: Axis) -> list[str]:
    places = [(_x(x, p.x), _y(y, p.y)) for p in one.points]
    parts = []
    if any(p.low < p.high for p in one.points):
        upper = [f"{_x(x, p.x):.1f} {_y(y, p.high):.1f}" for p in one.points]
        lower = [f"{_x(x, p.x):.1f} {_y(y, p.low):.1f}" for p in reversed(one.points)]
        parts.append(f'<path class="band f{number}" d="M{"L".join([*upper, *lower])}z"/>')
    drawn = f"M{places[0][0]:.1f} {places[0][1]:.1f}"
    for left, top in places[1:]:
        drawn += f"H{left:.1f}V{top:.1f}" if one.step else f"L{left:.1f} {top:.1f}"
    dash = "" if one.grey else f" dash{index % 4}"
    weight = "faint" if one.grey else "line"
    parts.append(f'<path class="{weight} l{number}{dash}" d="{drawn}"/>')
    if one.dots:
        for (left, top), p in zip(places, one.points, strict=True):
            fill = f"f{number}" if p.settled else "hollow"
            parts.append(
                f'<circle class="{fill} l{number}" cx="{left:.1f}" cy="{top:.1f}" r="3">'
                f"<title>{escaped(one.name)}: {escaped(p.tip)}</title></circle>"
            )
    return parts


def _names(names: Sequence[tuple[float, int, str, int]]) -> list[str]:
    """At the height of each line's end, pushed apart where they would lie on each other."""
    parts = []
    free = _TOP + 4
    ordered = sorted(names)
    # What is pushed down must still fit above the axis.
    room = _TOP + _HEIGHT - _APART * len(ordered)
    for rank, (y, index, name, number) in enumerate(ordered):
        at = max(free, min(y + 4, room + _APART * (rank + 1)))
        free = at + _APART
        words = name if len(name) <= 20 else name[:19] + "…"
        left = _LEFT + _ACROSS + 10
        dash = f" dash{index % 4}" if number else ""
        parts.append(
            f'<path class="line l{number}{dash}" d="M{left:g} {at - 4:.1f}h20"/>'
            + text(left + 26, at, words, "ink small")
        )
    return parts
