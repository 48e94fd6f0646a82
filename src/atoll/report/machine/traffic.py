"""The simulated traffic of a machine: chiplets and memories, and the lines between them. Pure.

Each node is a band: its chiplets in a row, arcs between them above, their ways to the node's memory
below. Arcs at the right join nodes. Width and colour of a link say how many lines it carried in
both directions, on a scale that all pictures of a report share; a link without lines is not drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from atoll.report.numbers import millions
from atoll.report.svg.elements import LETTER, Picture, element, escaped, moved, path, rect, text
from atoll.schema.fills import FillCounts

WIDTH = 420
_PAD = 8
_HEAD = 14  # a caption's height
_BOX = 20  # height of a chiplet
_WAY = 16  # from the chiplets to the memory
_MEMORY = 17  # height of a memory
_FEW = 4  # nodes; with more, bands are low, so that a picture fits a sheet
_LEGEND = 380  # width of the legend
_PITCH = (20, 90)  # least and most width of a chiplet with its gap
CLASSES = 5  # of links; the palette has their colours and widths

Lines = Counter[tuple[int, int]]  # of both directions; the smaller number first, or (chiplet, node)


class Traffic:
    """The lines of user mode on each link."""

    def __init__(self, counts: FillCounts) -> None:
        self.chiplets, self.memory, self.nodes = Lines(), Lines(), Lines()
        for own, row in enumerate(counts.user):
            node = counts.node_of_chiplet[own]
            for other, lines in enumerate(row.from_chiplets):
                home = counts.node_of_chiplet[other]
                if home != node:
                    self.nodes[min(home, node), max(home, node)] += lines
                elif other != own:
                    self.chiplets[min(own, other), max(own, other)] += lines
            for home, (lines, written) in enumerate(zip(row.from_memory, row.written, strict=True)):
                if home == node:
                    self.memory[own, node] += lines + written
                else:
                    self.nodes[min(home, node), max(home, node)] += lines + written

    @property
    def busiest(self) -> int:
        return max((max(one.values(), default=0) for one in self._all), default=0)

    @property
    def _all(self) -> tuple[Lines, Lines, Lines]:
        return self.chiplets, self.memory, self.nodes


class Scale:
    """Classes of links, each about three times the one before, the highest with the busiest."""

    def __init__(self, busiest: int) -> None:
        steps = [digit * 10**power for power in range(18) for digit in (1, 3)]
        # What a link of each class but the lowest carries at least.
        self.least: list[int] = [step for step in steps if step <= busiest][1 - CLASSES :]

    def of(self, lines: int) -> int:
        """From 1 to CLASSES."""
        return CLASSES - sum(lines < least for least in self.least)


def traffic_drawings(found: Sequence[tuple[str, FillCounts]]) -> list[Picture]:
    """The legend, then a picture of each (label, counts), on one scale."""
    traffics = [Traffic(counts) for _, counts in found]
    scale = Scale(max((one.busiest for one in traffics), default=0))
    pictures = [
        _Drawing(label, counts, traffic, scale).picture()
        for (label, counts), traffic in zip(found, traffics, strict=True)
    ]
    return [_legend(scale), *pictures]


class _Drawing:
    def __init__(self, label: str, counts: FillCounts, traffic: Traffic, scale: Scale) -> None:
        self._label, self._counts, self._traffic, self._scale = label, counts, traffic, scale
        nodes = len(counts.package_of_node)
        self._chiplets = [
            [c for c, home in enumerate(counts.node_of_chiplet) if home == node]
            for node in range(nodes)
        ]
        most = max(map(len, self._chiplets))
        self._right = 0 if nodes == 1 else _bulge(nodes - 1) + 4
        room = WIDTH - 4 * _PAD - self._right
        self._pitch = min(max(room / most, _PITCH[0]), _PITCH[1])
        self._inner = max(room, most * self._pitch)
        self._step = 7 if nodes <= _FEW else 4
        self._arcs = self._rise(most - 1) + 4 if most > 1 else 0
        self._band = _HEAD + self._arcs + _BOX + _WAY + _MEMORY + 2 * _PAD

    def picture(self) -> Picture:
        packages = self._counts.package_of_node
        parts, tops, y = [], [0.0] * len(packages), 0.0
        lone = len(set(packages)) == len(packages)
        for package in sorted(set(packages)):
            nodes = [node for node, home in enumerate(packages) if home == package]
            head = 0 if lone else _HEAD + _PAD
            high = head + len(nodes) * (self._band + _PAD) - _PAD + (0 if lone else _PAD)
            if not lone:
                parts.append(rect(0, y, self._inner + 4 * _PAD, high, "package", rx=12))
                parts.append(text(_PAD, y + _HEAD, f"package {package}"))
            for place, node in enumerate(nodes):
                tops[node] = y + head + place * (self._band + _PAD)
                name = f"package {package} · node {node}" if lone else f"node {node}"
                parts.append(moved(_PAD, tops[node], self._node(node, name)))
            y += high + _PAD
        parts += self._between_nodes(tops)
        name = f"{self._label}, simulated traffic"
        width = self._inner + 4 * _PAD + self._right
        return Picture(
            name, width, y - _PAD, element("desc", "", escaped(self._words())) + "".join(parts)
        )

    def _node(self, node: int, name: str) -> str:
        """The band of a node, at its own origin."""
        own, traffic = self._chiplets[node], self._traffic
        roof = _PAD + _HEAD + self._arcs
        floor = roof + _BOX + _WAY
        left = _PAD + (self._inner - len(own) * self._pitch) / 2
        box = self._pitch - 4
        links = []
        for (a, b), lines in traffic.chiplets.items():
            if a in own and lines:
                first, second = own.index(a), own.index(b)
                ends = [
                    left + place * self._pitch + 2 + box * _anchor(place, other, len(own))
                    for place, other in ((first, second), (second, first))
                ]
                rise = self._rise(second - first) * 4 / 3
                shape = f"M{ends[0]:.1f} {roof}C{ends[0]:.1f} {roof - rise:.1f} "
                shape += f"{ends[1]:.1f} {roof - rise:.1f} {ends[1]:.1f} {roof}"
                links.append((lines, shape, f"chiplet {a} and chiplet {b}"))
        for place, chiplet in enumerate(own):
            if lines := traffic.memory[chiplet, node]:
                x = left + (place + 0.5) * self._pitch
                shape = f"M{x:.1f} {roof + _BOX}V{floor}"
                links.append((lines, shape, f"chiplet {chiplet} and its node's memory"))
        boxes = []
        for place, chiplet in enumerate(own):
            x = left + place * self._pitch + 2
            boxes.append(rect(x, roof, box, _BOX, "island", f"chiplet {chiplet}", rx=4))
            kind = "small" if box >= 18 else "tiny"
            boxes.append(text(x + box / 2, roof + 14, str(chiplet), kind, "middle"))
        memory = rect(_PAD, floor, self._inner, _MEMORY, "loose", rx=4)
        memory += text(_PAD + self._inner / 2, floor + 12.5, "memory", "soft small", "middle")
        frame = rect(0, 0, self._inner + 2 * _PAD, self._band, "node", rx=9)
        caption = text(_PAD, _PAD + 10, name)
        return "".join((frame, caption, self._drawn(links), *boxes, memory))

    def _between_nodes(self, tops: Sequence[float]) -> list[str]:
        x, links = self._inner + 3 * _PAD, []
        for (a, b), lines in self._traffic.nodes.items():
            if lines:
                ends = [
                    tops[place] + self._band * _anchor(place, other, len(tops))
                    for place, other in ((a, b), (b, a))
                ]
                out = x + _bulge(b - a) * 4 / 3
                shape = f"M{x} {ends[0]:.1f}C{out:.1f} {ends[0]:.1f} "
                shape += f"{out:.1f} {ends[1]:.1f} {x} {ends[1]:.1f}"
                links.append((lines, shape, f"node {a} and node {b}"))
        return [self._drawn(links)]

    def _rise(self, distance: int) -> float:
        """The height of an arc between chiplets."""
        return min(8 + self._step * distance, 58)

    def _drawn(self, links: Sequence[tuple[int, str, str]]) -> str:
        """The busiest on top."""
        return "".join(
            element(
                "path",
                f"traffic t{self._scale.of(lines)}",
                "",
                f"{between}: {millions(lines)} million simulated lines",
                d=shape,
                data_lines=lines,
            )
            for lines, shape, between in sorted(links)
        )

    def _words(self) -> str:
        """The picture for those who do not see it."""
        traffic = self._traffic
        parts = [
            f"{millions(sum(lines.values()))} million lines {where}"
            for where, lines in (
                ("between chiplets of a node", traffic.chiplets),
                ("between chiplets and the memory of their node", traffic.memory),
                ("between nodes", traffic.nodes),
            )
        ]
        return f"{self._label}, simulated: {', '.join(parts)}."


def _legend(scale: Scale) -> Picture:
    """In lines that fit a phone; '30,000+' is 30,000 or more."""
    title = "Simulated lines on a link in a measured pass, user mode"
    least = scale.least
    words = [f"under {_short(least[0])}" if least else "any", *map(_short, least)]
    parts, x, y = [text(0, 12, title, "soft small")], 0.0, 30.0
    for kind, word in enumerate(words, CLASSES - len(least)):
        shown = word if kind == CLASSES - len(least) else f"{word}+"
        if x + 36 + LETTER * len(shown) > _LEGEND:
            x, y = 0.0, y + 20
        parts.append(path(f"M{x:.1f} {y}h24", f"traffic t{kind}"))
        parts.append(text(x + 30, y + 4, shown, "small"))
        x += 44 + LETTER * len(shown)
    return Picture(title, _LEGEND, y + 12, "".join(parts))


def _short(count: int) -> str:
    return f"{count // 10**6:,} million" if count >= 10**6 else f"{count:,}"


def _anchor(place: int, other: int, count: int) -> float:
    """Where on its side the end with the number `place` meets the link to `other`, from 0 to 1:
    near ones at the side of the other, so that arcs do not cross at their ends."""
    order = [*range(place - 1, -1, -1), *range(count - 1, place, -1)]
    return (order.index(other) + 1) / count


def _bulge(distance: int) -> float:
    """The width of an arc between nodes."""
    return min(12 + 10 * distance, 62)
