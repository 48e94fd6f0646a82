"""Scales and axes: where a value lies, and round ticks. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from atoll.report.numbers import tick_label
from atoll.schema.size import gib

Array = npt.NDArray[np.float64]

SMALLEST = 1e-6  # stands for 0 where a logarithm is drawn
_RATIOS: tuple[tuple[float, ...], ...] = (
    (1.05, 1.1),
    (1.1, 1.2),
    (1.25, 1.5),
    (1.5, 2.0),
    (2.0, 3.0),
    (2.0, 5.0),
    (2.0, 5.0, 10.0),
    (3.0, 10.0, 30.0),
)


class Scale(NamedTuple):
    """A range of values, logarithmic unless `log` is false."""

    low: float
    high: float
    log: bool = True

    def share(self, values: Array) -> Array:
        """Where each value lies: 0 at `low` or below, 1 at `high` or above."""
        if not self.log:
            return np.clip((values - self.low) / (self.high - self.low), 0, 1)
        logs: Array = np.log(np.maximum(values, SMALLEST) / self.low)
        return np.clip(logs / math.log(self.high / self.low), 0, 1)

    def at(self, value: float) -> float:
        return float(self.share(np.array([value]))[0])


class Axis(NamedTuple):
    label: str
    scale: Scale
    ticks: Sequence[tuple[float, str]]


def span(values: Array, margin: float = 1.1) -> Scale:
    """The logarithmic range that holds all of `values`."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return Scale(1.0, 10.0)
    low = max(float(finite.min()), SMALLEST) / margin
    return Scale(low, max(float(finite.max()) * margin, low * 1.5))


def log_axis(label: str, scale: Scale) -> Axis:
    return Axis(label, scale, [(tick, tick_label(tick)) for tick in log_ticks(scale)])


def size_axis(label: str, scale: Scale) -> Axis:
    return Axis(label, scale, [(tick, gib(int(tick))) for tick in size_ticks(scale)])


def linear_axis(label: str, most: float) -> Axis:
    """From 0 to a little more than `most`."""
    scale = Scale(0, most * 1.05, log=False)
    return Axis(label, scale, [(tick, tick_label(tick)) for tick in even_ticks(0, scale.high, 7)])


def log_ticks(scale: Scale, most: int = 8) -> list[float]:
    """At most `most` round values within the range; evenly spaced if the range is narrow."""
    if scale.high / scale.low < 4:
        return even_ticks(scale.low, scale.high, most) or [scale.low]
    decades = range(math.floor(math.log10(scale.low)), math.ceil(math.log10(scale.high)) + 1)
    ticks: list[float] = []
    for steps in ((1, 1.5, 2, 3, 5, 7), (1, 2, 3, 5), (1, 2, 5), (1, 3), (1,)):
        ticks = [m * 10.0**decade for decade in decades for m in steps]
        ticks = [tick for tick in ticks if scale.low <= tick <= scale.high]
        if len(ticks) <= most:
            break
    return ticks[:: max(1, math.ceil(len(ticks) / most))]


def even_ticks(low: float, high: float, most: int) -> list[float]:
    """At most `most` evenly spaced round values from `low` to `high`."""
    rough = (high - low) / max(most - 1, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * 0.999)
    return [index * step for index in range(math.ceil(low / step), math.floor(high / step) + 1)]


def size_ticks(scale: Scale, most: int = 9) -> list[float]:
    """Powers of two within the range."""
    first, last = math.ceil(math.log2(scale.low)), math.floor(math.log2(scale.high))
    every = max(1, math.ceil((last - first + 1) / most))
    return [2.0**power for power in range(first, last + 1, every)] or [scale.low]


def ratio_ticks(low: float, high: float) -> list[float]:
    """Round ratios on both sides of 1, as far as one beyond `low` and one beyond `high`."""
    spread = max(high, 1 / low, 1.05)
    # One more than needed: the logarithm may be rounded down.
    powers = tuple(10.0**power for power in range(1, math.ceil(math.log10(spread)) + 2))
    above = next((steps for steps in _RATIOS if steps[-1] >= spread), powers)
    # Below 1 the reciprocals, rounded outwards as a reader would write them.
    below = [math.floor(100 / step) / 100 if step < 100 else 1 / step for step in above]
    up = sum(tick < high for tick in above) + 1
    down = sum(tick > low for tick in below) + 1
    return sorted({1.0, *above[:up], *below[:down]})
