"""A chart of rows below one axis, as pictures that each fit a printed page. Pure.

A browser prints a picture longer than the page in slices, and cuts through a row where one ends.
So a long chart is several pictures, and each has the axis.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

from atoll.report.svg.elements import Picture, line, moved, text

TALLEST = 600.0  # fits A4 and Letter, upright and across, below a heading
_TOP = 26.0  # of the rows, below the axis
_REST = 60.0  # of a picture: its axis, a row's own heading, the foot
_BELOW = 4.0  # without a foot

_Item = TypeVar("_Item")


class Row(NamedTuple):
    """SVG at its own origin; `height` includes the gap below."""

    height: float
    body: str


class Tick(NamedTuple):
    x: float
    label: str
    kind: str = "grid"


def row_charts(
    name: str, width: float, ticks: Sequence[Tick], rows: Sequence[Row], foot: Row | None = None
) -> list[Picture]:
    """The rows in as few pictures as hold them; no row is divided."""
    foot = foot or Row(_BELOW, "")
    pages: list[list[Row]] = []
    room = 0.0
    for row in rows:
        if not pages or row.height > room:
            pages.append([])
            room = TALLEST - _TOP - foot.height
        pages[-1].append(row)
        room -= row.height
    names = [f"{name}, part {n} of {len(pages)}" for n in range(1, len(pages) + 1)]
    return [
        _picture(one if len(pages) > 1 else name, width, ticks, page, foot)
        for one, page in zip(names, pages, strict=True)
    ]


def fitting(items: Sequence[_Item], height: float) -> Iterator[Sequence[_Item]]:
    """Runs of items that fit one picture in a single row; an item is that high."""
    most = int((TALLEST - _TOP - _REST) / height)
    for first in range(0, len(items), most):
        yield items[first : first + most]


def _picture(
    name: str, width: float, ticks: Sequence[Tick], rows: Sequence[Row], foot: Row
) -> Picture:
    bodies = []
    y = _TOP
    for row in rows:
        bodies.append(moved(0, y, row.body))
        y += row.height
    axis = [
        line(tick.x, _TOP - 6, tick.x, y, tick.kind)
        + text(tick.x, 14, tick.label, "soft small", "middle")
        for tick in ticks
    ]
    below = moved(0, y, foot.body) if foot.body else ""
    return Picture(name, width, y + foot.height, "".join([*axis, *bodies, below]))
