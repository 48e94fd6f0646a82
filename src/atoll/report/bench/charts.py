"""Charts as inline SVG: bars of median times with intervals, and speed-ups on a log axis. Pure.

Colours are CSS classes (report.css.j2), so that light and dark need no second picture. Bars begin
at zero and share an axis within an engine only: speed-ups are within an engine, and one slow
engine would flatten the bars of another. Each mark carries its figures as data attributes and
as a title, for machines, tooltips and screen readers.
"""

from __future__ import annotations

import math

from markupsafe import Markup, escape

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
from atoll.schema.summary import BenchSummary, EntrantSummary, Interval

BAR = 16
GAP = 5
GROUP = 16
_LONGEST_NAME = 17


def times_chart(summary: BenchSummary, engine: str) -> Markup:
    """Median seconds per query, a bar per entrant of `engine`; whiskers are the intervals."""
    colours = entrant_colours(summary)
    entrants = [one for one in summary.entrants if one.engine == engine and one.times]
    longest = max((_reach(one) for one in entrants), default=0.0)
    if not longest:
        return Markup("")
    ticks = linear_ticks(longest)
    scale = PLOT / ticks[-1]
    marks: list[str] = []
    y = float(TOP)
    for query in summary.queries:
        top = y
        for one in entrants:
            marks += _bar(one, query, y, scale, colours[one.label])
            y += BAR + GAP
        middle = (top + y - GAP) / 2
        marks.append(text(LEFT - 12, middle, _short(words.query_name(query)), "name", "end"))
        y += GROUP
    height = y - GROUP + 12
    axis = [
        line(LEFT + tick * scale, TOP - 6, LEFT + tick * scale, height - 6, "grid")
        + text(LEFT + tick * scale, 10, tick_label(tick, ticks[-1]), "tick", "middle")
        for tick in ticks
    ]
    return svg(
        height,
        f"{engine}: median time per query, {words.title(summary)}",
        [*axis, *marks],
        "times",
    )


def speedup_chart(summary: BenchSummary) -> Markup:
    """Speed-ups over the baseline: a point and its interval per query, the mean set apart."""
    entrants = [one for one in summary.entrants if one.speedups]
    reaches = [
        value
        for one in entrants
        for found in one.speedups
        for value in (found.value, *_ends(found.interval))
    ]
    if not reaches:
        return Markup("")
    ticks = ratio_ticks(min(reaches), max(reaches))
    low, high = math.log(ticks[0]), math.log(ticks[-1])

    def x(value: float) -> float:
        return LEFT + (math.log(value) - low) / (high - low) * PLOT

    colours = entrant_colours(summary)
    rows: list[str] = []
    y = float(TOP)
    for query in ("geomean", *summary.queries, "pass"):
        top = y
        for one in entrants:
            found = words.speedup_of(one, query)
            if found is None:
                continue
            middle = y + BAR / 2
            told = (
                f"{one.label}, {words.query_name(query)}: {words.ratio(found.value)} over "
                f"{one.baseline}, interval {words.interval(found.interval)}, {found.verdict}"
            )
            kind = "mean" if query == "geomean" else "query"
            inner = [f"<title>{escape(told)}</title>"]
            if found.interval:
                left, right = x(found.interval.low), x(found.interval.high)
                inner.append(line(left, middle, right, middle, "whisker"))
                inner += [line(end, middle - 4, end, middle + 4, "cap") for end in (left, right)]
            inner.append(_point(x(found.value), middle, kind))
            figures = words.ratio(found.value)
            if found.interval:
                figures += f"  {words.interval(found.interval)}"
            rows.append(
                f'<g class="speedup {kind} {colours[one.label]}" data-label="{escape(one.label)}" '
                f'data-query="{escape(query)}" data-speedup="{found.value:.6g}" '
                f'data-verdict="{escape(found.verdict)}">{"".join(inner)}</g>'
            )
            rows.append(text(WIDTH - RIGHT + 16, middle, figures, f"value {kind}", "start"))
            y += BAR + GAP
        middle = (top + y - GAP) / 2
        weight = "name mean" if query == "geomean" else "name"
        rows.append(text(LEFT - 12, middle, _short(words.query_name(query)), weight, "end"))
        if query == "geomean":
            y += 6
            rows.append(line(8, y, WIDTH - 8, y, "rule"))
            y += 4
        y += GROUP / 2
    height = y + 20
    axis = [
        line(x(tick), TOP - 6, x(tick), height - 22, "one" if tick == 1 else "grid")
        + text(x(tick), 10, f"{tick:g}×", "tick", "middle")
        for tick in ticks
    ]
    base = words.baseline(summary)
    axis.append(text(x(1) - 8, height - 8, f"← slower than {base}", "tick", "end"))
    axis.append(text(x(1) + 8, height - 8, f"faster than {base} →", "tick", "start"))
    name = f"Speed-up over {base}, {words.title(summary)}"
    return svg(height, name, [*axis, *rows], "speedups")


