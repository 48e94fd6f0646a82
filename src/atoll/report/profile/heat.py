"""Heat maps: a cell for every ordered pair of PUs, and for every pair of nodes. Pure.

The map of PUs is a small PNG with a palette inside the SVG: 384 PUs are 147,456 cells, too many
elements for a browser. Everything around it is text and lines. A blank cell was not measured; a
stroke through a cell means that it did not settle. Frames on the diagonal are inferred chiplets;
crosses over the whole map divide packages.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from itertools import pairwise, product

import numpy as np
import numpy.typing as npt

from atoll.infer.relations import Arrangement, arrange, ordered
from atoll.report.numbers import Unit, cut, described, figure, marked, number_range, tick_label
from atoll.report.profile.heat_colours import (
    STEPS,
    bright,
    colour,
    colour_scale,
    hex_colour,
    nearness,
)
from atoll.report.svg.axes import Array, Scale, log_ticks
from atoll.report.svg.elements import WIDTH, Picture, element, heading, line, path, rect, text
from atoll.schema.cpulist import format_cpulist
from atoll.schema.profile import Figure, Inference, NodeMatrix, PairMatrix
from atoll.schema.text import plural

_LEFT, _TOP, _SIDE = 84.0, 104.0, 520.0
_GRID_LEFT, _ROW = 92.0, 36.0
_MOST_TIPS = 24  # up to this many groups, every pair of groups has a tooltip
_MARK_DARK, _MARK_BRIGHT = STEPS + 1, STEPS + 2


def pair_picture(
    matrix: PairMatrix,
    inference: Inference | None,
    *,
    title: str,
    unit: Unit,
    axes: tuple[str, str],
    scale: Scale | None = None,
) -> Picture:
    """`axes` names the rows and the columns; `scale` is one that several maps share."""
    arrangement = arrange(inference, matrix.pus)
    values, unsettled = ordered(matrix, arrangement)
    scale = scale or colour_scale(values, flat=is_flat(inference, unit))
    cell = _SIDE / max(len(arrangement.pus), 1)
    image = base64.b64encode(_png(_pixels(values, unsettled, scale, unit))).decode()
    parts = [
        heading(title, _subtitle(values, unsettled, unit)),
        rect(_LEFT, _TOP, _SIDE, _SIDE, "blank"),
        element(
            "image",
            "",
            x=_LEFT,
            y=_TOP,
            width=_SIDE,
            height=_SIDE,
            preserveAspectRatio="none",
            href=f"data:image/png;base64,{image}",
        ),
        *_frames(arrangement, cell),
        *_tips(arrangement, values, unsettled, cell, unit),
        *_pu_axes(arrangement, cell, axes),
        _legend(scale, unit),
    ]
    return Picture(title, WIDTH, _TOP + _SIDE + 56, "".join(parts))


def node_picture(nodes: NodeMatrix) -> Picture:
    """Latency and bandwidth between nodes, with the figures in the cells."""
    wide = min(100.0, (WIDTH - 140) / max(len(nodes.memory_nodes), 1))
    side_by_side = _GRID_LEFT + len(nodes.memory_nodes) * wide <= WIDTH / 2
    tall = 44 + len(nodes.cpu_nodes) * _ROW
    second = (WIDTH / 2, 64.0) if side_by_side else (0.0, 64 + tall)
    height = 64 + (tall if side_by_side else 2 * tall) + 16
    parts = [
        heading(
            "Memory by node",
            "latency: one idle PU follows dependent loads; bandwidth: one PU of each core reads; "
            + ("huge pages" if nodes.huge_pages else "small pages"),
        ),
        _node_grid(nodes, nodes.latency_ns, "Latency, ns", "ns", wide, (0, 64)),
        _node_grid(nodes, nodes.bandwidth_gbs, "Bandwidth, GB/s", "GB/s", wide, second),
        text(16, height - 6, "~ did not settle. Blank: not measured.", "soft small"),
    ]
    return Picture("Memory by node", WIDTH, height, "".join(parts))


# ---- Pairs of PUs ---------------------------------------------------------------------------


def is_flat(inference: Inference | None, unit: Unit) -> bool:
    """Whether figures of this unit show no groups."""
    if inference is None:
        return False
    hidden = inference.source == ("bandwidth" if unit == "ns" else "latency")
    islands = inference.chiplets and not hidden
    return not (islands or inference.packages or inference.smt)


def _subtitle(values: Array, unsettled: npt.NDArray[np.bool_], unit: Unit) -> str:
    measured = int(np.isfinite(values).sum())
    if not measured:
        return "nothing was measured"
    low, middle, high = np.nanpercentile(values, (0, 50, 100))
    count = int(unsettled.sum())
    median = figure(middle, unit, settled=2 * count <= measured)
    words = f"{number_range(low, high)} {unit}, median {median}, {measured:,} pairs"
    return words + (f"; {count:,} did not settle (stroke through the cell)" if count else "")


def _pixels(
    values: Array, unsettled: npt.NDArray[np.bool_], scale: Scale, unit: Unit
) -> npt.NDArray[np.uint8]:
    """Colour indices; a cell is a square of pixels, which stays crisp in viewers that smooth."""
    count = len(values)
    if not count:
        return np.zeros((1, 1), dtype=np.uint8)
    blank = ~np.isfinite(values)
    share = nearness(scale.share(np.where(blank, scale.low, values)), unit)
    level = np.rint(share * (STEPS - 1)).astype(np.uint8) + 1
    level[blank] = 0
    side = max(4, min(16, 640 // count))
    pixels = np.kron(level, np.ones((side, side), dtype=np.uint8)).astype(np.uint8)
    marks = np.kron(unsettled, np.eye(side, dtype=bool)[::-1]).astype(bool)
    on_bright = np.kron(share > 0.6, np.ones((side, side), dtype=bool)).astype(bool)
    pixels[marks & on_bright] = _MARK_DARK
    pixels[marks & ~on_bright] = _MARK_BRIGHT
    return pixels


def _png(pixels: npt.NDArray[np.uint8]) -> bytes:
    """A PNG with a palette (W3C PNG, 11.2); colour 0 is transparent."""
    palette = [(0, 0, 0)]
    palette += [colour(step / (STEPS - 1)) for step in range(STEPS)]
    palette += [(0, 0, 0), (255, 255, 255)]
    height, width = pixels.shape
    rows = np.hstack([np.zeros((height, 1), dtype=np.uint8), pixels])  # filter: none
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", bytes(part for one in palette for part in one)),
        (b"tRNS", b"\0"),
        (b"IDAT", zlib.compress(rows.tobytes(), 6)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def _frames(arrangement: Arrangement, cell: float) -> list[str]:
    chiplets = "".join(
        f"M{_LEFT + one.start * cell:.2f} {_TOP + one.start * cell:.2f}"
        f"h{(one.stop - one.start) * cell:.2f}v{(one.stop - one.start) * cell:.2f}"
        f"h-{(one.stop - one.start) * cell:.2f}z"
        for one in arrangement.chiplets
    )
    crosses = "".join(
        f"M{_LEFT + edge * cell:.2f} {_TOP:g}v{_SIDE:g}"
        f"M{_LEFT:g} {_TOP + edge * cell:.2f}h{_SIDE:g}"
        for edge in sorted({one.start for one in arrangement.packages[1:]})
    )
    return [
        path(shape, kind) for shape in (chiplets, crosses) if shape for kind in ("under", "over")
    ]


def _tips(
    arrangement: Arrangement,
    values: Array,
    unsettled: npt.NDArray[np.bool_],
    cell: float,
    unit: Unit,
) -> list[str]:
    """A tooltip for every pair of groups, for readers who cannot tell the colours apart."""
    groups, name = (
        (arrangement.chiplets, "chiplet")
        if arrangement.chiplets
        else (arrangement.packages, "package")
    )
    if len(groups) > _MOST_TIPS:
        return []
    tips = []
    for row, column in product(groups, groups):
        where = (slice(row.start, row.stop), slice(column.start, column.stop))
        block = values[where][np.isfinite(values[where])]
        if not len(block):
            continue
        median_settled = 2 * int(unsettled[where].sum()) <= len(block)
        low, middle, high = np.percentile(block, (5, 50, 95))
        pair = (
            f"within {name} {row.number}"
            if row == column
            else f"{name} {row.number} to {column.number}"
        )
        tips.append(
            rect(
                _LEFT + column.start * cell,
                _TOP + row.start * cell,
                (column.stop - column.start) * cell,
                (row.stop - row.start) * cell,
                "clear",
                f"{pair}: median {figure(middle, unit, settled=median_settled)}, "
                f"5 to 95 %: {number_range(low, high)}",
            )
        )
    return tips


def _pu_axes(arrangement: Arrangement, cell: float, axes: tuple[str, str]) -> list[str]:
    """PU numbers: the first of each group if there is room, otherwise in round steps."""
    count = len(arrangement.pus)
    groups = arrangement.chiplets or arrangement.packages
    starts = [one.start for one in groups]
    room = max(1, int(24 // cell) + 1)
    if len(starts) < 2 or any(b - a < room for a, b in pairwise(starts)):
        steps = (1, 2, 4, 5, 8, 10, 16, 20, 32, 64, 128, 256, 512, room)
        starts = list(range(0, count, next(step for step in steps if step >= room)))
    parts = []
    for start in starts:
        at = (start + 0.5) * cell
        pu = str(arrangement.pus[start])
        parts.append(text(_LEFT + at, _TOP - 8, pu, "soft small", "middle"))
        parts.append(text(_LEFT - 8, _TOP + at + 4, pu, "soft small", "end"))
    middle = _SIDE / 2
    parts.append(text(_LEFT + middle, _TOP - 24, axes[1], "soft", "middle"))
    parts.append(text(_LEFT - 48, _TOP + middle, axes[0], "soft", "middle", -90))
    foot = _TOP + _SIDE + 22
    if groups:
        named = [
            plural(len(some), word)
            for some, word in ((arrangement.packages, "package"), (arrangement.chiplets, "chiplet"))
            if some
        ]
        order = f"PUs ordered by inferred group: {', '.join(named)}; the first has PUs " + cut(
            format_cpulist(arrangement.pus[groups[0].start : groups[0].stop]), 40
        )
    else:
        order = "PUs in the kernel's order: no chiplets or packages were inferred"
    parts.append(text(_LEFT, foot, order, "soft small"))
    axes_note = "Axes: the kernel's CPU numbers. Blank: not measured."
    parts.append(text(_LEFT, foot + 18, axes_note, "soft small"))
    return parts


def _legend(scale: Scale, unit: Unit) -> str:
    """A bar of the colours with round figures; near is at the top."""
    x, height, steps = _LEFT + _SIDE + 34, 300.0, 60
    parts = [text(x, _TOP + 6, unit, "bold")]
    top = _TOP + 20
    for step in range(steps):
        fill = hex_colour((step + 0.5) / steps)
        y = top + step * height / steps
        parts.append(rect(x, y, 22, height / steps + 0.6, "", fill=fill))
    for tick in log_ticks(scale, 9):
        share = scale.at(tick)
        y = top + (share if unit == "ns" else 1 - share) * height
        parts.append(line(x + 22, y, x + 27, y, "axis"))
        parts.append(text(x + 31, y + 4, tick_label(tick), "small"))
    y = top + height + 24
    parts.append(text(x, y, "dark: near", "soft small"))
    parts.append(text(x, y + 16, "bright: far", "soft small"))
    return "".join(parts)


# ---- Nodes ----------------------------------------------------------------------------------


def _node_grid(
    nodes: NodeMatrix,
    grid: Sequence[Sequence[Figure | None]],
    title: str,
    unit: Unit,
    wide: float,
    at: tuple[float, float],
) -> str:
    values = np.array(
        [[cell.value if cell else np.nan for cell in row] for row in grid], dtype=np.float64
    ).reshape(len(nodes.cpu_nodes), len(nodes.memory_nodes))
    scale = colour_scale(values)
    left, top = at[0] + _GRID_LEFT, at[1] + 36
    parts = [text(left, at[1] + 10, title, "bold")]
    for column, node in enumerate(nodes.memory_nodes):
        name = f"memory {node}" if wide > 60 else str(node)
        parts.append(text(left + (column + 0.5) * wide, top - 8, name, "soft small", "middle"))
    for row, node in enumerate(nodes.cpu_nodes):
        y = top + row * _ROW
        parts.append(text(left - 8, y + _ROW / 2 + 3, f"CPUs of {node}", "soft small", "end"))
        for column, cell in enumerate(grid[row]):
            x = left + column * wide
            if cell is None:
                parts.append(rect(x, y, wide - 2, _ROW - 2, "blank", "not measured"))
                continue
            share = float(nearness(scale.share(values[row, [column]]), unit)[0])
            tip = (
                f"CPUs of node {node}, memory of node {nodes.memory_nodes[column]}: "
                f"{described(cell, unit)}"
            )
            fill = hex_colour(share)
            parts.append(rect(x, y, wide - 2, _ROW - 2, "", tip, rx=3, fill=fill))
            kind = "onbright bold" if bright(share) else "ondark bold"
            parts.append(text(x + wide / 2, y + _ROW / 2 + 3, marked(cell), kind, "middle"))
    return "".join(parts)
