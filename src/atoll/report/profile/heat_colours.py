"""The colours of heat maps, on the page and in the terminal. Pure.

They run through viridis (matplotlib's, CC0): even steps of brightness, also in grey and for readers
who do not see red or green. Dark is near (low latency, high bandwidth), so islands look alike in
every map.
"""

from __future__ import annotations

import math

import numpy as np

from atoll.report.numbers import Unit
from atoll.report.svg.axes import SMALLEST, Array, Scale

Colour = tuple[int, int, int]

STEPS = 64  # colours of a picture
_ANCHORS = [
    tuple(bytes.fromhex(anchor))
    for anchor in (
        *("440154", "472d7b", "3b528b", "2c728e", "21918c"),
        *("28ae80", "5ec962", "addc30", "fde725"),
    )
]
_LEAST_RATIO = 1.25  # a narrower range would draw noise as a pattern
_FLAT_RATIO = 2.0  # without groups: what is flat should look flat


def colour(share: float) -> Colour:
    """The colour at `share` of the way, 0 dark and 1 bright."""
    place = min(max(share, 0.0), 1.0) * (len(_ANCHORS) - 1)
    index = min(int(place), len(_ANCHORS) - 2)
    red, green, blue = (
        round(start + (stop - start) * (place - index))
        for start, stop in zip(_ANCHORS[index], _ANCHORS[index + 1], strict=True)
    )
    return red, green, blue


def hex_colour(share: float) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour(share))


def bright(share: float) -> bool:
    """Whether black text is easier to read on it than white."""
    red, green, blue = colour(share)
    return 0.299 * red + 0.587 * green + 0.114 * blue > 140


def nearness(share: Array, unit: Unit) -> Array:
    """0 for near, which is dark: a low latency or a high bandwidth."""
    return share if unit == "ns" else 1 - share


def colour_scale(values: Array, *, flat: bool = False) -> Scale:
    """The range of colours for `values` (NaN: not measured), without the few outermost."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return Scale(1.0, 10.0)
    low, high = np.percentile(np.maximum(finite, SMALLEST), (0.5, 99.5))
    least = _FLAT_RATIO if flat else _LEAST_RATIO
    widen = math.sqrt(max(1.0, least / (high / low)))
    return Scale(float(low / widen), float(high * widen))
