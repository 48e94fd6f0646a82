"""SVG elements and documents. Pure.

A picture is a body at its own origin: it can be a file, part of a page, or one of several in a
file.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from markupsafe import Markup

from atoll.report.svg.palette import picture_css
from atoll.schema.text import printable

WIDTH = 760
LETTER = 6.9  # mean width of a letter at 13 px; an SVG cannot measure its text
_SPACE = 18


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
