"""Figures of a profile as colours, positions and words: scales, ticks, units. Pure.

The colours run through viridis (matplotlib's, CC0): even steps of brightness, also for readers
who see no red or no green, and in grey. Dark is near: low latency, high bandwidth. So islands
look alike in every picture.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Unit = Literal["ns", "GB/s"]
Colour = tuple[int, int, int]

STEPS = 64  # colours of a picture
_ANCHORS = np.array(
    [
        (0x44, 0x01, 0x54), (0x47, 0x2D, 0x7B), (0x3B, 0x52, 0x8B), (0x2C, 0x72, 0x8E),
        (0x21, 0x91, 0x8C), (0x28, 0xAE, 0x80), (0x5E, 0xC9, 0x62), (0xAD, 0xDC, 0x30),
        (0xFD, 0xE7, 0x25),
    ],
    dtype=np.float64,
)  # fmt: skip
_SMALLEST = 1e-6  # stands for 0 where a logarithm is drawn
_LEAST_RATIO = 1.25  # a narrower range would draw noise as a pattern
_FLAT_RATIO = 2.0  # where there are no groups: what is flat shall look flat


class Scale(NamedTuple):
    """A logarithmic range, from `low` to `high`."""

    low: float
    high: float

    def share(self, values: Array) -> Array:
        """Where each value lies: 0 at `low` or below, 1 at `high` or above."""
        reach = math.log(self.high / self.low)
        logs: Array = np.log(np.maximum(values, _SMALLEST) / self.low)
        return np.clip(logs / reach, 0, 1)

    def at(self, value: float) -> float:
        return float(self.share(np.array([value]))[0])


def colour(share: float) -> Colour:
    """The colour at `share` of the way, 0 dark and 1 bright."""
    place = min(max(share, 0.0), 1.0) * (len(_ANCHORS) - 1)
    index = min(int(place), len(_ANCHORS) - 2)
    mixed = _ANCHORS[index] + (_ANCHORS[index + 1] - _ANCHORS[index]) * (place - index)
    red, green, blue = (round(float(part)) for part in mixed)
    return red, green, blue


def hex_colour(share: float) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour(share))


def bright(share: float) -> bool:
    """Black is to be read on it, and not white."""
    red, green, blue = colour(share)
    return 0.299 * red + 0.587 * green + 0.114 * blue > 140


def nearness(share: Array, unit: Unit) -> Array:
    """0 for near, which is dark: a low latency, a high bandwidth."""
    return share if unit == "ns" else 1 - share


def colour_scale(values: Array, *, flat: bool = False) -> Scale:
    """The range of colours for `values` (NaN: none), a few outliers not counted."""
    found = values[np.isfinite(values)]
    if not len(found):
        return Scale(1.0, 10.0)
    low, high = np.percentile(np.maximum(found, _SMALLEST), (0.5, 99.5))
    least = _FLAT_RATIO if flat else _LEAST_RATIO
    widen = math.sqrt(max(1.0, least / (high / low)))
    return Scale(float(low / widen), float(high * widen))


def span(values: Array, margin: float = 1.1) -> Scale:
    """The range that holds all of `values`."""
    found = values[np.isfinite(values)]
    if not len(found):
        return Scale(1.0, 10.0)
    low = max(float(found.min()), _SMALLEST) / margin
    return Scale(low, max(float(found.max()) * margin, low * 1.5))


def log_ticks(scale: Scale, most: int = 8) -> list[float]:
    """Round values within the range, at most `most`; in even steps where the range is narrow."""
    if scale.high / scale.low < 4:
        return even_ticks(scale.low, scale.high, most) or [scale.low]
    decades = range(math.floor(math.log10(scale.low)), math.ceil(math.log10(scale.high)) + 1)
    found: list[float] = []
    for steps in ((1, 1.5, 2, 3, 5, 7), (1, 2, 3, 5), (1, 2, 5), (1, 3), (1,)):
        found = [m * 10.0**decade for decade in decades for m in steps]
        found = [tick for tick in found if scale.low <= tick <= scale.high]
        if len(found) <= most:
            break
    return found[:: max(1, math.ceil(len(found) / most))]


def even_ticks(low: float, high: float, most: int) -> list[float]:
    """Round values in even steps from `low` to `high`."""
    rough = (high - low) / max(most - 2, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * 0.999)
    return [index * step for index in range(math.ceil(low / step), math.floor(high / step) + 1)]


def size_ticks(scale: Scale, most: int = 9) -> list[float]:
    """Powers of two within the range."""
    first, last = math.ceil(math.log2(scale.low)), math.floor(math.log2(scale.high))
    every = max(1, math.ceil((last - first + 1) / most))
    return [2.0**power for power in range(first, last + 1, every)] or [scale.low]


def number(value: float) -> str:
    """Three digits: '9.8', '22.7', '108', '7297'."""
    return f"{value:.3g}" if value < 999.5 or value >= 1e6 else f"{value:.0f}"


def tick_words(value: float) -> str:
    return f"{value:.4g}" if value < 1e6 else f"{value:.0e}"


def figure_words(value: float, unit: Unit) -> str:
    return f"{number(value)} {unit}"
