"""A profile for a terminal: what the machine is, its heat maps, distributions and tables. Pure.

Fits 80 columns. Each map is drawn with as much detail as fits: a character for a PU, half a
character, or a group's median. Without colours characters take their place: the denser, the
nearer. Names come from files, so that nothing unprintable of them reaches the terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from rich.color import Color
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.style import Style
from rich.table import Table
from rich.text import Text

from atoll.infer.relations import Relation, arrange, ordered, relations
from atoll.report.profile import words
from atoll.report.profile.heat import is_flat
from atoll.report.svg import scale as scales
from atoll.report.svg.scale import Array, Unit
from atoll.schema.profile import Figure, Inference, NodeMatrix, PairMatrix, Profile
from atoll.schema.text import printable

_WIDE_CELLS = 32  # of a map, each way: so many may have two characters
_MOST_CELLS = 64  # half a character each, which needs colours
_BLOCKS = " ▁▂▃▄▅▆▇█"
_BARE_BLOCKS = " .:-=+*%@"
_SHADES = " ·░▒▓█"  # an odd number of them, so that what is flat has one in the middle
_BARE_SHADES = " .:*#@"
_CURVE = 36  # columns of a distribution


def profile_text(profile: Profile, *, colour: bool, ascii_only: bool = False) -> RenderableType:
    """`colour`: the terminal shows colours; else the maps are drawn in characters."""
    parts: list[RenderableType] = [Text(printable(profile.machine_title), style="bold")]
    if profile.emulated:
        parts.append(Text(words.EMULATED, style="bold white on red"))
    parts += [Text(printable(sentence)) for sentence in words.headline(profile)]
    parts += _list("Before you believe a figure", _doubts(profile), "yellow")
    latency = profile.core_latency_cas_ns or profile.core_latency_store_ns
    operation = "compare-and-swap" if profile.core_latency_cas_ns else "store and load"
    maps: tuple[tuple[PairMatrix | None, Unit, str], ...] = (
        (latency, "ns", f"Core-to-core latency, {operation}, ns one way"),
        (profile.core_bandwidth_gbs, "GB/s", "Core-to-core bandwidth, GB/s"),
    )
    for matrix, unit, title in maps:
        if matrix is not None:
            parts += [Text(), Text(title, style="bold")]
            parts += _map(matrix, profile.inference, unit, colour, ascii_only)
            parts += _curves(relations(matrix, profile.inference), unit, ascii_only)
    if profile.nodes is not None:
        parts += [Text(), Text("Memory by node: idle latency ns, bandwidth GB/s", style="bold")]
        parts.append(_nodes(profile.nodes))
    tables = (
        ("Memory latency under load", words.LOADED_COLUMNS, words.loaded_rows(profile)),
        ("Caches, as latency shows them", words.CACHE_COLUMNS, words.cache_rows(profile)),
        ("STREAM, the best of each level: only 'memory' is the memory's bandwidth",
         words.STREAM_COLUMNS, words.stream_rows(profile, brief=True)),
        ("Local against distributed cache", words.SHARING_COLUMNS, words.sharing_rows(profile)),
        ("Allocators under churn: ns an operation by threads, memory over what was asked for",
         *words.churn_table(profile)),
    )  # fmt: skip
    for title, columns, rows in tables:
        if rows:
            parts += [Text(), Text(title, style="bold"), table(columns, rows)]
    parts += _expected(profile)
    if profile.inference is not None:
        parts += _list("Why these groups", profile.inference.reasons, "")
    parts += _list("Left out", words.left_out(profile), "")
    return Group(*parts)


def _doubts(profile: Profile) -> list[str]:
    """Those that are not said above already."""
    return [one for one in words.doubts(profile) if one != words.EMULATED]


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Two spaces between columns, no frame; long words are folded."""
    found = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in columns:
        found.add_column(column, overflow="fold")
    for row in rows:
        found.add_row(*(Text(printable(cell)) for cell in row))
    return found


