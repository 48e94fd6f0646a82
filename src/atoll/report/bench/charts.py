"""The charts of a bench: median times with intervals, and speed-ups on a logarithmic axis. Pure.

Bars begin at zero. They share an axis within an engine only: speed-ups are within an engine, and a
slow engine would flatten the bars of a fast one. Each mark has its figures as data attributes and
as a tooltip, for programs and screen readers.
"""

from __future__ import annotations

from collections.abc import Sequence

from atoll.report.bench.verdicts import (
    baseline,
    query_name,
    speedup_of,
    speedup_ratio,
    times_of,
    title,
    variant,
    wholes,
)
from atoll.report.numbers import cut, duration, ratio_interval, time_tick
from atoll.report.svg.axes import Scale, even_ticks, ratio_ticks
from atoll.report.svg.elements import LETTER, Picture, circle, element, line, path, rect, text
from atoll.report.svg.palette import SERIES
from atoll.report.svg.rows import Row, Tick, fitting, row_charts
from atoll.schema.summary import BenchSummary, EntrantSummary, Interval, Speedup
from atoll.schema.text import plural

WIDTH = 940
LEFT = 138  # of the plot: names end here
RIGHT = 190  # right of the plot: figures begin here
PLOT = WIDTH - LEFT - RIGHT
BAR = 16
GAP = 5
GROUP = 16
_LONGEST_NAME = 17
_LONGEST_LABEL = 18  # in smaller letters, of 7 px in a wide font


def times_charts(summary: BenchSummary, engine: str) -> list[Picture]:
    """The median time of each query, a bar for each entrant of `engine`; whiskers are intervals."""
    colours = entrant_colours(summary)
    entrants = [one for one in summary.entrants if one.engine == engine and one.times]
    longest = max((_longest(one) for one in entrants), default=0.0)
    if not longest:
        return []
    scale = Scale(0, longest * 1.05, log=False)

    def row(query: str, part: Sequence[EntrantSummary]) -> Row:
        high = len(part) * (BAR + GAP)
        bars = [
            mark
            for place, one in enumerate(part)
            for mark in _bar(one, query, place * (BAR + GAP), scale, colours[one.label])
        ]
        return Row(high + GROUP - GAP, "".join([_name(query, (high - GAP) / 2), *bars]))

    ticks = even_ticks(0, scale.high, 6)
    return row_charts(
        f"{engine}: median time per query, {title(summary)}",
        WIDTH,
        [Tick(plot_x(scale, tick), time_tick(tick, ticks[-1])) for tick in ticks],
        [row(query, part) for query in summary.queries for part in fitting(entrants, BAR + GAP)],
    )


def speedup_charts(summary: BenchSummary) -> list[Picture]:
    """Speed-ups over the baseline: a point and its interval per query, the mean at the top. Of
    several entrants each has its label at its row, below the name of the query."""
    entrants = [one for one in summary.entrants if one.speedups]
    values = [
        value
        for one in entrants
        for speedup in one.speedups
        for value in (speedup.value, *_ends(speedup.interval))
    ]
    if not values:
        return []
    ticks = ratio_ticks(min(values), max(values))
    scale = Scale(ticks[0], ticks[-1])
    colours = entrant_colours(summary)
    several = len(entrants) > 1

    def row(query: str, part: Sequence[EntrantSummary]) -> Row:
        marks = [_name(query, BAR / 2)]
        y = float(BAR if several else 0)
        for one in part:
            speedup = speedup_of(one, query)
            if speedup is not None:
                marks += _speedup(one, speedup, y + BAR / 2, scale, colours[one.label])
                if several:
                    label = _end_of(one.label, _LONGEST_LABEL)
                    marks.append(text(LEFT - 12, y + BAR / 2 + 4, label, "soft small", "end"))
                y += BAR + GAP
        if query == "geomean" and part[-1] is entrants[-1]:
            marks.append(line(8, y + 6, WIDTH - 8, y + 6, "grid dotted"))
            y += 10
        return Row(y + GROUP / 2, "".join(marks))

    base = baseline(summary)
    middle = plot_x(scale, 1)
    sides = text(middle - 8, 14, f"← slower than {base}", "soft small", "end") + text(
        middle + 8, 14, f"faster than {base} →", "soft small"
    )
    return row_charts(
        f"Speed-up over {base}, {title(summary)}",
        WIDTH,
        [Tick(plot_x(scale, tick), f"{tick:g}×", "one" if tick == 1 else "grid") for tick in ticks],
        [
            row(query, part)
            for query in ("geomean", *summary.queries, *wholes(summary))
            for part in fitting(entrants, BAR + GAP)
        ],
        foot=Row(20, sides),
    )


