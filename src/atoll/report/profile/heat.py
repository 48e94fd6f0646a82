"""Heat maps of a profile: one cell for every ordered pair of PUs, and for every pair of nodes.

Pure. The map of pairs is a small paletted PNG inside the SVG, since 384 PUs are 147,456 cells,
which as elements would be a file that no browser likes; all around it is text and lines. What
was not measured is blank; what did not settle has a stroke through its cell. Groups that were
inferred are framed: chiplets on the diagonal, packages by a cross over the whole map.
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
from atoll.report.svg import scale as scales
from atoll.report.svg.picture import WIDTH, Picture, escaped, heading, line, rect, text
from atoll.report.svg.scale import Array, Unit
from atoll.schema.cpulist import format_cpulist
from atoll.schema.profile import Figure, Inference, NodeMatrix, PairMatrix

_LEFT, _TOP, _SIDE = 84.0, 104.0, 520.0
_GRID_LEFT, _ROW = 92.0, 36.0
_MOST_TIPS = 24  # groups: every two of them have a tooltip
_MARK_DARK, _MARK_BRIGHT = scales.STEPS + 1, scales.STEPS + 2


def pair_picture(
    matrix: PairMatrix,
    inference: Inference | None,
    *,
    title: str,
    unit: Unit,
    axes: tuple[str, str],
    scale: scales.Scale | None = None,
) -> Picture:
    """`axes` says what a row is and what a column is. `scale`: one that other maps share."""
    found = arrange(inference, matrix.pus)
    values, unsettled = ordered(matrix, found)
    scale = scale or scales.colour_scale(values, flat=is_flat(inference, unit))
    count = len(found.pus)
    cell = _SIDE / max(count, 1)
    image = base64.b64encode(_png(_pixels(values, unsettled, scale, unit))).decode()
    parts = [
        heading(title, _subtitle(values, unsettled, unit)),
        rect(_LEFT, _TOP, _SIDE, _SIDE, "blank"),
        f'<image x="{_LEFT:g}" y="{_TOP:g}" width="{_SIDE:g}" height="{_SIDE:g}" '
        f'preserveAspectRatio="none" href="data:image/png;base64,{image}"/>',
        *_frames(found, cell),
        *_tips(found, values, cell, unit),
        *_pu_axis(found, cell, axes),
        _legend(scale, unit),
    ]
    return Picture(title, WIDTH, _TOP + _SIDE + 56, "".join(parts))


def node_picture(nodes: NodeMatrix) -> Picture:
    """Latency and bandwidth between nodes, the figures written into the cells."""
    wide = min(100.0, (WIDTH - 140) / max(len(nodes.memory_nodes), 1))
    side_by_side = _GRID_LEFT + len(nodes.memory_nodes) * wide <= WIDTH / 2
    tall = 44 + len(nodes.cpu_nodes) * _ROW
    right, below = (WIDTH / 2, 0.0) if side_by_side else (0.0, tall)
    height = 64 + (tall if side_by_side else 2 * tall) + 16
    page = "huge pages" if nodes.huge_pages else "small pages"
    parts = [
        heading("Memory by node",
                "latency: one idle PU follows dependent loads; bandwidth: one PU of each core "
                f"reads; {page}"),
        _node_grid(nodes, nodes.latency_ns, "Latency, ns", "ns", wide, (0, 64)),
        _node_grid(nodes, nodes.bandwidth_gbs, "Bandwidth, GB/s", "GB/s", wide,
                   (right, 64 + below)),
        text(16, height - 6, "~ did not settle. Blank: not measured.", "soft small"),
    ]  # fmt: skip
    return Picture("Memory by node", WIDTH, height, "".join(parts))


# ---- Pairs of PUs ---------------------------------------------------------------------------


def is_flat(inference: Inference | None, unit: Unit) -> bool:
    """No groups show in figures of this unit."""
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
    words = (
        f"{scales.number(low)} to {scales.figure_words(high, unit)}, "
        f"median {scales.figure_words(middle, unit)}, {measured:,} pairs"
    )
    loose = int(unsettled.sum())
    return words + (f"; ~ {loose:,} did not settle (stroke through the cell)" if loose else "")


def _pixels(
    values: Array, unsettled: npt.NDArray[np.bool_], scale: scales.Scale, unit: Unit
) -> npt.NDArray[np.uint8]:
    """Indices of colours; each cell is a square of pixels, so that smoothing viewers stay crisp."""
    count = len(values)
    if not count:
        return np.zeros((1, 1), dtype=np.uint8)
    blank = ~np.isfinite(values)
    share = scales.nearness(scale.share(np.where(blank, scale.low, values)), unit)
    level = np.rint(share * (scales.STEPS - 1)).astype(np.uint8) + 1
    level[blank] = 0
    side = max(4, min(16, 640 // count))
    pixels = np.kron(level, np.ones((side, side), dtype=np.uint8)).astype(np.uint8)
    marks = np.kron(unsettled, np.eye(side, dtype=bool)[::-1]).astype(bool)
    on_bright = np.kron(share > 0.6, np.ones((side, side), dtype=bool)).astype(bool)
    pixels[marks & on_bright] = _MARK_DARK
    pixels[marks & ~on_bright] = _MARK_BRIGHT
    return pixels


def _png(pixels: npt.NDArray[np.uint8]) -> bytes:
    """A paletted PNG (W3C PNG, 11.2); colour 0 is transparent."""
    palette = [(0, 0, 0)]
    palette += [scales.colour(step / (scales.STEPS - 1)) for step in range(scales.STEPS)]
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


def _frames(found: Arrangement, cell: float) -> list[str]:
    chiplets = "".join(
        f"M{_LEFT + one.start * cell:.2f} {_TOP + one.start * cell:.2f}"
        f"h{(one.stop - one.start) * cell:.2f}v{(one.stop - one.start) * cell:.2f}"
        f"h-{(one.stop - one.start) * cell:.2f}z"
        for one in found.chiplets
    )
    edges = sorted({one.start for one in found.packages[1:]})
    crosses = "".join(
        f"M{_LEFT + edge * cell:.2f} {_TOP:g}v{_SIDE:g}"
        f"M{_LEFT:g} {_TOP + edge * cell:.2f}h{_SIDE:g}"
        for edge in edges
    )
    return [f'<path class="{kind}" d="{shape}"/>' for shape in (chiplets, crosses) if shape
            for kind in ("under", "over")]  # fmt: skip


def _tips(found: Arrangement, values: Array, cell: float, unit: Unit) -> list[str]:
    """A tooltip for every two groups: the figures without reading colours."""
    groups, name = (found.chiplets, "chiplet") if found.chiplets else (found.packages, "package")
    if not 0 < len(groups) <= _MOST_TIPS:
        return []
    tips = []
    for row, column in product(groups, groups):
        block = values[row.start : row.stop, column.start : column.stop]
        block = block[np.isfinite(block)]
        if not len(block):
            continue
        low, middle, high = np.percentile(block, (5, 50, 95))
        words = f"{name} {row.number} to {column.number}" if row != column else (
            f"within {name} {row.number}")  # fmt: skip
        tips.append(
            rect(_LEFT + column.start * cell, _TOP + row.start * cell,
                 (column.stop - column.start) * cell, (row.stop - row.start) * cell, "clear",
                 f"{words}: median {scales.figure_words(middle, unit)}, 5 to 95 %: "
                 f"{scales.number(low)} to {scales.number(high)}")
        )  # fmt: skip
    return tips


def _pu_axis(found: Arrangement, cell: float, axes: tuple[str, str]) -> list[str]:
    """PU numbers, thinned: the first of each group, else round steps."""
    count = len(found.pus)
    starts = [one.start for one in found.chiplets or found.packages]
    room = max(1, int(24 // cell) + 1)
    if len(starts) < 2 or any(b - a < room for a, b in pairwise(starts)):
        step = next(s for s in (1, 2, 4, 5, 8, 10, 16, 20, 32, 64, 128, 256, 512, room, count)
                    if s >= room)  # fmt: skip
        starts = list(range(0, count, step))
    parts = []
    for start in starts:
        at = (start + 0.5) * cell
        pu = str(found.pus[start])
        parts.append(text(_LEFT + at, _TOP - 8, pu, "soft small", "middle"))
        parts.append(text(_LEFT - 8, _TOP + at + 4, pu, "soft small", "end"))
    middle = _SIDE / 2
    parts.append(text(_LEFT + middle, _TOP - 24, axes[1], "soft", "middle"))
    parts.append(text(_LEFT - 48, _TOP + middle, axes[0], "soft", "middle", -90))
    foot = _TOP + _SIDE + 22
    if found.chiplets or found.packages:
        named = [
            f"{len(groups)} {word}{'s' if len(groups) != 1 else ''}"
            for groups, word in ((found.packages, "package"), (found.chiplets, "chiplet"))
            if groups
        ]
        first = (found.chiplets or found.packages)[0]
        words = (
            f"Ordered and framed as inferred: {', '.join(named)}; the first holds PUs "
            f"{_brief(found.pus[first.start : first.stop])}"
        )
    else:
        words = "PUs in the kernel's order: no chiplets and no packages were inferred"
    parts.append(text(_LEFT, foot, words, "soft small"))
    parts.append(text(_LEFT, foot + 18, "Axes: the kernel's CPU numbers. Blank: not measured.",
                      "soft small"))  # fmt: skip
    return parts


def _brief(pus: Sequence[int]) -> str:
    words = format_cpulist(pus)
    return words if len(words) <= 40 else f"{words[:37]}..."


def _legend(scale: scales.Scale, unit: Unit) -> str:
    """A bar of the colours with round figures; near is above."""
    x, height, steps = _LEFT + _SIDE + 34, 300.0, 60
    parts = [text(x, _TOP + 6, unit, "ink bold")]
    top = _TOP + 20
    for step in range(steps):
        share = (step + 0.5) / steps
        parts.append(
            f'<rect x="{x:g}" y="{top + step * height / steps:.1f}" width="22" '
            f'height="{height / steps + 0.6:.1f}" fill="{scales.hex_colour(share)}"/>'
        )
    for tick in scales.log_ticks(scale, 9):
        at = scale.at(tick)
        y = top + (at if unit == "ns" else 1 - at) * height
        parts.append(line(x + 22, y, x + 27, y, "axis"))
        parts.append(text(x + 31, y + 4, scales.tick_words(tick), "ink small"))
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
    scale = scales.colour_scale(values)
    left, top = at[0] + _GRID_LEFT, at[1] + 36
    parts = [text(left, at[1] + 10, title, "ink bold")]
    for column, node in enumerate(nodes.memory_nodes):
        words = f"memory {node}" if wide > 60 else str(node)
        parts.append(text(left + (column + 0.5) * wide, top - 8, words, "soft small", "middle"))
    for row, node in enumerate(nodes.cpu_nodes):
        y = top + row * _ROW
        parts.append(text(left - 8, y + _ROW / 2 + 3, f"CPUs of {node}", "soft small", "end"))
        for column, cell in enumerate(grid[row]):
            x = left + column * wide
            if cell is None:
                parts.append(rect(x, y, wide - 2, _ROW - 2, "blank", "not measured"))
                continue
            share = float(scales.nearness(scale.share(values[row, [column]]), unit)[0])
            tip = (
                f"CPUs of node {node}, memory of node {nodes.memory_nodes[column]}: "
                f"{scales.figure_words(cell.value, unit)}, interval "
                f"{scales.number(cell.low)} to {scales.number(cell.high)}"
                + ("" if cell.settled else ", did not settle")
            )
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide - 2:.1f}" height="{_ROW - 2:.1f}" '
                f'rx="3" fill="{scales.hex_colour(share)}"><title>{escaped(tip)}</title></rect>'
            )
            kind = "onbright" if scales.bright(share) else "ondark"
            words = ("" if cell.settled else "~") + scales.number(cell.value)
            parts.append(text(x + wide / 2, y + _ROW / 2 + 3, words, f"{kind} bold", "middle"))
    return "".join(parts)