def _expected(profile: Profile) -> list[RenderableType]:
    """A row a figure; the reason and the source below it, for which a column is too narrow."""
    rows = words.expected_rows(profile)
    if not rows:
        return []
    found = table(words.EXPECTED_COLUMNS[:-2], (row[:-2] for row in rows))
    notes = [
        Padding(
            Text(printable(f"{row[0]}: {row[-2]}; source: {row[-1]}"), style="dim"), (0, 0, 0, 2)
        )
        for row in rows
    ]
    return [Text(), Text("Against the catalog", style="bold"), found, *notes]


def _list(title: str, lines: Sequence[str], style: str) -> list[RenderableType]:
    if not lines:
        return []
    entries = [
        Padding(Text(printable(one), style=style), (0, 0, 0, 2), expand=False) for one in lines
    ]
    return [Text(), Text(title, style="bold"), *entries]


# ---- Maps -----------------------------------------------------------------------------------


def _map(
    matrix: PairMatrix, inference: Inference | None, unit: Unit, colour: bool, ascii_only: bool
) -> list[RenderableType]:
    found = arrange(inference, matrix.pus)
    values, unsettled = ordered(matrix, found)
    if not np.isfinite(values).any():
        return [Text("nothing was measured", style="dim")]
    scale = scales.colour_scale(values, flat=is_flat(inference, unit))
    groups = [(one.start, one.stop) for one in found.chiplets or found.packages]
    painted = colour and not ascii_only
    cells, each = _fitted(values, groups, _MOST_CELLS if painted else _WIDE_CELLS)
    share = scales.nearness(scale.share(np.where(np.isfinite(cells), cells, scale.low)), unit)
    share[~np.isfinite(cells)] = np.nan
    lines = _coloured(share) if painted else _shaded(share, ascii_only)
    parts: list[RenderableType] = [Padding(Text("\n").join(lines), (0, 0, 0, 2), expand=False)]
    parts.append(_legend(scale, unit, painted, ascii_only))
    note = "rows: home of the line" if unit == "ns" else "rows: producer, columns: consumer"
    note += ", PUs by inferred groups" if groups else ", PUs in the kernel's order"
    note += f"; a cell is the median of up to {each} x {each} PUs" if each > 1 else ""
    loose = int(unsettled.sum())
    note += f"; ~{loose:,} did not settle" if loose else ""
    parts.append(Padding(Text(note, style="dim"), (0, 0, 0, 2), expand=False))
    return parts


