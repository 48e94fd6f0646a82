"""Two profiles side by side, for the terminal, as SVG and as a page. Pure.

Differences come first, in words; then ratios with their intervals, the distributions of both on
one axis, and both maps in one scale of colours. What is no difference stays grey.
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
from atoll.report.profile.charts import cdf_picture
from atoll.report.profile.heat import pair_picture
from atoll.report.profile.page import page
from atoll.report.profile.text import table
from atoll.report.profile.words import EMULATED, marked
from atoll.report.svg import scale as scales
from atoll.report.svg.picture import WIDTH, Picture, document, escaped, heading, line, text
from atoll.report.words import plural
from atoll.schema.profile import Figure, PairMatrix, Profile
from atoll.schema.text import printable

COLUMNS = ("what", "A", "B", "B / A", "interval", "difference")
_ROW, _LEFT, _RIGHT, _TOP = 20.0, 330.0, 130.0, 92.0
_WIDEST = 30.0  # a ratio beyond it is drawn at the edge


def verdicts(found: Comparison) -> list[str]:
    """How many figures differ, and the widest difference of each topic."""
    both = [row for row in found.rows if row.ratio is not None and row.a and row.b]
    differ = [row for row in both if row.verdict == "differs"]
    where = "the same kind of machine" if found.same_machine else "different machines"
    if not both:
        return [f"Nothing was measured on both; these are {where}."]
    told = [f"{len(differ)} of {plural(len(both), 'figure')} differ; these are {where}."]
    for topic, some in groupby(differ, key=lambda row: row.topic):
        widest = max(some, key=_distance)
        assert widest.ratio is not None
        told.append(
            f"{topic}: {widest.what} is {_times(widest.ratio.value)} as "
            f"{'long' if widest.unit == 'ns' else 'much'} on B; {widest.better} is better."
        )
    return told


def compare_text(found: Comparison) -> RenderableType:
    """Fits 80 columns; a difference is bold."""
    parts: list[RenderableType] = [
        Text(printable(f"A: {found.a}"), style="bold"),
        Text(printable(f"B: {found.b}"), style="bold"),
    ]
    if found.emulated:
        parts.append(Text(EMULATED, style="bold white on red"))
    parts += [Text(printable(one)) for one in verdicts(found)]
    for title, settings in (
        ("What the machines are", found.shapes),
        ("What else is not alike", found.settings),
    ):
        rows = [(one.name, one.a, one.b) for one in settings]
        if rows:
            parts += [Text(), Text(title, style="bold"), table(("", "A", "B"), rows)]
    for topic, some in groupby(found.rows, key=lambda row: row.topic):
        parts += [Text(), Text(printable(topic), style="bold")]
        parts.append(table(COLUMNS, [cells(row) for row in some]))
    parts += [Text(), Text(_FOOT, style="dim")]
    return Group(*parts)


_FOOT = (
    "A difference is one whose intervals do not touch and that is larger than either of them. "
    "~ did not settle."
)


def cells(row: Compared) -> tuple[str, ...]:
    verdict = {"differs": f"{row.better} better", "no difference": "none"}.get(
        row.verdict, row.verdict
    )
    ratio = row.ratio
    return (
        row.what,
        _figure(row.a, row.unit),
        _figure(row.b, row.unit),
        _times(ratio.value) if ratio else "-",
        f"{ratio.low:.2f} to {ratio.high:.2f}" if ratio else "-",
        verdict,
    )


def compare_svg(found: Comparison, a: Profile, b: Profile) -> Markup:
    """Every picture in one file."""
    return document(compare_pictures(found, a, b), f"{found.a} against {found.b}")


def compare_html(found: Comparison, a: Profile, b: Profile) -> str:
    """The whole page."""
    return page(
        "profile_compare.html.j2",
        found=found,
        emulated=EMULATED if found.emulated else "",
        verdicts=verdicts(found),
        pictures=[document([one], one.name) for one in compare_pictures(found, a, b)],
        columns=COLUMNS,
        topics=[
            (topic, [cells(row) for row in some])
            for topic, some in groupby(found.rows, key=lambda row: row.topic)
        ],
        foot=_FOOT,
    )


def compare_pictures(found: Comparison, a: Profile, b: Profile) -> list[Picture]:
    pictures = [_ratios(found)]
    latencies = [one.core_latency_cas_ns or one.core_latency_store_ns for one in (a, b)]
    named = [
        (f"{letter} ", relations(matrix, one.inference))
        for letter, matrix, one in zip("AB", latencies, (a, b), strict=True)
    ]
    pictures.append(cdf_picture(named, "Core-to-core latency of both"))
    pictures += _maps(a, b, latencies, "ns", "Core-to-core latency",
                      ("home of the line (PU)", "other PU"))  # fmt: skip
    pictures += _maps(a, b, [a.core_bandwidth_gbs, b.core_bandwidth_gbs], "GB/s",
                      "Core-to-core bandwidth", ("producer (PU)", "consumer (PU)"))  # fmt: skip
    return [one for one in pictures if one is not None]


def _maps(
    a: Profile, b: Profile, matrices: Sequence[PairMatrix | None], unit: scales.Unit, title: str,
    axes: tuple[str, str],
) -> list[Picture]:  # fmt: skip
    """Both maps in the colours of one scale, so that they can be compared by eye."""
    there = [one for one in matrices if one is not None]
    if not there:
        return []
    scale = scales.colour_scale(np.concatenate([one.array().ravel() for one in there]))
    return [
        pair_picture(matrix, one.inference, title=f"{letter}: {title}", unit=unit, axes=axes,
                     scale=scale)
        for letter, matrix, one in zip("AB", matrices, (a, b), strict=True)
        if matrix is not None
    ]  # fmt: skip


def _ratios(found: Comparison) -> Picture | None:
    """A point and its interval for each figure, on a logarithmic axis about 1."""
    rows = [row for row in found.rows if row.ratio is not None]
    if not rows:
        return None
    ends = [
        min(max(value, 1 / _WIDEST), _WIDEST)
        for row in rows if row.ratio
        for value in (row.ratio.value, row.ratio.low, row.ratio.high)
    ]  # fmt: skip
    reach = max(1.1, max(ends), 1 / min(ends)) * 1.05
    scale = scales.Scale(1 / reach, reach)
    across = WIDTH - _LEFT - _RIGHT
    parts = [
        heading("B over A", "a point is the ratio, its line the interval; grey: no difference")
    ]
    y = _TOP
    marks: list[str] = []
    for topic, some in groupby(rows, key=lambda row: row.topic):
        marks.append(text(16, y + 4, topic, "ink bold"))
        y += _ROW
        for row in some:
            assert row.ratio is not None
            colour = {"A": 2, "B": 1, "": 0}[row.better]
            low, middle, high = (
                _LEFT + scale.at(value) * across
                for value in (row.ratio.low, row.ratio.value, row.ratio.high)
            )
            tip = ", ".join(cells(row))
            marks.append(text(_LEFT - 12, y + 4, _cut(f"{row.what}, {row.unit}"), "soft small",
                              "end"))  # fmt: skip
            marks.append(line(low, y, high, y, f"line l{colour}"))
            marks.append(
                f'<circle class="f{colour} l{colour}" cx="{middle:.1f}" cy="{y:.1f}" r="4">'
                f"<title>{escaped(tip)}</title></circle>"
            )
            words = _times(row.ratio.value) + (f" {row.better} better" if row.better else "")
            kind = "ink small bold" if row.better else "soft small"
            marks.append(text(WIDTH - _RIGHT + 14, y + 4, words, kind))
            y += _ROW
        y += 6
    for tick in (0.05, 0.1, 0.2, 0.33, 0.5, 0.67, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 3, 5, 10, 20):
        if not scale.low < tick < scale.high or (
            reach > 2 and tick in (0.67, 0.8, 0.9, 1.1, 1.25, 1.5)
        ):
            continue
        x = _LEFT + scale.at(tick) * across
        parts.append(line(x, _TOP - 14, x, y, "mark" if tick == 1 else "grid"))
        parts.append(text(x, _TOP - 20, f"{tick:g}×", "soft small", "middle"))
    return Picture("B over A", WIDTH, y + 10, "".join(parts + marks))


def _figure(figure: Figure | None, unit: str) -> str:
    if figure is None:
        return "-"
    return f"{marked(figure)} {unit}"


def _distance(row: Compared) -> float:
    ratio = row.ratio.value if row.ratio else 1.0
    return max(ratio, 1 / ratio) if ratio > 0 else float("inf")


def _times(ratio: float) -> str:
    return f"{ratio:.2f}×"


def _cut(words: str) -> str:
    return words if len(words) <= 46 else f"{words[:45]}…"
