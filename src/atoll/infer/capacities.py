"""Infers cache levels from a latency curve alone, without the system's reports.

The curve is the time of a dependent load in random order over the working set. While a set fits a
cache, every load hits it. Past its capacity C a share of the loads still hits: C/W under random
replacement, less under replacement closer to LRU, where a set slightly too large already misses
almost always. If pages or neighbours crowd some of the cache's sets, misses begin before C. A curve
is therefore a sum of steps,

    latency(W) = first + sum over k of height_k * miss_k(W / C_k),

where miss(x) is either the sharp-edged 1 - min(1, 1/x) ** s or the smooth 1 / (1 + x ** -s), and a
level lies between two steps. Change points of a piecewise flat curve would not do: the rise past a
capacity is slow (three quarters of it at four times the capacity), and flat pieces would cut one
slow rise into a staircase of levels that do not exist.

The steps are chosen one at a time from a fixed grid of capacities and sharpnesses (orthogonal
matching pursuit, Pati et al. 1993). Each choice revises the others, and a further step is taken
only if it lowers the Bayesian information criterion (Schwarz 1978). Errors count in proportion
to the latency, because the noise of the clock and of neighbours is proportional. A lone spike does
not count: the median of three neighbours leaves a rising curve as it is.

A level is reported only if the next level is at least MIN_STEP slower, and if its capacity is at
least MIN_APART times that of the level before. Smaller steps are fitted but not reported, since
address translation (a TLB that no longer reaches) causes them too. Levels that cannot be
distinguished come out as one. A flat curve has no level: where nothing ends, no capacity shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# On known machines the next cache or memory is at least 1.6 times slower (L3 to memory in a busy
# Xeon); with huge pages a TLB past its reach costs less than a quarter of a load.
MIN_STEP = 1.4
# Neighbouring caches of one core differ by 4 and more; closer steps are one smeared step.
MIN_APART = 2.5
MIN_POINTS = 8

_MOST_STEPS = 6  # four levels, and two steps from address translation
_SHARP_EDGED = (1.0, 2.0, 4.0, 16.0)  # exponents: random replacement ... practically LRU
_SMOOTH = (2.0, 3.0, 4.0, 6.0, 10.0)
_PER_OCTAVE = 6  # capacities in the grid
_MOST_REVISIONS = 8
# Position, height, sharpness; and two more, because the step was chosen among a thousand.
_NUMBERS_PER_STEP = 5
# The criterion assumes independent errors, but a neighbour that takes part of a shared cache bends
# a whole stretch of the curve. A step that explains less than this is not taken.
_LEAST_ERROR = 0.05

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Capacity:
    """A level as the curve shows it."""

    capacity_bytes: int
    latency_ns: float


@dataclass(frozen=True, slots=True)
class Levels:
    """The levels, fastest first. `beyond_ns` is the latency past the last level; None if the curve
    ends before it is clear of that level."""

    levels: tuple[Capacity, ...]
    beyond_ns: float | None


@dataclass(frozen=True, slots=True)
class _Fit:
    chosen: tuple[int, ...]  # steps of the grid, by rising capacity
    first: float
    heights: tuple[float, ...]
    score: float  # Bayesian information criterion


def cache_levels(working_set_bytes: Sequence[int], latency_ns: Sequence[float]) -> Levels:
    """The levels in a curve over rising working sets; none with fewer than MIN_POINTS.

    Points whose latency is not a positive number are skipped. Raises ValueError if the two
    sequences differ in length or the working sets do not rise.
    """
    sizes, latencies = np.array(working_set_bytes, float), np.array(latency_ns, float)
    if sizes.shape != latencies.shape:
        raise ValueError("every working set needs one latency")
    if np.any(np.diff(sizes) <= 0):
        raise ValueError("working sets must rise")
    good = np.isfinite(latencies) & (latencies > 0) & (sizes > 0)
    sizes, latencies = sizes[good], latencies[good]
    if len(sizes) < MIN_POINTS:
        return Levels((), None)
    latencies = median_of_three(latencies)
    capacities, steps = _grid(sizes)
    fit = _choose(steps / latencies, 1.0 / latencies, capacities)
    return _levels(fit, capacities, sizes, latencies)


def median_of_three(values: Floats) -> Floats:
    """The median of each value and its two neighbours; the ends stay. Keeps a monotone curve."""
    if len(values) < 3:
        return values
    inner = np.median(np.stack([values[:-2], values[1:-1], values[2:]]), axis=0)
    return np.concatenate([values[:1], inner, values[-1:]])


def _grid(sizes: Floats) -> tuple[Floats, Floats]:
    """The candidate steps: their capacities, and each step's rise from 0 to 1 by size."""
    octaves = float(np.log2(sizes[-1] / sizes[0]))
    # No capacity before the second point or at the last: no data would show it there.
    capacities = np.geomspace(sizes[1], sizes[-2], max(2, int(octaves * _PER_OCTAVE) + 1))
    share = capacities[:, None] / sizes[None, :]
    steps = [1.0 - np.minimum(1.0, share) ** exponent for exponent in _SHARP_EDGED]
    steps += [1.0 / (1.0 + share**exponent) for exponent in _SMOOTH]
    return np.tile(capacities, len(steps)), np.concatenate(steps)


