"""Two profiles side by side, for the terminal, as SVG and as a page. Pure.

Differences come first, in words; then ratios with their intervals, the distributions of both on one
axis, and both maps in one range of colours. A figure that does not differ stays grey.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np
from markupsafe import Markup
from rich.console import Group, RenderableType
from rich.text import Text

from atoll.infer.compare import Compared, Comparison
from atoll.infer.relations import relations
from atoll.report.numbers import Unit, cut, marked, ratio
from atoll.report.pages import page
from atoll.report.profile.charts import cdf_picture
from atoll.report.profile.findings import EMULATED
from atoll.report.profile.heat import pair_picture
from atoll.report.profile.heat_colours import colour_scale
from atoll.report.profile.pictures import BANDWIDTH_AXES, LATENCY_AXES
from atoll.report.profile.text import table
from atoll.report.svg.axes import Scale, ratio_ticks
from atoll.report.svg.elements import WIDTH, Picture, circle, document, heading, line, text
from atoll.report.table import Row, Table
from atoll.schema.profile import Figure, PairMatrix, Profile
from atoll.schema.text import plural, printable

_ROW, _LEFT, _RIGHT, _TOP = 20.0, 330.0, 130.0, 92.0
_WIDEST = 30.0  # a ratio beyond it is drawn at the edge
_FOOT = (
    "A difference is one whose intervals do not overlap and that is larger than either interval. "
    "~ did not settle."
)


def verdicts(comparison: Comparison) -> list[str]:
    """How many figures differ, and the largest difference of each topic."""
    shared = [row for row in comparison.rows if row.ratio is not None and row.a and row.b]
    differing = [row for row in shared if row.verdict == "differs"]
    machines = "the same kind of machine" if comparison.same_machine else "different machines"
    if not shared:
        return [f"The profiles share no figure; they are of {machines}."]
    lines = [
        f"{len(differing)} of {plural(len(shared), 'figure')} differ; "
        f"the profiles are of {machines}."
    ]
    for topic, rows in groupby(differing, key=lambda row: row.topic):
        largest = max(rows, key=_distance)
        assert largest.ratio is not None
        lines.append(
            f"{topic}, {largest.what}: {_ratio(largest)} on B, so {largest.better} is better."
        )
    return lines


def compare_text(comparison: Comparison) -> RenderableType:
    """The comparison in at most 80 columns."""
    parts: list[RenderableType] = [
        Text(printable(f"A: {comparison.a}"), style="bold"),
        Text(printable(f"B: {comparison.b}"), style="bold"),
    ]
    if comparison.emulated:
        parts.append(Text(EMULATED, style="bold white on red"))
    parts += [Text(printable(line)) for line in verdicts(comparison)]
    for title, settings in (
        ("The machines", comparison.shapes),
        ("Other differences in the environment", comparison.settings),
    ):
        if settings:
            rows = [(one.name, one.a, one.b) for one in settings]
            parts += [Text(), Text(title, style="bold"), table(("", "A", "B"), rows)]
    for title, columns, compared in _tables(comparison):
        parts += [Text(), Text(printable(title), style="bold"), table(columns, compared)]
    return Group(*parts, Text(), Text(_FOOT, style="dim"))


def _tables(comparison: Comparison) -> list[Table]:
    """A table for each topic."""
    columns = ("what", "A", "B", "B / A", "interval", "difference")
    return [
        Table(topic, columns, [_cells(row) for row in rows])
        for topic, rows in groupby(comparison.rows, key=lambda row: row.topic)
    ]


def _cells(row: Compared) -> Row:
    verdict = {"differs": f"{row.better} better", "no difference": "none"}.get(
        row.verdict, row.verdict
    )
    return (
        row.what,
        _figure(row.a, row.unit),
        _figure(row.b, row.unit),
        _ratio(row),
        f"{row.ratio.low:.2f} to {row.ratio.high:.2f}" if row.ratio else "-",
        verdict,
    )


def compare_svg(comparison: Comparison, a: Profile, b: Profile) -> Markup:
    """Every picture in one file."""
    name = f"{comparison.a} against {comparison.b}"
    return document(compare_pictures(comparison, a, b), name)


def compare_html(comparison: Comparison, a: Profile, b: Profile) -> str:
    """The whole page."""
    return page(
        "profile_compare.html.j2",
        comparison=comparison,
        emulated=EMULATED if comparison.emulated else "",
        verdicts=verdicts(comparison),
        pictures=compare_pictures(comparison, a, b),
        tables=_tables(comparison),
        foot=_FOOT,
    )


def compare_pictures(comparison: Comparison, a: Profile, b: Profile) -> list[Picture]:
    latencies = [one.core_latency_cas_ns or one.core_latency_store_ns for one in (a, b)]
    bandwidths = [one.core_bandwidth_gbs for one in (a, b)]
    kinds = [
        (f"{letter} ", relations(matrix, one.inference))
        for letter, matrix, one in zip("AB", latencies, (a, b), strict=True)
    ]
    pictures = [
        _ratios(comparison),
        cdf_picture(kinds, "Core-to-core latency of both"),
        *_maps(a, b, latencies, "ns", "Core-to-core latency", LATENCY_AXES),
        *_maps(a, b, bandwidths, "GB/s", "Core-to-core bandwidth", BANDWIDTH_AXES),
    ]
    return [picture for picture in pictures if picture]


def _maps(
    a: Profile,
    b: Profile,
    matrices: Sequence[PairMatrix | None],
    unit: Unit,
    title: str,
    axes: tuple[str, str],
) -> list[Picture]:
    """Both maps in one range of colours, so that readers can compare them by eye."""
    measured = [matrix for matrix in matrices if matrix is not None]
    if not measured:
        return []
    scale = colour_scale(np.concatenate([matrix.array().ravel() for matrix in measured]))
    return [
        pair_picture(
            matrix, one.inference, title=f"{letter}: {title}", unit=unit, axes=axes, scale=scale
        )
        for letter, matrix, one in zip("AB", matrices, (a, b), strict=True)
        if matrix is not None
    ]


def _ratios(comparison: Comparison) -> Picture | None:
    """A point and its interval for each figure, on a logarithmic axis about 1."""
    rows = [row for row in comparison.rows if row.ratio is not None]
    if not rows:
        return None
    ends = [
        min(max(value, 1 / _WIDEST), _WIDEST)
        for row in rows
        if row.ratio
        for value in (row.ratio.value, row.ratio.low, row.ratio.high)
    ]
    ticks = ratio_ticks(min(ends), max(ends))
    scale = Scale(ticks[0], ticks[-1])
    across = WIDTH - _LEFT - _RIGHT
    parts: list[str] = []
    y = _TOP
    for topic, compared in groupby(rows, key=lambda row: row.topic):
        parts.append(text(16, y + 4, topic, "bold"))
        y += _ROW
        for row in compared:
            assert row.ratio is not None
            colour = {"A": 2, "B": 1, "": 0}[row.better]
            low, middle, high = (
                _LEFT + scale.at(value) * across
                for value in (row.ratio.low, row.ratio.value, row.ratio.high)
            )
            label = cut(f"{row.what}, {row.unit}", 46)
            value = _ratio(row) + (f" {row.better} better" if row.better else "")
            kind = "small bold" if row.better else "soft small"
            parts += [
                text(_LEFT - 12, y + 4, label, "soft small", "end"),
                line(low, y, high, y, f"line l{colour}"),
                circle(middle, y, 4, f"f{colour} l{colour}", ", ".join(_cells(row))),
                text(WIDTH - _RIGHT + 14, y + 4, value, kind),
            ]
            y += _ROW
        y += 6
    axis = []
    for tick in ticks:
        x = _LEFT + scale.at(tick) * across
        axis.append(line(x, _TOP - 14, x, y, "mark" if tick == 1 else "grid"))
        axis.append(text(x, _TOP - 20, f"{tick:g}×", "soft small", "middle"))
    subtitle = "a point is the ratio, its line the interval; grey: no difference"
    body = [heading("B over A", subtitle), *axis, *parts]
    return Picture("B over A", WIDTH, y + 10, "".join(body))


def _figure(figure: Figure | None, unit: str) -> str:
    return "-" if figure is None else f"{marked(figure)} {unit}"


def _ratio(row: Compared) -> str:
    return ratio(row.ratio.value, settled=row.settled) if row.ratio else "-"


def _distance(row: Compared) -> float:
    value = row.ratio.value if row.ratio else 1.0
    return max(value, 1 / value) if value > 0 else float("inf")
