"""What the pictures of a profile are made of: SVG that stands alone, in light and in dark. Pure.

A picture is a body at its own origin, so that one can be a file, or part of a page, or stand
among others in one file. Colours are written out in both themes, since not every SVG renderer
knows CSS variables; rules are scoped by the class of the root. Text is text and scales.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from markupsafe import Markup

from atoll.schema.text import printable

WIDTH = 760
_SPACE = 18

# As in report.css.j2: the lines of a chart have one look in all reports.
_LIGHT = {
    ".page": "fill:#ffffff;stroke:none",
    ".ink": "fill:#1c2430",
    ".soft": "fill:#5b6675",
    ".axis": "stroke:#8a94a3",
    ".grid": "stroke:#dcdfe4",
    ".mark": "stroke:#1c2430",
    ".zone0": "fill:#f1f3f5",
    ".zone1": "fill:#e3e8ee",
    ".blank": "fill:#ffffff;stroke:#dcdfe4",
    ".halo": "stroke:#ffffff",
    ".hollow": "fill:#ffffff",
}
_DARK = {
    ".page": "fill:#1a2029;stroke:none",
    ".ink": "fill:#e6e9ee",
    ".soft": "fill:#9aa6b5",
    ".axis": "stroke:#7d8898",
    ".grid": "stroke:#303946",
    ".mark": "stroke:#e6e9ee",
    ".zone0": "fill:#202834",
    ".zone1": "fill:#2a3442",
    ".blank": "fill:#1a2029;stroke:#303946",
    ".halo": "stroke:#1a2029",
    ".hollow": "fill:#1a2029",
}
_SERIES = (
    ("#8a94a3", "#7d8898"),
    ("#1f6fb5", "#5aa4e6"),
    ("#d07a1b", "#eb9f4d"),
    ("#2f8f6b", "#56bd95"),
    ("#8d5fb8", "#b48fdc"),
    ("#c0507c", "#e582a9"),
    ("#6b7d1e", "#a8bb52"),
)
SERIES = len(_SERIES) - 1  # colours of lines; 0 is grey


class Picture(NamedTuple):
    """`body` is SVG, its text escaped, for a box of `width` by `height`."""

    name: str
    width: float
    height: float
    body: str


def document(pictures: Sequence[Picture], name: str) -> Markup:
    """One SVG with the pictures below each other."""
    width = max((picture.width for picture in pictures), default=WIDTH)
    parts, y = [], 0.0
    for picture in pictures:
        parts.append(
            f'<g role="img" aria-label="{escaped(picture.name)}" '
            f'transform="translate(0 {y:g})">{picture.body}</g>'
        )
        y += picture.height + _SPACE
    height = max(y - _SPACE, 1)
    return Markup(
        f'<svg xmlns="http://www.w3.org/2000/svg" class="atoll-profile" role="group" '
        f'aria-label="{escaped(name)}" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}"><title>{escaped(name)}</title><style>{_style()}</style>'
        f'<rect class="page" width="{width:g}" height="{height:g}"/>{"".join(parts)}</svg>\n'
    )


def escaped(words: str) -> str:
    """Text of a file as SVG's: control characters are no XML at all."""
    return escape(printable(words))


def heading(title: str, subtitle: str) -> str:
    return text(16, 26, title, "ink title") + text(16, 45, subtitle, "soft")


def text(x: float, y: float, words: str, kind: str, anchor: str = "start", turn: int = 0) -> str:
    turned = f' transform="rotate({turn} {x:.1f} {y:.1f})"' if turn else ""
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{turned}>'
        f"{escaped(words)}</text>"
    )


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<path class="{kind}" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"/>'


def rect(x: float, y: float, width: float, height: float, kind: str, tip: str = "") -> str:
    title = f"<title>{escaped(tip)}</title>" if tip else ""
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
        f'height="{height:.1f}">{title}</rect>'
    )


def _style() -> str:
    root = ".atoll-profile"
    base = (
        f"{root}{{font:13px system-ui,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;"
        "max-width:100%;height:auto}"
        f"{root} .title{{font-size:16px;font-weight:600}}"
        f"{root} .small{{font-size:11.5px}}"
        f"{root} .bold{{font-weight:600}}"
        f"{root} path,{root} .box{{fill:none}}"
        f"{root} .axis,{root} .grid{{stroke-width:1}}"
        f"{root} .mark{{stroke-width:1.6;stroke-dasharray:6 4}}"
        f"{root} .line{{stroke-width:2.2;stroke-linejoin:round}}"
        f"{root} .faint{{stroke-width:1.6;opacity:.75}}"
        f"{root} path.band{{stroke:none;opacity:.2}}"
        f"{root} .dash1{{stroke-dasharray:9 3}}{root} .dash2{{stroke-dasharray:3 3}}"
        f"{root} .dash3{{stroke-dasharray:9 3 2 3}}"
        f"{root} .clear{{fill:transparent;stroke:none}}"
        f"{root} .under{{stroke:#000000;stroke-width:3.2;opacity:.55}}"
        f"{root} .over{{stroke:#ffffff;stroke-width:1.5}}"
        f"{root} .onbright{{fill:#000000}}{root} .ondark{{fill:#ffffff}}"
        f"{root} .haloed{{paint-order:stroke;stroke-width:4px}}"
        f"{root} image{{image-rendering:pixelated}}"
    )
    return f"{base}{_theme(_LIGHT, 0)}@media (prefers-color-scheme:dark){{{_theme(_DARK, 1)}}}"


def _theme(colours: dict[str, str], dark: int) -> str:
    fixed = "".join(f".atoll-profile {name}{{{rule}}}" for name, rule in colours.items())
    series = "".join(
        f".atoll-profile .l{number}{{stroke:{pair[dark]}}}"
        f".atoll-profile .f{number}{{fill:{pair[dark]}}}"
        f".atoll-profile path.f{number}{{fill:{pair[dark]}}}"
        for number, pair in enumerate(_SERIES)
    )
    return fixed + series
