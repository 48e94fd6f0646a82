"""SVG elements, and the palette of every picture and page. Pure.

A picture is a body at its own origin: it can be a file, part of a page, or one of several in a
file.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from markupsafe import Markup

from atoll.schema.text import printable

WIDTH = 760
LETTER = 6.9  # mean width of a letter at 13 px; an SVG cannot measure its text
SERIES = 6  # colours of lines and bars; 0 is grey
SLOTS = 12  # colours of slots
_SPACE = 18

# Each colour in the light and in the dark theme.
_PALETTE = {
    "page": ("#fbfbf9", "#12161c"),
    "card": ("#ffffff", "#1a2029"),
    "ink": ("#1c2430", "#e6e9ee"),
    "soft": ("#5b6675", "#9aa6b5"),
    "edge": ("#dcdfe4", "#303946"),
    "up": ("#0f7b4a", "#4cc38a"),
    "down": ("#b3341f", "#f0846e"),
    "warn": ("#fff6df", "#2c2613"),
    "warn-edge": ("#d9a520", "#b58a1c"),
    "zone0": ("#f1f3f5", "#202834"),
    "zone1": ("#e3e8ee", "#2a3442"),
    "package": ("#e4f1f5", "#10262e"),
    "node": ("#d3e8ee", "#16323c"),
    "water-edge": ("#b9d8e0", "#254450"),
    "island": ("#f7f0dc", "#38321f"),
    "island-edge": ("#c9b37c", "#83713f"),
    "loose": ("#eef2f3", "#1c2a2f"),
    "loose-edge": ("#9fb2b8", "#566a71"),
    "core": ("#4d8f8b", "#62b3ab"),
    "partly": ("#a9c9c5", "#38635f"),
    # Series.
    "c0": ("#8a94a3", "#7d8898"),
    "c1": ("#1f6fb5", "#5aa4e6"),
    "c2": ("#d07a1b", "#eb9f4d"),
    "c3": ("#2f8f6b", "#56bd95"),
    "c4": ("#8d5fb8", "#b48fdc"),
    "c5": ("#c0507c", "#e582a9"),
    "c6": ("#6b7d1e", "#a8bb52"),
    # Slots, in an order that keeps neighbours apart.
    "s0": ("#8ec9e8", "#1f6f99"),
    "s1": ("#f3c77a", "#8f6310"),
    "s2": ("#a8d8a0", "#3a7a35"),
    "s3": ("#e6a8c8", "#96447a"),
    "s4": ("#c5b6ee", "#6450ab"),
    "s5": ("#f0a58f", "#9c4a32"),
    "s6": ("#8fd6c6", "#1d7d6b"),
    "s7": ("#d9d27c", "#77701a"),
    "s8": ("#b3c3d6", "#50647d"),
    "s9": ("#f2b3b3", "#9a3f49"),
    "s10": ("#bfe08a", "#587d1c"),
    "s11": ("#d4b598", "#7d5a39"),
}
_THEMES = [{name: pair[theme] for name, pair in _PALETTE.items()} for theme in (0, 1)]

_SHAPES = {
    "": "font:13px system-ui,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;max-width:100%;height:auto",
    ".title": "font-size:16px;font-weight:600",
    ".small": "font-size:11.5px",
    ".tiny": "font-size:9px",
    ".bold": "font-weight:600",
    "path": "fill:none",
    ".one": "stroke-width:1.5",
    ".dotted": "stroke-dasharray:3 3",
    ".mark": "stroke-width:1.6;stroke-dasharray:6 4",
    ".line": "stroke-width:2.2;stroke-linejoin:round",
    ".step": "stroke-width:2;stroke-opacity:.6;stroke-linejoin:round",
    ".faint": "stroke-width:1.6;opacity:.75",
    ".band": "stroke:none;opacity:.2",
    ".whisker": "stroke-width:1.5",
    ".dash1": "stroke-dasharray:9 3",
    ".dash2": "stroke-dasharray:3 3",
    ".dash3": "stroke-dasharray:9 3 2 3",
    ".clear": "fill:transparent;stroke:none",
    ".under": "stroke:#000000;stroke-width:3.2;opacity:.55",
    ".over": "stroke:#ffffff;stroke-width:1.5",
    ".onbright": "fill:#000000",
    ".ondark": "fill:#ffffff",
    ".haloed": "paint-order:stroke;stroke-width:4px",
    ".loose,.barred": "stroke-dasharray:3 2",
    "image": "image-rendering:pixelated",
}
# Rules that differ between the themes; `{name}` is a colour of the palette.
_COLOURED = {
    "text": "fill:{ink}",
    ".soft": "fill:{soft}",
    ".back": "fill:{card};stroke:none",
    ".axis": "stroke:{c0}",
    ".grid": "stroke:{edge}",
    ".one,.mark,.whisker": "stroke:{ink}",
    ".zone0": "fill:{zone0}",
    ".zone1": "fill:{zone1}",
    ".blank": "fill:{card};stroke:{edge}",
    ".haloed": "stroke:{card}",
    ".package": "fill:{package};stroke:{water-edge}",
    ".node": "fill:{node};stroke:{water-edge}",
    ".island": "fill:{island};stroke:{island-edge}",
    ".loose": "fill:{loose};stroke:{loose-edge}",
    ".core": "fill:{core};stroke:none",
    ".thread": "stroke:{island}",
    ".partly": "fill:{partly};stroke:{core}",
    ".barred": "fill:none;stroke:{loose-edge}",
    ".own": "fill:{soft};stroke:none",
    ".onown": "fill:{card}",
    **{f".l{number}": f"stroke:{{c{number}}}" for number in range(SERIES + 1)},
    **{f".f{number},path.f{number}": f"fill:{{c{number}}}" for number in range(SERIES + 1)},
    **{f".s{number}": f"fill:{{s{number}}}" for number in range(SLOTS)},
    ".hollow": "fill:{card}",
}


class Picture(NamedTuple):
    """SVG for a box of `width` by `height`; the text in `body` is escaped."""

    name: str
    width: float
    height: float
    body: str


def document(pictures: Sequence[Picture], name: str) -> Markup:
    """A stand-alone SVG of the pictures, one below the other."""
    width = max((picture.width for picture in pictures), default=WIDTH)
    parts, y = [], 0.0
    for picture in pictures:
        parts.append(
            element(
                "g",
                "",
                picture.body,
                role="img",
                aria_label=picture.name,
                transform=f"translate(0 {y:g})",
            )
        )
        y += picture.height + _SPACE
    height = max(y - _SPACE, 1)
    back = rect(0, 0, width, height, "back")
    return _svg(name, width, height, f"<style>{picture_css()}</style>{back}{''.join(parts)}")


def inline(picture: Picture) -> Markup:
    """The picture as part of a page that carries `picture_css`."""
    return _svg(picture.name, picture.width, picture.height, picture.body)


def _svg(name: str, width: float, height: float, body: str) -> Markup:
    return Markup(
        element(
            "svg",
            "atoll",
            body,
            name,
            xmlns="http://www.w3.org/2000/svg",
            role="group",
            aria_label=name,
            viewBox=f"0 0 {width:g} {height:g}",
            width=width,
            height=height,
        )
        + "\n"
    )


# ---- Elements -------------------------------------------------------------------------------


def escaped(words: str) -> str:
    """Text from a file as SVG text: XML has no control characters."""
    return escape(printable(words))


def element(tag: str, kind: str, inner: str = "", tip: str = "", **attributes: float | str) -> str:
    """An element of class `kind`, with a tooltip; `_` in an attribute's name stands for '-'."""
    named = {"class": kind, **attributes} if kind else attributes
    listed = "".join(
        f' {name.replace("_", "-")}="{escaped(value) if isinstance(value, str) else _place(value)}"'
        for name, value in named.items()
    )
    title = f"<title>{escaped(tip)}</title>" if tip else ""
    return f"<{tag}{listed}>{title}{inner}</{tag}>"


