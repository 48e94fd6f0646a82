"""A profile for a terminal: the machine, its heat maps, distributions and tables. Pure.

Fits 80 columns. Each map has as much detail as fits: a character for a PU, half a character, or a
median over several PUs. Without colours, characters take their place: the denser, the nearer. Names
come from files, so unprintable characters are replaced.
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
from atoll.report.numbers import Unit, figure, marked, number, number_range
from atoll.report.profile import findings, tables
from atoll.report.profile.heat import is_flat
from atoll.report.profile.heat_colours import colour as heat_colour
from atoll.report.profile.heat_colours import colour_scale, nearness
from atoll.report.svg.axes import Array, Scale, span
from atoll.report.table import Table as TextTable
from atoll.report.terminal.grid import grid
from atoll.schema.profile import Figure, Inference, NodeMatrix, PairMatrix, Profile
from atoll.schema.text import printable

_WIDE_CELLS = 32  # a map of up to this many rows has two characters a cell
_MOST_CELLS = 64  # half a character each, which needs colours
_BLOCKS = " ▁▂▃▄▅▆▇█"
_BARE_BLOCKS = " .:-=+*%@"
_SHADES = " ·░▒▓█"  # an odd number without the blank, so that a flat map has the middle one
_BARE_SHADES = " .:*#@"
_CURVE = 36  # columns of a distribution


def profile_text(profile: Profile, *, colour: bool, ascii_only: bool = False) -> RenderableType:
    """`colour`: whether the terminal shows colours; otherwise characters draw the maps."""
    parts: list[RenderableType] = [Text(printable(profile.machine_title), style="bold")]
    if profile.emulated:
        parts.append(Text(findings.EMULATED, style="bold white on red"))
    parts += [Text(printable(sentence)) for sentence in findings.headline(profile)]
    parts += _list("Before you trust a figure", findings.doubts(profile), "yellow")
    latency = profile.core_latency_cas_ns or profile.core_latency_store_ns
    operation = "compare-and-swap" if profile.core_latency_cas_ns else "store and load"
    maps: tuple[tuple[PairMatrix | None, Unit, str], ...] = (
        (latency, "ns", f"Core-to-core latency, {operation}, ns one way"),
        (profile.core_bandwidth_gbs, "GB/s", "Core-to-core bandwidth, GB/s"),
    )
    for matrix, unit, title in maps:
        if matrix is not None:
            parts += _titled(title)
            parts += _map(matrix, profile.inference, unit, colour, ascii_only)
            parts += _curves(relations(matrix, profile.inference), unit, ascii_only)
    if profile.nodes is not None:
        title = "Memory by node: idle latency in ns, bandwidth in GB/s"
        parts += [*_titled(title), _nodes(profile.nodes)]
    for title, columns, rows in tables.memory_tables(profile, brief=True):
        parts += [*_titled(title), table(columns, rows)]
    parts += _catalog(tables.catalog_table(profile))
    if profile.inference is not None:
        parts += _list("Why these groups", profile.inference.reasons, "")
    parts += _list("Not measured", findings.left_out(profile), "")
    return Group(*parts)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Two spaces between columns, no frame; long words are folded."""
    shown = grid()
    for column in columns:
        shown.add_column(column, overflow="fold")
    for row in rows:
        shown.add_row(*(Text(printable(cell)) for cell in row))
    return shown


def _titled(title: str) -> list[RenderableType]:
    return [Text(), Text(title, style="bold")]


def _indented(text: Text) -> RenderableType:
    return Padding(text, (0, 0, 0, 2), expand=False)


def _catalog(catalog: TextTable) -> list[RenderableType]:
    """The reason and the source are below the rows: a column is too narrow for them."""
    if not catalog.rows:
        return []
    notes = [
        _indented(Text(printable(f"{row[0]}: {row[-2]}; source: {row[-1]}"), style="dim"))
        for row in catalog.rows
    ]
    rows = table(catalog.columns[:-2], (row[:-2] for row in catalog.rows))
    return [*_titled(catalog.title), rows, *notes]


def _list(title: str, lines: Sequence[str], style: str) -> list[RenderableType]:
    if not lines:
        return []
    return [*_titled(title), *(_indented(Text(printable(line), style=style)) for line in lines)]


# ---- Maps -----------------------------------------------------------------------------------


