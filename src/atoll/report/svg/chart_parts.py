"""What the charts of a bench are made of: their size, lines, text, round ticks. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup, escape

WIDTH = 860
LEFT = 138  # of the plot: names end here
RIGHT = 190  # right of the plot: figures begin here
PLOT = WIDTH - LEFT - RIGHT
TOP = 26


def svg(height: float, name: str, parts: Sequence[str], kind: str) -> Markup:
    # All text in the parts was escaped where it was put in.
    return Markup(
        f'<svg class="chart {kind}" viewBox="0 0 {WIDTH} {height:.0f}" role="group" '
        f'aria-label="{escape(name)}"><title>{escape(name)}</title>{"".join(parts)}</svg>'
    )


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}"/>'


def text(x: float, y: float, words: str, kind: str, anchor: str) -> str:
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" '
        f'dominant-baseline="central">{escape(words)}</text>'
    )


def linear_ticks(longest: float) -> list[float]:
    """0 and up to five round steps beyond `longest`."""
    rough = longest / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= rough * 0.999)
    return [step * index for index in range(math.ceil(longest / step - 1e-9) + 1)]


def tick_label(seconds: float, longest: float) -> str:
    return f"{seconds * 1e3:g} ms" if longest < 1 else f"{seconds:g} s"
