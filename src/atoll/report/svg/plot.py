"""A chart of lines with intervals, shaded regions and marks. Pure.

Lines differ by colour, by dashes and by the name at their end. A hollow point did not settle. The
tooltip of a point has its figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from atoll.report.numbers import cut
from atoll.report.svg.axes import Axis
from atoll.report.svg.elements import (
    LETTER,
    WIDTH,
    Picture,
    circle,
    heading,
    line,
    path,
    rect,
    text,
)
from atoll.report.svg.palette import SERIES

_LEFT, _RIGHT, _BOTTOM = 76.0, 160.0, 54.0
_TOP = 96.0  # the names of regions and marks are above it
_HEIGHT = 250.0
_ACROSS = WIDTH - _LEFT - _RIGHT
_NAME_HEIGHT = 15.0  # of a line's name


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
    step: bool = False  # a staircase, for distributions


class Region(NamedTuple):
    """A part of the x axis, shaded."""

    start: float
    stop: float
    name: str
    note: str = ""


class Mark(NamedTuple):
    """A value of x that matters."""

    x: float
    name: str


class _LineName(NamedTuple):
    y: float
    line: int
    name: str
    colour: int


def plot(
    title: str,
    subtitle: str,
    x: Axis,
    y: Axis,
    series: Sequence[Series],
    regions: Sequence[Region] = (),
    marks: Sequence[Mark] = (),
) -> Picture:
    """The names of the lines are at their right ends, so readers need no legend."""
    parts = [heading(title, subtitle), *_regions(regions, x), *_axes(x, y)]
    for mark in marks:
        at = _x(x, mark.x)
        parts.append(line(at, _TOP - 4, at, _TOP + _HEIGHT, "mark"))
        parts.append(text(at, _TOP - 10, mark.name, "small bold", "middle"))
    names = []
    for index, one in enumerate(series):
        if one.points:
            colour = 0 if one.grey else 1 + index % SERIES
            parts += _line(one, colour, index, x, y)
            names.append(_LineName(round(_y(y, one.points[-1].y)), index, one.name, colour))
    return Picture(title, WIDTH, _TOP + _HEIGHT + _BOTTOM, "".join([*parts, *_names(names)]))


def _x(axis: Axis, value: float) -> float:
    return _LEFT + axis.scale.at(value) * _ACROSS


def _y(axis: Axis, value: float) -> float:
    return _TOP + (1 - axis.scale.at(value)) * _HEIGHT


def _regions(regions: Sequence[Region], x: Axis) -> list[str]:
    parts = []
    for number, region in enumerate(regions):
        left, right = _x(x, region.start), _x(x, region.stop)
        parts.append(rect(left, _TOP, right - left, _HEIGHT, f"zone{number % 2}"))
        middle = (left + right) / 2
        for words, up, kind in (
            (region.name, 26 if region.note else 10, "small bold"),
            (region.note, 10, "soft small"),
        ):
            if right - left > LETTER * 0.85 * len(words):
                parts.append(text(middle, _TOP - up, words, kind, "middle"))
    return parts


def _axes(x: Axis, y: Axis) -> list[str]:
    parts = []
    bottom = _TOP + _HEIGHT
    for tick, words in y.ticks:
        at = _y(y, tick)
        parts.append(line(_LEFT, at, _LEFT + _ACROSS, at, "grid"))
        parts.append(text(_LEFT - 8, at + 4, words, "soft small", "end"))
    for tick, words in x.ticks:
        at = _x(x, tick)
        parts.append(line(at, bottom, at, bottom + 5, "axis"))
        parts.append(text(at, bottom + 19, words, "soft small", "middle"))
    parts.append(line(_LEFT, bottom, _LEFT + _ACROSS, bottom, "axis"))
    parts.append(text(_LEFT + _ACROSS / 2, bottom + 40, x.label, "soft", "middle"))
    parts.append(text(22, _TOP + _HEIGHT / 2, y.label, "soft", "middle", -90))
    return parts


def _line(one: Series, colour: int, index: int, x: Axis, y: Axis) -> list[str]:
    places = [(_x(x, p.x), _y(y, p.y)) for p in one.points]
    parts = []
    if any(p.low < p.high for p in one.points):
        upper = [f"{_x(x, p.x):.1f} {_y(y, p.high):.1f}" for p in one.points]
        lower = [f"{_x(x, p.x):.1f} {_y(y, p.low):.1f}" for p in reversed(one.points)]
        parts.append(path(f"M{'L'.join([*upper, *lower])}z", f"band f{colour}"))
    drawn = f"M{places[0][0]:.1f} {places[0][1]:.1f}"
    for left, top in places[1:]:
        drawn += f"H{left:.1f}V{top:.1f}" if one.step else f"L{left:.1f} {top:.1f}"
    parts.append(path(drawn, f"{'faint' if one.grey else 'line'} {_stroke(colour, index)}"))
    if one.dots:
        for (left, top), p in zip(places, one.points, strict=True):
            fill = f"f{colour}" if p.settled else "hollow"
            parts.append(circle(left, top, 3, f"{fill} l{colour}", f"{one.name}: {p.tip}"))
    return parts


def _stroke(colour: int, index: int) -> str:
    return f"l{colour} dash{index % 4}" if colour else "l0"


def _names(names: Sequence[_LineName]) -> list[str]:
    """Each name at the height of its line's end, moved if it would cover another."""
    parts = []
    free = _TOP + 4
    ordered = sorted(names)
    # A name that moves down must still fit above the axis.
    room = _TOP + _HEIGHT - _NAME_HEIGHT * len(ordered)
    left = _LEFT + _ACROSS + 10
    for rank, one in enumerate(ordered):
        at = max(free, min(one.y + 4, room + _NAME_HEIGHT * (rank + 1)))
        free = at + _NAME_HEIGHT
        parts.append(
            path(f"M{left:g} {at - 4:.1f}h20", f"line {_stroke(one.colour, one.line)}")
            + text(left + 26, at, cut(one.name, 20), "small")
        )
    return parts