def entrant_colours(summary: BenchSummary) -> dict[str, str]:
    """A CSS class per entrant; baselines are grey, in step with policy and scheduler otherwise."""
    variants = list(
        dict.fromkeys(words.variant(one) for one in summary.entrants if one.baseline is not None)
    )
    return {
        one.label: "c0"
        if one.baseline is None
        else f"c{1 + variants.index(words.variant(one)) % 6}"
        for one in summary.entrants
    }


def ratio_ticks(low: float, high: float) -> list[float]:
    """Round ratios on both sides of 1, one beyond each end, evenly usable on a log axis."""
    spread = max(high, 1 / low, 1.05)
    steps: tuple[float, ...]
    for steps in ((1.05, 1.1), (1.1, 1.2), (1.25, 1.5), (1.5, 2.0), (2.0, 3.0), (2.0, 5.0)):
        if steps[-1] >= spread:
            break
    else:
        steps = tuple(10.0**power for power in range(1, math.ceil(math.log10(spread)) + 1))
    # Below 1 the reciprocals, rounded outwards as a reader would write them.
    under = [math.floor(100 / step) / 100 if step < 100 else 1 / step for step in steps]
    above = [*(tick for tick in steps if tick < high)]
    below = [*(tick for tick in under if tick > low)]
    return sorted(
        {
            1.0,
            *above,
            *below,
            *steps[len(above) : len(above) + 1],
            *under[len(below) : len(below) + 1],
        }
    )


def _short(name: str) -> str:
    """The user's queries are called as their files are; the margin has room for this much."""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _bar(one: EntrantSummary, query: str, y: float, scale: float, colour: str) -> list[str]:
    found = words.times_of(one, query)
    if found is None:
        return [text(LEFT + 6, y + BAR / 2, f"{one.label}: no block done", "value", "start")]
    width = max(found.median_s * scale, 1.5)  # a bar that cannot be seen is no bar
    told = (
        f"{one.label} {words.query_name(query)}: median {words.duration(found.median_s)} "
        f"over {words.plural(found.blocks, 'block')}"
    )
    if found.interval:
        low, high = words.duration(found.interval.low), words.duration(found.interval.high)
        told += f", interval {low} to {high}"
    middle = y + BAR / 2
    whisker, end = "", LEFT + width
    if found.interval:
        left, right = (LEFT + value * scale for value in _ends(found.interval))
        end = max(end, right)
        whisker = line(left, middle, right, middle, "whisker") + "".join(
            line(x, middle - 4, x, middle + 4, "cap") for x in (left, right)
        )
    flag = " ⚑" if found.outlier_blocks else ""
    return [
        f'<g class="{colour}"><rect class="bar" x="{LEFT}" y="{y:.1f}" width="{width:.2f}" '
        f'height="{BAR}" rx="2" role="img" aria-label="{escape(told)}" '
        f'data-label="{escape(one.label)}" data-query="{escape(query)}" '
        f'data-median-s="{found.median_s:.6g}" data-blocks="{found.blocks}">'
        f"<title>{escape(told)}</title></rect>{whisker}</g>",
        text(
            end + 8,
            middle,
            f"{words.duration(found.median_s)}  {words.variant(one)}{flag}",
            "value",
            "start",
        ),
    ]


def _reach(one: EntrantSummary) -> float:
    return max(
        max((found.median_s, *_ends(found.interval)))
        for found in one.times
        if found.query != "pass"
    )


def _ends(found: Interval | None) -> tuple[float, ...]:
    return (found.low, found.high) if found else ()


def _point(x: float, y: float, kind: str) -> str:
    if kind == "mean":
        return f'<path class="point" d="M{x - 7:.2f} {y:.2f}l7 -7l7 7l-7 7z"/>'
    return f'<circle class="point" cx="{x:.2f}" cy="{y:.2f}" r="4.5"/>'