def _fitted(values: Array, groups: Sequence[tuple[int, int]], most: int) -> tuple[Array, int]:
    """The map, or medians of so many PUs each way; no cell reaches over a group's border."""
    count = len(values)
    if count <= most:
        return values, 1
    bounds = sorted({0, count, *(edge for group in groups for edge in group)})
    for each in range(2, count + 1):
        edges = [edge for start, stop in pairwise(bounds)
                 for edge in range(start, stop, each)]  # fmt: skip
        if len(edges) <= most:
            break
    else:  # more groups than cells
        each = -(-count // most)
        edges = list(range(0, count, each))
    spans = list(zip(edges, [*edges[1:], count], strict=True))
    cells = np.full((len(spans), len(spans)), np.nan)
    for i, (top, bottom) in enumerate(spans):
        for j, (left, right) in enumerate(spans):
            block = values[top:bottom, left:right]
            found = block[np.isfinite(block)]
            if len(found):
                cells[i, j] = np.median(found)
    return cells, max(stop - start for start, stop in spans)


def _coloured(share: Array) -> list[Text]:
    """Two characters a cell, or two cells a character where there are many."""
    if len(share) <= _WIDE_CELLS:
        lines = []
        for row in share:
            line = Text()
            for cell in row:
                line.append("  ", Style(bgcolor=_paint(cell)))
            lines.append(line)
        return lines
    if len(share) % 2:
        share = np.vstack([share, np.full((1, share.shape[1]), np.nan)])
    lines = []
    for upper, lower in zip(share[::2], share[1::2], strict=True):
        line = Text()
        for above, below in zip(upper, lower, strict=True):
            if np.isnan(above) and not np.isnan(below):
                line.append("▄", Style(color=_paint(below)))
            elif np.isnan(above):
                line.append(" ")
            else:
                line.append("▀", Style(color=_paint(above), bgcolor=_paint(below)))
        lines.append(line)
    return lines


def _paint(share: float) -> Color | None:
    return None if np.isnan(share) else Color.from_rgb(*scales.colour(share))


def _shaded(share: Array, ascii_only: bool) -> list[Text]:
    """Near is dense; a blank was not measured."""
    shades = _BARE_SHADES if ascii_only else _SHADES
    most = len(shades) - 1
    return [
        Text("".join("  " if np.isnan(cell) else shades[most - min(int(cell * most), most - 1)] * 2
                     for cell in row))
        for row in share
    ]  # fmt: skip


def _legend(scale: scales.Scale, unit: Unit, colour: bool, ascii_only: bool) -> RenderableType:
    near, far = (scale.low, scale.high) if unit == "ns" else (scale.high, scale.low)
    line = Text(f"  {scales.figure_words(near, unit)} ")
    steps = np.linspace(0, 1, 24)
    if colour:
        for step in steps:
            line.append(" ", Style(bgcolor=_paint(float(step))))
    else:
        line.append_text(_shaded(steps[None, :], ascii_only)[0][:48])
    return line.append(f" {scales.figure_words(far, unit)}")


# ---- Distributions, nodes -------------------------------------------------------------------


def _curves(found: Sequence[Relation], unit: Unit, ascii_only: bool) -> list[RenderableType]:
    """A line for each kind of pair: its median, and how its share grows along one axis."""
    if not found:
        return []
    scale = scales.span(np.concatenate([one.values for one in found]), 1.05)
    blocks = _BARE_BLOCKS if ascii_only else _BLOCKS
    edges = scale.low * (scale.high / scale.low) ** (np.arange(1, _CURVE + 1) / _CURVE)
    rows = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    for name in ("pairs", "median", "5 to 95 %"):
        rows.add_column(name, no_wrap=True)
    low, high = scales.number(scale.low), scales.figure_words(scale.high, unit)
    rows.add_column(f"share below, {low} to {high}", no_wrap=True)
    for one in found:
        shares = np.searchsorted(one.values, edges, side="right") / len(one.values)
        curve = "".join(blocks[round(float(share) * (len(blocks) - 1))] for share in shares)
        loose = "~" if one.unsettled * 2 > len(one.values) else ""
        rows.add_row(
            one.name, loose + scales.figure_words(one.quantile(0.5), unit),
            f"{scales.number(one.quantile(0.05))} to {scales.number(one.quantile(0.95))}", curve,
        )  # fmt: skip
    return [Padding(rows, (1, 0, 0, 2), expand=False)]


def _nodes(nodes: NodeMatrix) -> RenderableType:
    """A row a CPU node; in a cell latency and bandwidth."""
    if len(nodes.memory_nodes) > 6:
        columns = ("CPUs of node", "memory of node", "ns", "GB/s")
        return table(columns, [
            (str(i), str(j), _cell(latency), _cell(bandwidth))
            for i, lats, bands in zip(nodes.cpu_nodes, nodes.latency_ns, nodes.bandwidth_gbs,
                                      strict=True)
            for j, latency, bandwidth in zip(nodes.memory_nodes, lats, bands, strict=True)
        ])  # fmt: skip
    return table(("", *(f"memory {node}" for node in nodes.memory_nodes)), [
        (f"CPUs {node}", *(f"{_cell(latency)}, {_cell(bandwidth)}" for latency, bandwidth in
                           zip(lats, bands, strict=True)))
        for node, lats, bands in zip(nodes.cpu_nodes, nodes.latency_ns, nodes.bandwidth_gbs,
                                     strict=True)
    ])  # fmt: skip


def _cell(figure: Figure | None) -> str:
    return "-" if figure is None else words.marked(figure)