def _choose(steps: Floats, ones: Floats, capacities: Floats) -> _Fit:
    """The steps that bring the curve, relative to itself, closest to 1 everywhere."""
    best = _fit(steps, ones, ())
    chosen: tuple[int, ...] = ()
    while len(chosen) < _MOST_STEPS:
        chosen = _revised(steps, ones, chosen, capacities)
        if not chosen:
            break
        fit = _fit(steps, ones, chosen)
        if fit.score >= best.score:
            break
        best = fit
    return best


def _revised(
    steps: Floats, ones: Floats, chosen: tuple[int, ...], capacities: Floats
) -> tuple[int, ...]:
    """Adds a step, then refits each step with the others fixed until none moves; empty if there is
    no room for another."""
    added = _best_beside(steps, ones, chosen, capacities)
    if added is None:
        return ()
    current = [*chosen, added]
    for _ in range(_MOST_REVISIONS):
        before = list(current)
        for place in range(len(current)):
            others = tuple(current[:place] + current[place + 1 :])
            better = _best_beside(steps, ones, others, capacities)
            if better is not None:
                current[place] = better
        if current == before:
            break
    return tuple(sorted(current, key=lambda index: float(capacities[index])))


def _best_beside(
    steps: Floats, ones: Floats, others: tuple[int, ...], capacities: Floats
) -> int | None:
    """The rising step that explains most of what the others leave, at a distance from them all."""
    basis, _ = np.linalg.qr(np.stack([ones, *(steps[index] for index in others)], axis=1))
    rest = np.ones(len(ones)) - basis @ (basis.T @ np.ones(len(ones)))
    new = steps - (steps @ basis) @ basis.T
    length = np.einsum("ij,ij->i", new, new)
    along = new @ rest
    gain = np.where((length > 1e-9) & (along > 0), along**2 / np.maximum(length, 1e-9), 0.0)
    for index in others:
        ratio = capacities / capacities[index]
        gain[(ratio < MIN_APART) & (ratio > 1 / MIN_APART)] = 0.0
    best = int(np.argmax(gain))
    return best if gain[best] > 0 else None


def _fit(steps: Floats, ones: Floats, chosen: tuple[int, ...]) -> _Fit:
    matrix = np.stack([ones, *(steps[index] for index in chosen)], axis=1)
    target = np.ones(len(ones))
    heights, *_ = np.linalg.lstsq(matrix, target, rcond=None)
    error = float(np.mean((matrix @ heights - target) ** 2))
    points = len(ones)
    score = points * np.log(error + _LEAST_ERROR**2)
    score += _NUMBERS_PER_STEP * len(chosen) * np.log(points)
    return _Fit(chosen, float(heights[0]), tuple(map(float, heights[1:])), float(score))


def _levels(fit: _Fit, capacities: Floats, sizes: Floats, latencies: Floats) -> Levels:
    levels: list[Capacity] = []
    begin, latency, reported_ns = 0.0, fit.first, fit.first
    for index, height in zip(fit.chosen, fit.heights, strict=True):
        capacity = float(capacities[index])
        here = latencies[(sizes > begin) & (sizes <= capacity)]
        if latency + height >= MIN_STEP * reported_ns:
            seen = float(np.clip(latency, here.min(), here.max())) if len(here) else latency
            levels.append(Capacity(round(capacity), seen))
            begin, reported_ns = capacity, latency + height
        latency += height
    if not levels:
        return Levels((), None)
    clear = sizes >= 2 * begin
    beyond = float(np.median(latencies[sizes >= sizes[-1] / 2])) if clear.any() else None
    return Levels(tuple(levels), beyond)
