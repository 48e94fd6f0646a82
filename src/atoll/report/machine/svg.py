"""The machine as SVG: chiplets as islands in their packages, and a plan on them in colours. Pure.

On the picture of a plan every core has the colour and the number of its slot; the numbers are for
readers who cannot tell the colours apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup

from atoll.report.machine.layout import (
    CoreCell,
    Island,
    MachineLayout,
    NodeArea,
    PackageArea,
    counts,
    facts,
    lay_out,
    node_label,
)
from atoll.report.svg.elements import LETTER, Picture, document, moved, path, rect, text
from atoll.report.svg.palette import SLOTS
from atoll.schema.cpulist import format_cpulist
from atoll.schema.machine import Machine
from atoll.schema.size import gib
from atoll.schema.text import plural

if TYPE_CHECKING:
    from atoll.schema.plan import Plan, Slot

DOT = " · "
CELL = 18  # a core
GAP = 3  # between cores
PAD = 8  # inside an island
HEAD = 16  # a caption's height
_LINE = HEAD + 3  # of text above and below the packages
SPACE = 10  # between islands, nodes and packages
WIDEST = 1080  # a row of packages


class _Paint(NamedTuple):
    """How a core is drawn: its class, the text on it, a note for its tooltip."""

    kind: str
    text: str = ""
    note: str = ""


Painter = Callable[[CoreCell], _Paint]


class _Piece(NamedTuple):
    """A drawn part: elements at its own origin."""

    width: float
    height: float
    body: str


def machine_svg(machine: Machine) -> Markup:
    """The machine as a stand-alone SVG; cores that this process may not use are empty."""
    picture = machine_drawing(machine)
    return document([picture], picture.name)


def machine_drawing(machine: Machine) -> Picture:
    layout = lay_out(machine)
    size = DOT.join(counts(machine))
    head = [(machine.title, "title"), (size, "soft")]
    tail = [(f"{name}: {words}", "soft") for name, words in facts(machine, layout, DOT)]
    return _drawing(layout, _unplanned, f"{machine.title}, {size}", head, tail)


def plan_drawing(machine: Machine, plan: Plan) -> Picture:
    """The plan on the machine: each core in the colour and with the number of its slot."""
    slot_of: dict[int, Slot] = {}
    for slot in plan.slots:
        slot_of |= dict.fromkeys(slot.cpus or machine.allowed.pus, slot)
    place = plan.coordinator
    reserved = (place.cpus if place and place.kind == "reserved" else ()) or ()

    def paint(cell: CoreCell) -> _Paint:
        if not set(cell.pus).isdisjoint(reserved):
            return _Paint("own", "C", "coordinator")
        slot = next((slot_of[pu] for pu in cell.pus if pu in slot_of), None)
        if slot is None or cell.allowed == "none":
            return _unplanned(cell)
        return _Paint(f"core s{slot.index % SLOTS}", str(slot.index), f"slot {slot.index}")

    return _drawing(lay_out(machine), paint, f"{plan.engine} under {plan.policy}")


def plan_label(plan: Plan) -> str:
    """'4 instances · 128 threads · 96 GiB of heap in total'."""
    mask = "" if plan.slots[0].cpus is not None else ", no mask"
    threads = plural(plan.total_threads, "thread")
    heap = f"{gib(plan.total_heap_bytes)} of heap in total"
    return DOT.join((plural(len(plan.slots), "instance") + mask, threads, heap))


def _unplanned(cell: CoreCell) -> _Paint:
    match cell.allowed:
        case "all":
            return _Paint("core")
        case "some":
            return _Paint("partly", "", "some threads are not allowed")
        case "none":
            return _Paint("barred", "", "not allowed")


def _drawing(
    layout: MachineLayout,
    paint: Painter,
    name: str,
    head: Sequence[tuple[str, str]] = (),
    tail: Sequence[tuple[str, str]] = (),
) -> Picture:
    """The packages between lines of text, each with its class."""
    # Islands of one size line up whatever their captions.
    least = max(_width(_caption(i)) for area in layout.packages for i in area.islands)
    packages = [_package(area, paint, least) for area in layout.packages]
    across = max(1, int(WIDEST // (max(piece.width for piece in packages) + SPACE)))
    body = _rows(packages, across)
    width = max([body.width, *(_width(*line) for line in (*head, *tail))]) + 2 * SPACE
    top = SPACE + (len(head) * _LINE + 6 if head else 0)
    bottom = top + body.height + 4
    parts = [text(SPACE, SPACE + HEAD + n * _LINE, *words) for n, words in enumerate(head)]
    parts += [text(SPACE, bottom + HEAD + n * _LINE, *words) for n, words in enumerate(tail)]
    parts.append(moved(SPACE, top, body.body))
    height = bottom + len(tail) * _LINE + SPACE
    return Picture(name, width, height, "".join(parts))


def _width(words: str, kind: str = "") -> float:
    return LETTER * len(words) * (1.3 if kind == "title" else 1)


# ---- Packages, nodes, islands ---------------------------------------------------------------


def _package(area: PackageArea, paint: Painter, least: float) -> _Piece:
    name = area.name
    if len(area.nodes) == 1:
        label = node_label(area.nodes[0].node, DOT, area.package)
        name += DOT + label if label else ""
        inner = _grid([_island(island, paint, least) for island in area.islands])
    else:
        inner = _grid([_node(node, area, paint, least) for node in area.nodes])
    if area.shared_l3_bytes:
        name += f"{DOT}L3 {gib(area.shared_l3_bytes)} shared"
    return _framed(inner, name, "package", 12)


def _node(area: NodeArea, package: PackageArea, paint: Painter, least: float) -> _Piece:
    inner = _grid([_island(island, paint, least) for island in area.islands])
    return _framed(inner, node_label(area.node, DOT, package.package) or "no node", "node", 9)


def _island(island: Island, paint: Painter, least: float) -> _Piece:
    columns = _columns(len(island.cells))
    step = CELL + GAP
    body = "".join(
        moved((n % columns) * step, (n // columns) * step, _core(cell, paint(cell)))
        for n, cell in enumerate(island.cells)
    )
    rows = math.ceil(len(island.cells) / columns)
    cores = _Piece(max(least, columns * step - GAP), rows * step - GAP, body)
    loose = island.chiplet is None
    name = "cores in no chiplet" if loose else f"chiplet {island.chiplet}"
    tip = f"{name}, CPUs {format_cpulist(island.pus)}"
    return _framed(cores, _caption(island), "loose" if loose else "island", 8, tip)


def _caption(island: Island) -> str:
    name = "cores" if island.chiplet is None else str(island.chiplet)
    return f"{name}{DOT}L3 {gib(island.l3_bytes)}" if island.l3_bytes else name


def _columns(cores: int) -> int:
    """Cores in a row: 8 are 4 x 2, 14 are 5 x 3, 64 are 11 x 6."""
    return max(2, math.ceil(math.sqrt(cores * 1.75)))


def _core(cell: CoreCell, paint: _Paint) -> str:
    name = f"core {cell.core}, CPUs {format_cpulist(cell.pus)}"
    tip = f"{name}, {paint.note}" if paint.note else name
    marks = ""
    if paint.text:
        kind = "tiny onown" if paint.kind == "own" else "tiny"
        marks = text(CELL / 2, CELL / 2 + 3.2, paint.text, kind, "middle")
    elif len(cell.pus) > 1 and paint.kind == "core":  # SMT: lines divide the threads
        step = CELL / len(cell.pus)
        lines = (f"M{step * n:g} 3v{CELL - 6}" for n in range(1, len(cell.pus)))
        marks = path("".join(lines), "thread")
    return rect(0, 0, CELL, CELL, paint.kind, tip, rx=4) + marks


# ---- Boxes ----------------------------------------------------------------------------------


def _framed(inner: _Piece, caption: str, kind: str, radius: int, tip: str = "") -> _Piece:
    """`inner` in a rounded box under a caption."""
    width = max(inner.width, _width(caption)) + 2 * PAD
    height = inner.height + 2 * PAD + HEAD
    body = (
        rect(0, 0, width, height, kind, tip, rx=radius)
        + text(PAD, PAD + 9, caption, "soft" if kind in ("island", "loose") else "")
        + moved(PAD, PAD + HEAD, inner.body)
    )
    return _Piece(width, height, body)


def _grid(pieces: Sequence[_Piece]) -> _Piece:
    """Pieces in rows of equal number, wider than high, and without holes if possible."""
    wide = max(piece.width for piece in pieces) + SPACE
    tall = max(piece.height for piece in pieces) + SPACE

    def cost(across: int) -> float:
        rows = math.ceil(len(pieces) / across)
        holes = (rows * across - len(pieces)) / len(pieces)
        return abs(math.log(across * wide / (rows * tall) / 1.7)) + 6 * holes

    most = max(1, int((WIDEST / 2) // wide))
    return _rows(pieces, min(range(1, min(most, len(pieces)) + 1), key=cost))


def _rows(pieces: Sequence[_Piece], across: int) -> _Piece:
    wide = max(piece.width for piece in pieces)
    body: list[str] = []
    width = y = 0.0
    for start in range(0, len(pieces), across):
        row = pieces[start : start + across]
        for column, piece in enumerate(row):
            body.append(moved(column * (wide + SPACE), y, piece.body))
        width = max(width, (len(row) - 1) * (wide + SPACE) + row[-1].width)
        y += max(piece.height for piece in row) + SPACE
    return _Piece(width, y - SPACE, "".join(body))
