"""The machine as an SVG: chiplets as islands in the water of their package, a plan in colours.

`machine_svg` shows the topology, `plan_svg` the same map with every core in its slot's colour
and with its slot's number (the numbers say it all where colours cannot be told apart). The SVG
is self-contained: no font, script or link from outside; light and dark by media query. Colours
are written out in both themes because not every SVG renderer knows CSS variables. All rules are
scoped by the class of the root, so several pictures can stand in one HTML page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from atoll.report.machine.islands import (
    Block,
    Cell,
    Island,
    Shore,
    chart,
    chiplet_words,
    counted,
    distance_words,
    node_words,
)
from atoll.schema.cpulist import format_cpulist
from atoll.schema.machine import Machine
from atoll.schema.size import gib

if TYPE_CHECKING:
    from atoll.schema.plan import Plan, Slot

DOT = " · "
CELL = 18  # a core
GAP = 3  # between cores
PAD = 8  # inside an island
HEAD = 16  # a caption's height
SPACE = 10  # between islands, nodes and packages
WIDEST = 1080  # a row of packages
LETTER = 6.4  # mean width of a letter of 12 px, since an SVG cannot measure its text

# Twelve hues in an order that keeps neighbours apart: fill in light, fill in dark.
_SLOT_FILLS = (
    ("#8ec9e8", "#1f6f99"),
    ("#f3c77a", "#8f6310"),
    ("#a8d8a0", "#3a7a35"),
    ("#e6a8c8", "#96447a"),
    ("#c5b6ee", "#6450ab"),
    ("#f0a58f", "#9c4a32"),
    ("#8fd6c6", "#1d7d6b"),
    ("#d9d27c", "#77701a"),
    ("#b3c3d6", "#50647d"),
    ("#f2b3b3", "#9a3f49"),
    ("#bfe08a", "#587d1c"),
    ("#d4b598", "#7d5a39"),
)

_LIGHT = {
    ".water": "fill:#e4f1f5;stroke:#b9d8e0",
    ".shore": "fill:#d3e8ee;stroke:#b9d8e0",
    ".island": "fill:#f7f0dc;stroke:#c9b37c",
    ".loose": "fill:#eef2f3;stroke:#9fb2b8",
    ".core": "fill:#4d8f8b;stroke:none",
    ".thread": "stroke:#f7f0dc",
    ".some": "fill:#a9c9c5;stroke:#4d8f8b",
    ".none": "fill:none;stroke:#a9b4b6",
    ".own": "fill:#5b6770;stroke:none",
    "text": "fill:#24343a",
    ".faint": "fill:#5d6f75",
    ".number": "fill:#14242a",
    ".on": "fill:#ffffff",
}
_DARK = {
    ".water": "fill:#10262e;stroke:#254450",
    ".shore": "fill:#16323c;stroke:#254450",
    ".island": "fill:#38321f;stroke:#83713f",
    ".loose": "fill:#1c2a2f;stroke:#566a71",
    ".core": "fill:#62b3ab;stroke:none",
    ".thread": "stroke:#38321f",
    ".some": "fill:#38635f;stroke:#62b3ab",
    ".none": "fill:none;stroke:#5a686c",
    ".own": "fill:#9aa8af;stroke:none",
    "text": "fill:#dbe7ea",
    ".faint": "fill:#9db0b6",
    ".number": "fill:#ffffff",
    ".on": "fill:#0c1a1f",
}


class _Paint(NamedTuple):
    """How a core is drawn: its class, what is written on it, what its tooltip adds."""

    kind: str
    text: str = ""
    note: str = ""


Painter = Callable[[Cell], _Paint]


class _Piece(NamedTuple):
    """A drawn part: elements at its own origin."""

    width: float
    height: float
    body: str


def machine_svg(machine: Machine) -> str:
    """The topology: packages, nodes, chiplets, cores."""
    return _svg(machine, _plain, "Machine", [])


def plan_svg(machine: Machine, plan: Plan) -> str:
    """The plan on the machine: each core in the colour and with the number of its slot."""
    seat_of: dict[int, Slot] = {}
    for slot in plan.slots:
        seat_of |= dict.fromkeys(slot.cpus or machine.allowed.pus, slot)
    own = plan.coordinator.cpus if plan.coordinator and plan.coordinator.kind == "reserved" else ()

    def paint(cell: Cell) -> _Paint:
        if not set(cell.pus).isdisjoint(own or ()):
            return _Paint("own", "C", "coordinator")
        slot = next((seat_of[pu] for pu in cell.pus if pu in seat_of), None)
        if slot is None or cell.allowed == "none":
            return _plain(cell)
        kind = f"core s{slot.index % len(_SLOT_FILLS)}"
        return _Paint(kind, str(slot.index), f"slot {slot.index}")

    mask = "" if plan.slots[0].cpus is not None else ", no mask"
    heap = f"{gib(plan.total_heap_bytes)} of heap in sum"
    words = [
        f"{plan.engine} under {plan.policy}: {counted(len(plan.slots), 'instance')}{mask}",
        counted(plan.total_threads, "thread"),
        heap,
    ]
    return _svg(machine, paint, f"Plan {plan.engine} {plan.policy}", [" · ".join(words)])


def _plain(cell: Cell) -> _Paint:
    match cell.allowed:
        case "all":
            return _Paint("core")
        case "some":
            return _Paint("some", "", "some threads are not allowed")
        case "none":
            return _Paint("none", "", "not allowed")


# ---- The page -----------------------------------------------------------------------------


def _svg(machine: Machine, paint: Painter, title: str, extra: Sequence[str]) -> str:
    plan = chart(machine)
    summary = machine.summary
    counts = " · ".join(
        (
            counted(summary.packages, "package"),
            counted(summary.numa_nodes, "NUMA node"),
            chiplet_words(machine),
            counted(summary.cores, "core"),
            *([counted(summary.pus, "thread")] if machine.smt else []),
            gib(machine.memory_bytes),
        )
    )
    foot = [
        ("memory only: ", "; ".join(node_words(node, DOT) for node in plan.memory_only)),
        ("distances: ", distance_words(machine)),
        (
            "network: ",
            ", ".join(
                n.name if n.node is None else f"{n.name} (node {n.node})" for n in machine.nics
            ),
        ),
    ]
    head = [(machine.title, "title"), (counts, "faint")]
    head += [(text, "") for text in extra]
    tail = [(label + text, "faint") for label, text in foot if text]
    # Islands of one size stand in line whatever their captions.
    least = max(LETTER * len(_caption(i)) for block in plan.blocks for i in block.islands)
    packages = [_block(block, paint, least) for block in plan.blocks]
    across = max(1, int(WIDEST // (max(piece.width for piece in packages) + SPACE)))
    blocks = _rows(packages, across)
    lines = [*head, None, *tail]
    width = max(blocks.width, *(7.2 * len(line[0]) for line in lines if line)) + 2 * SPACE
    parts: list[str] = []
    y = float(SPACE)
    for line in lines:
        if line is None:
            y += 6
            parts.append(_at(SPACE, y, blocks.body))
            y += blocks.height + 4
        else:
            y += HEAD
            parts.append(_text(SPACE, y, line[0], line[1]))
            y += 3
    height = y + SPACE
    label = escape(f"{title}: {head[0][0]}, {counts}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="atoll-map" role="img" '
        f'aria-label="{label}" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}">'
        f"<title>{label}</title><style>{_style()}</style>{''.join(parts)}</svg>\n"
    )


def _style() -> str:
    base = (
        ".atoll-map{font-family:system-ui,sans-serif;font-size:12px;max-width:100%;height:auto}"
        ".atoll-map .title{font-size:15px;font-weight:600}"
        ".atoll-map .number{font-size:9px;text-anchor:middle}"
        ".atoll-map .on{font-size:9px;text-anchor:middle}"
        ".atoll-map .loose,.atoll-map .none{stroke-dasharray:3 2}"
    )
    return f"{base}{_theme(_LIGHT, 0)}@media (prefers-color-scheme:dark){{{_theme(_DARK, 1)}}}"


def _theme(colours: dict[str, str], dark: int) -> str:
    fixed = "".join(f".atoll-map {name}{{{rule}}}" for name, rule in colours.items())
    slots = "".join(
        f".atoll-map .s{number}{{fill:{fills[dark]}}}" for number, fills in enumerate(_SLOT_FILLS)
    )
    return fixed + slots


# ---- Packages, nodes, islands -------------------------------------------------------------


def _block(block: Block, paint: Painter, least: float) -> _Piece:
    name = "machine" if block.package is None else f"package {block.package.index}"
    if len(block.shores) == 1:
        words = node_words(block.shores[0].node, DOT, block.package)
        name += f" · {words}" if words else ""
        inner = _grid([_island(island, paint, least) for island in block.islands])
    else:
        inner = _grid([_shore(shore, block, paint, least) for shore in block.shores])
    if block.shared_l3_bytes:
        name += f" · L3 {gib(block.shared_l3_bytes)} shared"
    return _framed(inner, name, "water", 12)


def _shore(shore: Shore, block: Block, paint: Painter, least: float) -> _Piece:
    inner = _grid([_island(island, paint, least) for island in shore.islands])
    return _framed(inner, node_words(shore.node, DOT, block.package) or "no node", "shore", 9)


def _island(island: Island, paint: Painter, least: float) -> _Piece:
    columns = _columns(len(island.cells))
    body = "".join(
        _at((n % columns) * (CELL + GAP), (n // columns) * (CELL + GAP), _core(cell, paint(cell)))
        for n, cell in enumerate(island.cells)
    )
    rows = math.ceil(len(island.cells) / columns)
    cores = _Piece(max(least, columns * (CELL + GAP) - GAP), rows * (CELL + GAP) - GAP, body)
    what = "cores in no chiplet" if island.chiplet is None else f"chiplet {island.chiplet}"
    kind = "loose" if island.chiplet is None else "island"
    tip = f"{what}, CPUs {format_cpulist(island.pus)}"
    return _framed(cores, _caption(island), kind, 8, tip)


def _caption(island: Island) -> str:
    name = "cores" if island.chiplet is None else str(island.chiplet)
    return f"{name} · L3 {gib(island.l3_bytes)}" if island.l3_bytes else name


def _columns(cores: int) -> int:
    """Cores in a row: 8 are 4 x 2, 14 are 5 x 3, 64 are 11 x 6."""
    return max(2, math.ceil(math.sqrt(cores * 1.75)))


def _core(cell: Cell, paint: _Paint) -> str:
    what = f"core {cell.core}, CPUs {format_cpulist(cell.pus)}"
    tip = escape(f"{what}, {paint.note}" if paint.note else what)
    marks = ""
    if paint.text:
        style = "on" if paint.kind == "own" else "number"
        marks = _text(CELL / 2, CELL / 2 + 3.2, paint.text, style)
    elif len(cell.pus) > 1 and paint.kind == "core":  # SMT: one line fewer than threads
        step = CELL / len(cell.pus)
        marks = "".join(
            f'<path class="thread" d="M{step * n:g} 3v{CELL - 6}"/>'
            for n in range(1, len(cell.pus))
        )
    return (
        f'<rect class="{paint.kind}" width="{CELL}" height="{CELL}" rx="4">'
        f"<title>{tip}</title></rect>{marks}"
    )


# ---- Boxes --------------------------------------------------------------------------------


def _framed(inner: _Piece, caption: str, kind: str, radius: int, tip: str = "") -> _Piece:
    """`inner` in a rounded box under a caption."""
    width = max(inner.width, LETTER * len(caption)) + 2 * PAD
    height = inner.height + 2 * PAD + HEAD
    title = f"<title>{escape(tip)}</title>" if tip else ""
    body = (
        f'<rect class="{kind}" width="{width:g}" height="{height:g}" rx="{radius}">{title}</rect>'
        + _text(PAD, PAD + 9, caption, "faint" if kind in ("island", "loose") else "")
        + _at(PAD, PAD + HEAD, inner.body)
    )
    return _Piece(width, height, body)


def _grid(pieces: Sequence[_Piece]) -> _Piece:
    """Pieces in rows of equal number, the whole somewhat wider than high, without holes if
    that can be done."""
    each = max(piece.width for piece in pieces) + SPACE
    tall = max(piece.height for piece in pieces) + SPACE

    def unfit(across: int) -> float:
        rows = math.ceil(len(pieces) / across)
        holes = (rows * across - len(pieces)) / len(pieces)
        return abs(math.log(across * each / (rows * tall) / 1.7)) + 6 * holes

    most = max(1, int((WIDEST / 2) // each))
    return _rows(pieces, min(range(1, min(most, len(pieces)) + 1), key=unfit))


def _rows(pieces: Sequence[_Piece], across: int) -> _Piece:
    each = max(piece.width for piece in pieces)
    body: list[str] = []
    width = y = 0.0
    for start in range(0, len(pieces), across):
        row = pieces[start : start + across]
        for column, piece in enumerate(row):
            body.append(_at(column * (each + SPACE), y, piece.body))
        width = max(width, (len(row) - 1) * (each + SPACE) + row[-1].width)
        y += max(piece.height for piece in row) + SPACE
    return _Piece(width, y - SPACE, "".join(body))


def _at(x: float, y: float, body: str) -> str:
    return f'<g transform="translate({x:g} {y:g})">{body}</g>'


def _text(x: float, y: float, text: str, kind: str) -> str:
    style = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}"{style}>{escape(text)}</text>'