def _end_of(label: str, most: int) -> str:
    """The end of a long label: there the cells of an axis differ."""
    return label if len(label) <= most else f"…{label[1 - most :]}"


def entrant_colours(summary: BenchSummary) -> dict[str, int]:
    """The series of each entrant: 0, grey, for baselines; otherwise one of its own."""
    compared = [one.label for one in summary.entrants if one.baseline is not None]
    return {
        one.label: 0 if one.baseline is None else 1 + compared.index(one.label) % SERIES
        for one in summary.entrants
    }


def plot_x(scale: Scale, value: float) -> float:
    return LEFT + scale.at(value) * PLOT


def _name(query: str, y: float) -> str:
    """The name of a query before its row; a user's query is named after its file."""
    return text(LEFT - 12, y + 4, cut(query_name(query), _LONGEST_NAME), "bold", "end")


def _bar(one: EntrantSummary, query: str, y: float, scale: Scale, colour: int) -> list[str]:
    middle = y + BAR / 2
    times = times_of(one, query)
    if times is None:
        return [text(LEFT + 6, middle + 4, f"{one.label}: no block finished", "soft haloed")]
    width = max(scale.at(times.median_s) * PLOT, 1.5)  # even the shortest bar is visible
    median = duration(times.median_s)
    tip = f"{one.label} {query_name(query)}: median {median} over {plural(times.blocks, 'block')}"
    marks, end = "", LEFT + width
    if times.interval:
        low, high = times.interval.low, times.interval.high
        tip += f", interval {duration(low)} to {duration(high)}"
        marks = _whisker(plot_x(scale, low), plot_x(scale, high), middle, "whisker")
        end = max(end, plot_x(scale, high))
    bar = rect(
        LEFT,
        y,
        width,
        BAR,
        f"bar f{colour}",
        tip,
        rx=2,
        role="img",
        aria_label=tip,
        data_label=one.label,
        data_query=query,
        data_median_s=f"{times.median_s:.6g}",
        data_blocks=times.blocks,
    )
    flag = " ⚑" if times.outlier_blocks else ""
    room = int((WIDTH - end - 8) / LETTER) - len(f"{median} · {flag}")
    label = _end_of(variant(one), room)
    return [bar, marks, text(end + 8, middle + 4, f"{median} · {label}{flag}", "soft haloed")]


def _speedup(
    one: EntrantSummary, speedup: Speedup, y: float, scale: Scale, colour: int
) -> list[str]:
    mean = speedup.query == "geomean"
    interval = ratio_interval(speedup.interval)
    tip = (
        f"{one.label}, {query_name(speedup.query)}: {speedup_ratio(speedup)} over {one.baseline}, "
        f"interval {interval}, {speedup.verdict}"
    )
    x = plot_x(scale, speedup.value)
    marks = ""
    figures = speedup_ratio(speedup)
    if speedup.interval:
        left, right = (plot_x(scale, end) for end in _ends(speedup.interval))
        marks = _whisker(left, right, y, f"whisker l{colour}")
        figures += f" ({interval})"
    if mean:
        marks += path(f"M{x - 7:.2f} {y:.2f}l7 -7l7 7l-7 7z", f"point f{colour}")
    else:
        marks += circle(x, y, 4.5, f"point f{colour}")
    group = element(
        "g",
        "speedup",
        marks,
        tip,
        data_label=one.label,
        data_query=speedup.query,
        data_speedup=f"{speedup.value:.6g}",
        data_verdict=speedup.verdict,
    )
    return [group, text(WIDTH - RIGHT + 16, y + 4, figures, "bold" if mean else "soft")]


def _whisker(left: float, right: float, y: float, kind: str) -> str:
    caps = (line(x, y - 4, x, y + 4, kind) for x in (left, right))
    return line(left, y, right, y, kind) + "".join(caps)


def _longest(one: EntrantSummary) -> float:
    return max(
        (
            value
            for times in one.times
            if times.query != "pass"
            for value in (times.median_s, *_ends(times.interval))
        ),
        default=0.0,
    )


def _ends(interval: Interval | None) -> tuple[float, ...]:
    return (interval.low, interval.high) if interval else ()
