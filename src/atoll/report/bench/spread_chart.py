"""The spread over time: a staircase for each server and block, drawn over each other. Pure.

Time runs from the start of the measured pass. The time before it (opening, warm-up, the wait for a
quiet machine) may be many times as long, so it has its own scale on the left. The lines are
translucent: what most blocks did stands out.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from atoll.bench.spreads import Course, spread_summary
from atoll.report.bench.charts import LEFT, PLOT, RIGHT, WIDTH
from atoll.report.bench.verdicts import spread_range
from atoll.report.numbers import time_tick
from atoll.report.svg.axes import even_ticks
from atoll.report.svg.elements import Picture, element, line, path, text
from atoll.report.svg.rows import Row, Tick, row_charts
from atoll.schema.text import plural

STEP = 18  # pixels for one chiplet more
TALLEST = 126  # pixels of a server's staircase
ABOVE = 8  # of a server's staircase
GROUP = 30  # between servers
BEFORE = PLOT / 4  # pixels of the time before the measured pass


def spread_charts(label: str, colour: int, courses: Sequence[Course]) -> list[Picture]:
    """Chiplets in use over time under one entrant, a row for each server."""
    before = max(-course.spells[0].begin_s for course in courses)
    after = max(course.spells[-1].end_s for course in courses)

    def x(seconds: float) -> float:
        share = seconds / before * BEFORE if seconds < 0 else seconds / after * (PLOT - BEFORE)
        return LEFT + BEFORE + share

    def row(slot: int) -> Row:
        own = [course for course in courses if course.slot == slot]
        chiplets = max(course.chiplets for course in own)
        step = min(float(STEP), TALLEST / max(chiplets - 1, 1))
        base = ABOVE + step * (chiplets - 1)
        marks: list[str] = []
        for level in sorted({1, chiplets}):
            at = base - step * (level - 1)
            marks.append(line(LEFT, at, WIDTH - RIGHT, at, "grid"))
            marks.append(text(LEFT - 8, at + 4, str(level), "soft small", "end"))
        middle = (ABOVE + base) / 2 + 4
        marks.append(text(LEFT - 34, middle, f"slot {slot}", "bold", "end"))
        for course in own:
            changes = len(course.spells) - 1
            points = [
                (x(spell.begin_s), base - step * (spell.spread - 1)) for spell in course.spells
            ]
            marks.append(
                element(
                    "g",
                    "spread",
                    path(staircase(points, x(course.spells[-1].end_s)), f"step l{colour}"),
                    f"{label}, slot {slot}, block {course.block + 1}: "
                    f"the spread changed {plural(changes, 'time')}",
                    data_label=label,
                    data_slot=slot,
                    data_block=course.block,
                    data_changes=changes,
                )
            )
        marks.append(text(WIDTH - RIGHT + 16, middle, _figures(own), "soft"))
        return Row(base + GROUP - ABOVE, "".join(marks))

    # One to three ticks before the pass: there is little room.
    ticks = [(tick, before) for tick in even_ticks(-before, 0, 4) if tick]
    ticks += [(tick, after) for tick in even_ticks(0, after, 6)]
    sides = text(x(0) - 8, 18, "← opening, warm-up", "soft small", "end") + text(
        x(0) + 8, 18, "measured pass →", "soft small"
    )
    return row_charts(
        f"{label}: chiplets in use over time",
        WIDTH,
        [
            Tick(x(tick), time_tick(tick, longest), "grid" if tick else "one")
            for tick, longest in ticks
        ],
        [row(slot) for slot in sorted({course.slot for course in courses})],
        foot=Row(24, sides),
    )


def staircase(points: Sequence[tuple[float, float]], end: float) -> str:
    """An SVG path through the points, level between them, as far as `end`.

    Its x are whole pixels. Of the steps within one pixel it has the highest, the lowest and the
    last, so that its length does not grow with the number of changes.
    """
    shape = f"M{points[0][0]:.0f} {points[0][1]:.1f}"
    for column, group in groupby(points, key=lambda point: round(point[0])):
        heights = [at for _, at in group]
        drawn = [min(heights), max(heights), heights[-1]] if len(heights) > 1 else heights
        shape += f"H{column}" + "".join(f"V{at:.1f}" for at in drawn)
    return f"{shape}H{end:.0f}"


def _figures(courses: Sequence[Course]) -> str:
    spread = spread_summary(courses)
    return f"{spread_range(spread)}, mean {spread.mean:.2g}" if spread else ""
