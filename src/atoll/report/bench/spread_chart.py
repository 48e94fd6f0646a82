"""The spread over time as inline SVG: a staircase per server and block, the blocks over each other.

Time runs from the start of the measured pass. What came before it (the opening, the warm-up, the
wait for a quiet machine) may be many times as long and has a scale of its own on the left. The
lines are see-through, so that what most blocks did stands out. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

from markupsafe import Markup, escape

from atoll.bench.spreads import Course, spread_summary
from atoll.report import words
from atoll.report.svg.chart_parts import (
    LEFT,
    PLOT,
    RIGHT,
    TOP,
    WIDTH,
    line,
    linear_ticks,
    svg,
    text,
    tick_label,
)

STEP = 18  # pixels of a chiplet more
TALLEST = 126  # pixels of a server's staircase
GROUP = 30  # between servers
BEFORE = PLOT / 4  # pixels of the time before the measured pass


def spread_chart(label: str, colour: str, courses: Sequence[Course]) -> Markup:
    """Chiplets in use over time under one entrant, a row per server; `colour` is a CSS class."""
    if not courses:
        return Markup("")
    before = max(-course.spells[0].begin_s for course in courses)
    after = max(course.spells[-1].end_s for course in courses)

    def x(seconds: float) -> float:
        share = seconds / before * BEFORE if seconds < 0 else seconds / after * (PLOT - BEFORE)
        return LEFT + BEFORE + share

    rows: list[str] = []
    y = float(TOP) + 8
    for slot in sorted({course.slot for course in courses}):
        mine = [course for course in courses if course.slot == slot]
        chiplets = max(course.chiplets for course in mine)
        step = min(float(STEP), TALLEST / max(chiplets - 1, 1))
        base = y + step * (chiplets - 1)
        for level in sorted({1, chiplets}):
            at = base - step * (level - 1)
            rows.append(line(LEFT, at, WIDTH - RIGHT, at, "grid"))
            rows.append(text(LEFT - 8, at, str(level), "tick", "end"))
        rows.append(text(LEFT - 34, (y + base) / 2, f"slot {slot}", "name", "end"))
        for course in mine:
            changes = len(course.spells) - 1
            told = (
                f"{label}, slot {slot}, block {course.block + 1}: "
                f"{words.plural(changes, 'change')} of the spread"
            )
            points = [
                (x(spell.begin_s), base - step * (spell.spread - 1)) for spell in course.spells
            ]
            rows.append(
                f'<g class="spread {colour}" data-label="{escape(label)}" data-slot="{slot}" '
                f'data-block="{course.block}" data-changes="{changes}">'
                f"<title>{escape(told)}</title>"
                f'<path class="step" d="{staircase(points, x(course.spells[-1].end_s))}"/></g>'
            )
        rows.append(text(WIDTH - RIGHT + 16, (y + base) / 2, _figures(mine), "value", "start"))
        y = base + GROUP
    height = y + 12
    begin = linear_ticks(2 * before)[1]  # one or two ticks: there is little room
    ticks = [(-begin * index, before) for index in range(math.floor(before / begin), 0, -1)]
    ticks += [(tick, after) for tick in linear_ticks(after) if tick <= after]
    axis = [
        line(x(tick), TOP - 6, x(tick), height - 30, "one" if tick == 0 else "grid")
        + text(x(tick), 10, tick_label(tick, longest), "tick", "middle")
        for tick, longest in ticks
    ]
    axis.append(text(x(0) - 8, height - 10, "← opened, warmed up", "tick", "end"))
    axis.append(text(x(0) + 8, height - 10, "measured pass →", "tick", "start"))
    name = f"{label}: chiplets in use over time"
    return svg(height, name, [*axis, *rows], "spreads")


def staircase(points: Sequence[tuple[float, float]], end: float) -> str:
    """An SVG path through the points, level between them, as far as `end`.

    Whole pixels across: of the steps within one the highest, the lowest and the last are drawn, so
    that its length does not grow with the number of changes.
    """
    path = f"M{points[0][0]:.0f} {points[0][1]:.1f}"
    for column, group in groupby(points, key=lambda point: round(point[0])):
        heights = [at for _, at in group]
        drawn = [min(heights), max(heights), heights[-1]] if len(heights) > 1 else heights
        path += f"H{column}" + "".join(f"V{at:.1f}" for at in drawn)
    return f"{path}H{end:.0f}"


def _figures(courses: Sequence[Course]) -> str:
    found = spread_summary(courses)
    return f"{words.spread_range(found)}, mean {found.mean:.2g}" if found else ""