def _place(value: float) -> str:
    return f"{round(value, 2):.10g}"


def heading(title: str, subtitle: str) -> str:
    return text(16, 26, title, "title") + text(16, 45, subtitle, "soft")


def text(
    x: float, y: float, words: str, kind: str = "", anchor: str = "start", turn: int = 0
) -> str:
    """Words on the baseline `y`."""
    turned = {"transform": f"rotate({turn} {x:.1f} {y:.1f})"} if turn else {}
    return element("text", kind, escaped(words), x=x, y=y, text_anchor=anchor, **turned)


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return element("line", kind, x1=x1, y1=y1, x2=x2, y2=y2)


def path(shape: str, kind: str) -> str:
    return element("path", kind, d=shape)


def circle(x: float, y: float, radius: float, kind: str, tip: str = "") -> str:
    return element("circle", kind, "", tip, cx=x, cy=y, r=radius)


def rect(
    x: float,
    y: float,
    width: float,
    height: float,
    kind: str,
    tip: str = "",
    **attributes: float | str,
) -> str:
    return element("rect", kind, "", tip, x=x, y=y, width=width, height=height, **attributes)


def moved(x: float, y: float, body: str) -> str:
    return f'<g transform="translate({x:g} {y:g})">{body}</g>'


# ---- CSS ------------------------------------------------------------------------------------


def palette_css() -> Markup:
    """The palette as variables of a page."""
    light, dark = (
        ";".join(f"--{name}:{colour}" for name, colour in theme.items()) for theme in _THEMES
    )
    return Markup(
        f":root{{color-scheme:light dark;{light}}}\n"
        f"@media (prefers-color-scheme:dark){{:root{{{dark}}}}}"
    )


def picture_css() -> Markup:
    """The rules of all pictures, scoped by the class of their root.

    Colours are written out for both themes: not every SVG renderer knows CSS variables.
    """
    light, dark = (
        "".join(_rule(selector, rule.format_map(theme)) for selector, rule in _COLOURED.items())
        for theme in _THEMES
    )
    shapes = "".join(_rule(selector, rule) for selector, rule in _SHAPES.items())
    return Markup(f"{shapes}{light}@media (prefers-color-scheme:dark){{{dark}}}")


def _rule(selectors: str, rule: str) -> str:
    scoped = ",".join(f".atoll {selector}".strip() for selector in selectors.split(","))
    return f"{scoped}{{{rule}}}"
