"""The machine's picture for a terminal: islands of cores, a 256-core machine on one screen. Pure.

The picture is lines of styled spans, which the command line prints with or without colour. It has
as much detail as fits the screen: boxes with CPU numbers and L3 sizes, else small boxes, else one
line for each row of chiplets, else small packages side by side. It does without rich, whose import
takes a large part of the time budget of `atoll topo`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple

from atoll.report.machine.layout import (
    CoreCell,
    Island,
    MachineLayout,
    PackageArea,
    counts,
    facts,
    lay_out,
    node_label,
)
from atoll.schema.cpulist import format_cpulist
from atoll.schema.machine import Machine
from atoll.schema.size import gib
from atoll.schema.text import plural


class Style(Enum):
    PLAIN = "plain"
    TITLE = "title"
    LABEL = "label"
    ISLAND = "island"  # the border of a chiplet
    LOOSE = "loose"  # the border of cores outside any chiplet
    CORE = "core"
    DIM = "dim"
    # Of live views.
    BUSY = "busy"
    DRIFT = "drift"
    SELECTED = "selected"


class Span(NamedTuple):
    text: str
    style: Style = Style.PLAIN


Line = list[Span]


CorePainter = Callable[[CoreCell], Span]


class Glyphs(NamedTuple):
    """The characters of the picture; `paint`, if given, draws the cores instead."""

    island: str  # corners from the upper left clockwise, then the horizontal and vertical lines
    loose: str
    core: str
    threads: str  # a core with several threads
    partly: str  # a core with some of its threads allowed
    barred: str
    dot: str
    paint: CorePainter | None = None


UNICODE = Glyphs("╭╮╯╰─│", "┌┐┘└╌┆", "■", "▣", "◧", "□", " · ")
ASCII = Glyphs("..''-|", "++++-:", "o", "8", "c", "-", ", ")


class _Detail(NamedTuple):
    labels: bool  # CPU numbers and L3 size on the box
    boxes: bool
    gap: str  # between cores


_DETAILS = (_Detail(True, True, " "), _Detail(False, True, ""), _Detail(False, False, ""))


def machine_picture(
    machine: Machine, *, width: int = 80, height: int = 48, ascii_only: bool = False
) -> list[Line]:
    """The picture, at most `width` columns, and at most `height` lines if possible."""
    glyphs = ASCII if ascii_only else UNICODE
    layout = lay_out(machine)
    head, foot = _head(machine, glyphs), _foot(machine, layout, glyphs)
    body = _packages(layout, glyphs, width, height - len(head) - len(foot))
    lines = [*head, *body, *foot]
    return [piece for line in lines for piece in _wrap(line, width)]


def cores_picture(
    machine: Machine, paint: CorePainter, *, width: int, height: int, ascii_only: bool = False
) -> list[Line]:
    """The packages alone, each core drawn by `paint` as one character."""
    glyphs = (ASCII if ascii_only else UNICODE)._replace(paint=paint)
    return _packages(lay_out(machine), glyphs, width, height)


def _packages(layout: MachineLayout, glyphs: Glyphs, width: int, height: int) -> list[Line]:
    body: list[Line] = []
    for detail in _DETAILS:
        body = [line for area in layout.packages for line in _package(area, glyphs, detail, width)]
        if len(body) <= height:
            return body
    if len(layout.packages) > 1 and all(len(area.islands) == 1 for area in layout.packages):
        body = _side_by_side(layout.packages, glyphs, width)
    return body


# ---- Around the islands -------------------------------------------------------------------


def _head(machine: Machine, glyphs: Glyphs) -> list[Line]:
    names = [machine.title, machine.architecture]
    return [
        [Span(glyphs.dot.join(name for name in names if name), Style.TITLE)],
        [Span(glyphs.dot.join(counts(machine)))],
    ]


def _foot(machine: Machine, layout: MachineLayout, glyphs: Glyphs) -> list[Line]:
    offline = machine.offline_cpus and f"CPUs {format_cpulist(machine.offline_cpus)}"
    named = [
        *facts(machine, layout, glyphs.dot),
        ("offline", offline),
        ("allowed", _allowed(machine)),
        ("legend", _legend(layout, glyphs)),
    ]
    return [[Span(f"{name:<12}", Style.LABEL), Span(text)] for name, text in named if text]


def _allowed(machine: Machine) -> str:
    """What the mask and the cgroup leave to this process; '' if that is the whole machine."""
    allowed = machine.allowed
    parts = []
    if set(allowed.pus) != set(machine.pus):
        parts.append(f"CPUs {format_cpulist(allowed.pus) or 'none'}")
    if set(allowed.nodes) != {node.os_index for node in machine.nodes}:
        parts.append(f"memory of nodes {format_cpulist(allowed.nodes) or 'none'}")
    if allowed.memory_max_bytes is not None:
        parts.append(f"{gib(allowed.memory_max_bytes)} of memory (cgroup)")
    return ", ".join(parts)


def _legend(layout: MachineLayout, glyphs: Glyphs) -> str:
    islands = [island for area in layout.packages for island in area.islands]
    cells = [cell for island in islands for cell in island.cells]
    drawn = {_glyph(cell, glyphs) for cell in cells}
    threads = max((len(cell.pus) for cell in cells), default=1)
    words = (
        (glyphs.core, "core"),
        (glyphs.threads, f"core with {threads} threads"),
        (glyphs.partly, "core with some threads allowed"),
        (glyphs.barred, "core not allowed"),
    )
    legend = [f"{glyph} {text}" for glyph, text in words if glyph in drawn]
    if any(island.chiplet is not None for island in islands):
        legend.append("a box with round corners is a chiplet, with its number")
    return "  ".join(legend)


# ---- Islands ------------------------------------------------------------------------------


def _package(area: PackageArea, glyphs: Glyphs, detail: _Detail, width: int) -> list[Line]:
    """A line that names the package, then its nodes."""
    own = sorted({island.l3_bytes for island in area.islands})
    extras = [plural(sum(len(island.cells) for island in area.islands), "core")]
    if area.shared_l3_bytes:
        extras.append(f"L3 {gib(area.shared_l3_bytes)} shared")
    elif not detail.labels and own[-1]:
        extras.append("L3 " + " or ".join(gib(size) for size in own if size) + " each")
    labels = [node_label(node.node, glyphs.dot, area.package) for node in area.nodes]
    if len(area.nodes) == 1:
        words = [*labels, *extras]
        if not detail.labels:
            words.append(f"CPUs {format_cpulist(pu for i in area.islands for pu in i.pus)}")
        names = [""] * len(area.islands)
        return [
            _named(area.name, words, glyphs),
            *_flow(area.islands, names, glyphs, detail, width),
        ]
    heading = _named(area.name, [plural(len(area.nodes), "NUMA node"), *extras], glyphs)
    if all(len(node.islands) == 1 for node in area.nodes):
        # The node is the island, or has only one: the box gets its name.
        return [heading, *_flow(area.islands, labels, glyphs, detail, width)]
    lines = [heading]
    for node, label in zip(area.nodes, labels, strict=True):
        lines.append(_named("", [label], glyphs))
        lines += _flow(node.islands, [""] * len(node.islands), glyphs, detail, width)
    return lines


def _side_by_side(areas: Sequence[PackageArea], glyphs: Glyphs, width: int) -> list[Line]:
    """Many small packages, each with its number only: some servers have 64 sockets."""
    islands = [area.islands[0] for area in areas]
    cores = " or ".join(str(count) for count in sorted({len(i.cells) for i in islands}))
    sizes = sorted({island.l3_bytes for island in islands} - {0})
    extras = [f"{cores} {'core' if cores == '1' else 'cores'} each"]
    if sizes:
        extras.append("L3 " + " or ".join(map(gib, sizes)) + " each")
    names = ["-" if area.package is None else str(area.package.index) for area in areas]
    heading = _named("packages, by number", extras, glyphs)
    return [heading, *_flow(islands, names, glyphs, _DETAILS[-1], width)]


def _named(name: str, words: Sequence[str], glyphs: Glyphs) -> Line:
    text = glyphs.dot.join(word for word in words if word)
    return [Span(name + glyphs.dot if name else "", Style.LABEL), Span(text)]


class _Box(NamedTuple):
    title: str
    size: str
    rows: list[list[CoreCell]]
    footer: str
    chiplet: bool


def _flow(
    islands: Sequence[Island], names: Sequence[str], glyphs: Glyphs, detail: _Detail, width: int
) -> list[Line]:
    """Islands side by side, as many as fit a line, in rows of equal length."""
    boxes = [
        _box(island, name, glyphs, detail, width)
        for island, name in zip(islands, names, strict=True)
    ]
    inner = min(width - 2, max(_inner_width(box, detail) for box in boxes))
    gap = 1
    fit = max(1, (width + gap) // (inner + 2 + gap))
    rows = -(-len(boxes) // fit)
    across = -(-len(boxes) // rows)
    draw = _draw_box if detail.boxes else _draw_inline
    lines: list[Line] = []
    for start in range(0, len(boxes), across):
        shown = boxes[start : start + across]
        tall = max(len(box.rows) for box in shown)
        columns = [draw(box, inner, tall, glyphs, detail) for box in shown]
        for parts in zip(*columns, strict=True):
            line: Line = []
            for part in parts:
                line += [Span(" " * gap), *part] if line else part
            lines.append(line)
    return lines


def _box(island: Island, name: str, glyphs: Glyphs, detail: _Detail, width: int) -> _Box:
    title = "" if island.chiplet is None else str(island.chiplet)
    if detail.labels:
        title = glyphs.dot.join(word for word in (title, name) if word) or "cores"
    else:
        title = title or name.partition(glyphs.dot)[0]
    count = len(island.cells)
    step = 1 + len(detail.gap)
    per_row = count if count <= 16 else min(32, (width - 4) // step)
    return _Box(
        title=title,
        size=f"L3 {gib(island.l3_bytes)}" if detail.labels and island.l3_bytes else "",
        rows=[list(island.cells[at : at + per_row]) for at in range(0, count, per_row)],
        footer=f"CPU {format_cpulist(island.pus)}" if detail.labels else "",
        chiplet=island.chiplet is not None,
    )


def _inner_width(box: _Box, detail: _Detail) -> int:
    step = 1 + len(detail.gap)
    cells = max(len(row) for row in box.rows) * step - len(detail.gap)
    if not detail.boxes:
        return len(box.title) + 1 + cells
    top = len(box.title) + len(box.size) + (6 if box.size else 3)
    return max(cells + 2 * len(detail.gap), top, len(box.footer) + 3 if box.footer else 0)


def _draw_box(box: _Box, inner: int, tall: int, glyphs: Glyphs, detail: _Detail) -> list[Line]:
    a, b, c, d, flat, upright = tuple(glyphs.island if box.chiplet else glyphs.loose)
    style = Style.ISLAND if box.chiplet else Style.LOOSE
    title = f"{flat} {box.title} " if box.title else flat
    size = f" {box.size} " if box.size else ""
    footer = f"{flat} {_cut(box.footer, inner - 3)} " if box.footer else flat
    title = title[:inner]
    fill = flat * max(0, inner - len(title) - len(size))
    lines: list[Line] = [[Span(a + (title + fill + size)[:inner] + b, style)]]
    for number in range(tall):
        row = box.rows[number] if number < len(box.rows) else []
        spans = _cells(row, glyphs, detail)
        used = sum(len(span.text) for span in spans) + len(detail.gap)
        lines.append(
            [
                Span(upright + detail.gap, style),
                *spans,
                Span(" " * max(0, inner - used)),
                Span(upright, style),
            ]
        )
    lines.append([Span(d + footer + flat * (inner - len(footer)) + c, style)])
    return lines


def _draw_inline(box: _Box, inner: int, tall: int, glyphs: Glyphs, detail: _Detail) -> list[Line]:
    lines: list[Line] = []
    for number in range(tall):
        row = box.rows[number] if number < len(box.rows) else []
        label = f"{box.title if number == 0 else '':>{len(box.title)}} "
        spans = _cells(row, glyphs, detail)
        used = len(label) + sum(len(span.text) for span in spans)
        lines.append([Span(label, Style.LABEL), *spans, Span(" " * max(0, inner + 2 - used))])
    return lines


def _cells(row: Sequence[CoreCell], glyphs: Glyphs, detail: _Detail) -> Line:
    """A row of cores; neighbours of one style share a span."""
    spans: Line = []
    for number, cell in enumerate(row):
        mark, style = glyphs.paint(cell) if glyphs.paint else _core(cell, glyphs)
        text = (detail.gap if number else "") + mark
        if spans and spans[-1].style is style:
            spans[-1] = Span(spans[-1].text + text, style)
        else:
            spans.append(Span(text, style))
    return spans


def _core(cell: CoreCell, glyphs: Glyphs) -> Span:
    style = Style.DIM if cell.allowed == "none" else Style.CORE
    return Span(_glyph(cell, glyphs), style)


def _glyph(cell: CoreCell, glyphs: Glyphs) -> str:
    match cell.allowed:
        case "none":
            return glyphs.barred
        case "some":
            return glyphs.partly
        case "all":
            return glyphs.core if len(cell.pus) == 1 else glyphs.threads


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(0, width - 2)] + ".."


def _wrap(line: Line, width: int) -> list[Line]:
    """A line that is too long continues below, indented."""
    *front, last = line
    room = width - sum(len(span.text) for span in front)
    if len(last.text.rstrip()) <= room or room < 20:
        return [line]
    first, *more = textwrap.wrap(last.text, room, break_on_hyphens=False)
    indent = Span(" " * (width - room))
    return [[*front, Span(first, last.style)], *([indent, Span(text)] for text in more)]
