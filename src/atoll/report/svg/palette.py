"""The colours and the CSS of every picture and page, light and dark. Pure."""

from __future__ import annotations

import re
from string import Template

from markupsafe import Markup

SERIES = 6  # colours of lines and bars; 0 is grey
SLOTS = 12  # colours of slots

# Each colour in the light and in the dark theme.
_PALETTE = """
page   #fbfbf9 #12161c   card      #ffffff #1a2029
ink    #1c2430 #e6e9ee   soft      #5b6675 #9aa6b5   edge       #dcdfe4 #303946
up     #0f7b4a #4cc38a   down      #b3341f #f0846e
warn   #fff6df #2c2613   warn_edge #d9a520 #b58a1c
zone0  #f1f3f5 #202834   zone1     #e3e8ee #2a3442

package #e4f1f5 #10262e  node        #d3e8ee #16323c  water_edge #b9d8e0 #254450
island  #f7f0dc #38321f  island_edge #c9b37c #83713f
loose   #eef2f3 #1c2a2f  loose_edge  #9fb2b8 #566a71
core    #4d8f8b #62b3ab  partly      #a9c9c5 #38635f

t1 #b3a98f #6f6a5a   t2 #dd9a3c #a67a33   t3 #d96a1e #d98a2b   t4 #b83a1a #f5b04a
t5 #7d1616 #ffe08a

c0 #8a94a3 #7d8898   c1 #1f6fb5 #5aa4e6   c2  #d07a1b #eb9f4d   c3  #2f8f6b #56bd95
c4 #8d5fb8 #b48fdc   c5 #c0507c #e582a9   c6  #6b7d1e #a8bb52

s0 #8ec9e8 #1f6f99   s1 #f3c77a #8f6310   s2  #a8d8a0 #3a7a35   s3  #e6a8c8 #96447a
s4 #c5b6ee #6450ab   s5 #f0a58f #9c4a32   s6  #8fd6c6 #1d7d6b   s7  #d9d27c #77701a
s8 #b3c3d6 #50647d   s9 #f2b3b3 #9a3f49   s10 #bfe08a #587d1c   s11 #d4b598 #7d5a39
"""

# `$name` is a colour of the palette.
_RULES = """
{font:13px system-ui,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;max-width:100%;height:auto}
.title{font-size:16px;font-weight:600} .bold{font-weight:600}
.small{font-size:11.5px} .tiny{font-size:9px}
text{fill:$ink} .soft{fill:$soft} .haloed{paint-order:stroke;stroke-width:4px;stroke:$card}
.onbright{fill:#000000} .ondark{fill:#ffffff} .onown{fill:$card}
path{fill:none} image{image-rendering:pixelated} .clear{fill:transparent;stroke:none}
.back{fill:$card;stroke:none} .blank{fill:$card;stroke:$edge}
.axis{stroke:$c0} .grid{stroke:$edge} .dotted{stroke-dasharray:3 3}
.one{stroke:$ink;stroke-width:1.5} .mark{stroke:$ink;stroke-width:1.6;stroke-dasharray:6 4}
.zone0{fill:$zone0} .zone1{fill:$zone1}
.line{stroke-width:2.2;stroke-linejoin:round} .faint{stroke-width:1.6;opacity:.75}
.step{stroke-width:2;stroke-opacity:.6;stroke-linejoin:round} path.band{stroke:none;opacity:.2}
.whisker{stroke:$ink;stroke-width:1.5}
.dash1{stroke-dasharray:9 3} .dash2{stroke-dasharray:3 3} .dash3{stroke-dasharray:9 3 2 3}
.under{stroke:#000000;stroke-width:3.2;opacity:.55} .over{stroke:#ffffff;stroke-width:1.5}
.package{fill:$package;stroke:$water_edge} .node{fill:$node;stroke:$water_edge}
.island{fill:$island;stroke:$island_edge} .thread{stroke:$island}
.loose{fill:$loose;stroke:$loose_edge;stroke-dasharray:3 2}
.core{fill:$core;stroke:none} .partly{fill:$partly;stroke:$core} .own{fill:$soft;stroke:none}
.t1{stroke:$t1;stroke-width:.8} .t2{stroke:$t2;stroke-width:1.2} .t3{stroke:$t3;stroke-width:2}
.t4{stroke:$t4;stroke-width:3} .t5{stroke:$t5;stroke-width:4.6} .traffic{stroke-opacity:.9}
.barred{fill:none;stroke:$loose_edge;stroke-dasharray:3 2}
"""


def palette_css() -> Markup:
    """The palette as variables of a page."""
    light, dark = (
        ";".join(f"--{name.replace('_', '-')}:{colour}" for name, colour in theme.items())
        for theme in _themes()
    )
    return Markup(
        f":root{{color-scheme:light dark;{light}}}\n"
        f"@media (prefers-color-scheme:dark){{:root{{{dark}}}}}"
    )


def picture_css() -> Markup:
    """The rules of all pictures, scoped by the class of their root.

    Colours are written out for both themes: not every SVG renderer knows CSS variables.
    """
    numbered = [f".l{n}{{stroke:$c{n}}} .f{n},path.f{n}{{fill:$c{n}}}" for n in range(SERIES + 1)]
    numbered += [f".s{n}{{fill:$s{n}}}" for n in range(SLOTS)]
    rules = re.findall(r"([^{}]*){([^{}]*)}", " ".join([_RULES, *numbered, ".hollow{fill:$card}"]))
    themes = _themes()
    light = "".join(_rule(selectors, style, themes[0]) for selectors, style in rules)
    dark = "".join(_rule(selectors, style, themes[1]) for selectors, style in rules if "$" in style)
    return Markup(f"{light}@media (prefers-color-scheme:dark){{{dark}}}")


def _themes() -> tuple[dict[str, str], dict[str, str]]:
    names, light, dark = (_PALETTE.split()[column::3] for column in range(3))
    return dict(zip(names, light, strict=True)), dict(zip(names, dark, strict=True))


def _rule(selectors: str, style: str, theme: dict[str, str]) -> str:
    scoped = ",".join(f".atoll {selector.strip()}".strip() for selector in selectors.split(","))
    return f"{scoped}{{{Template(style).substitute(theme)}}}"