def _map(
    matrix: PairMatrix, inference: Inference | None, unit: Unit, colour: bool, ascii_only: bool
) -> list[RenderableType]:
    arrangement = arrange(inference, matrix.pus)
    values, unsettled = ordered(matrix, arrangement)
    if not np.isfinite(values).any():
        return [Text("nothing was measured", style="dim")]
    scale = colour_scale(values, flat=is_flat(inference, unit))
    groups = [(one.start, one.stop) for one in arrangement.chiplets or arrangement.packages]
    painted = colour and not ascii_only
    cells, each = _fitted(values, groups, _MOST_CELLS if painted else _WIDE_CELLS)
    share = nearness(scale.share(np.where(np.isfinite(cells), cells, scale.low)), unit)
    share[~np.isfinite(cells)] = np.nan
    lines = _coloured(share) if painted else _shaded(share, ascii_only)
    note = "rows: home of the line" if unit == "ns" else "rows: producer, columns: consumer"
    note += ", PUs by inferred group" if groups else ", PUs in the kernel's order"
    note += f"; a cell is the median of up to {each} x {each} PUs" if each > 1 else ""
    loose = int(unsettled.sum())
    note += f"; {loose:,} did not settle" if loose else ""
    return [
        _indented(Text("\n").join(lines)),
        _legend(scale, unit, painted, ascii_only),
        _indented(Text(note, style="dim")),
    ]


def _fitted(values: Array, groups: Sequence[tuple[int, int]], most: int) -> tuple[Array, int]:
    """The map in at most `most` cells each way, and how many PUs a cell covers each way.

    A cell that covers several PUs has their median. No cell crosses the border of a group.
    """
    count = len(values)
    if count <= most:
        return values, 1
    bounds = sorted({0, count, *(edge for group in groups for edge in group)})
    for each in range(2, count + 1):
        edges = [e for start, stop in pairwise(bounds) for e in range(start, stop, each)]
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
            finite = block[np.isfinite(block)]
            if len(finite):
                cells[i, j] = np.median(finite)
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
    return None if np.isnan(share) else Color.from_rgb(*heat_colour(share))


def _shaded(share: Array, ascii_only: bool) -> list[Text]:
    """Near is dense; a blank cell was not measured."""
    shades = _BARE_SHADES if ascii_only else _SHADES
    most = len(shades) - 1

    def shade(cell: float) -> str:
        return "  " if np.isnan(cell) else shades[most - min(int(cell * most), most - 1)] * 2

    return [Text("".join(map(shade, row))) for row in share]


def _legend(scale: Scale, unit: Unit, colour: bool, ascii_only: bool) -> RenderableType:
    near, far = (scale.low, scale.high) if unit == "ns" else (scale.high, scale.low)
    line = Text(f"  {figure(near, unit)} ")
    steps = np.linspace(0, 1, 24)
    if colour:
        for step in steps:
            line.append(" ", Style(bgcolor=_paint(float(step))))
    else:
        line.append_text(_shaded(steps[None, :], ascii_only)[0][:48])
    return line.append(f" {figure(far, unit)}")


# ---- Distributions, nodes -------------------------------------------------------------------


def _curves(kinds: Sequence[Relation], unit: Unit, ascii_only: bool) -> list[RenderableType]:
    """A line for each kind of pair: its median, and its cumulative distribution on one axis."""
    if not kinds:
        return []
    scale = span(np.concatenate([kind.values for kind in kinds]), 1.05)
    blocks = _BARE_BLOCKS if ascii_only else _BLOCKS
    edges = scale.low * (scale.high / scale.low) ** (np.arange(1, _CURVE + 1) / _CURVE)
    rows = grid(gap=1)
    for name in ("pairs", "median", "5 to 95 %"):
        rows.add_column(name, no_wrap=True)
    low, high = number(scale.low), figure(scale.high, unit)
    rows.add_column(f"share below, {low} to {high}", no_wrap=True)
    for kind in kinds:
        shares = np.searchsorted(kind.values, edges, side="right") / len(kind.values)
        rows.add_row(
            kind.name,
            figure(kind.quantile(0.5), unit, settled=kind.settled),
            number_range(kind.quantile(0.05), kind.quantile(0.95)),
            "".join(blocks[round(float(share) * (len(blocks) - 1))] for share in shares),
        )
    return [Padding(rows, (1, 0, 0, 2), expand=False)]


def _nodes(nodes: NodeMatrix) -> RenderableType:
    """A row for each node of CPUs; with many nodes, a row for each pair of nodes."""
    rows_of = list(zip(nodes.cpu_nodes, nodes.latency_ns, nodes.bandwidth_gbs, strict=True))
    if len(nodes.memory_nodes) > 6:
        pairs = [
            (str(cpu_node), str(memory_node), _cell(latency), _cell(bandwidth))
            for cpu_node, latencies, bandwidths in rows_of
            for memory_node, latency, bandwidth in zip(
                nodes.memory_nodes, latencies, bandwidths, strict=True
            )
        ]
        return table(("CPUs of node", "memory of node", "ns", "GB/s"), pairs)
    rows = [
        (
            f"CPUs {cpu_node}",
            *(
                f"{_cell(latency)}, {_cell(bandwidth)}"
                for latency, bandwidth in zip(latencies, bandwidths, strict=True)
            ),
        )
        for cpu_node, latencies, bandwidths in rows_of
    ]
    return table(("", *(f"memory {node}" for node in nodes.memory_nodes)), rows)


def _cell(value: Figure | None) -> str:
    return "-" if value is None else marked(value)
