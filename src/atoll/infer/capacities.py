"""Cache levels out of a latency curve, without a word from the system.

The curve is the time of a dependent load in random order over the working set. While a set fits a
cache, every load hits it. Past its capacity C a share of the loads still does: C/W under random
replacement, less under replacement that is nearer to LRU, where a set that is a little too large
already misses almost always. Where pages or neighbours crowd some of the cache's sets, misses begin
before C. So a curve is a sum of steps,

    latency(W) = first + sum over k of height_k * miss_k(W / C_k),

where miss(x) is either the sharp-edged 1 - min(1, 1/x) ** s or the smooth 1 / (1 + x ** -s), and a
level is what lies between two steps. Why steps of that shape, and no change points of a
curve that is piecewise flat: the rise past a capacity is slow (three quarters of it at four times
the capacity), and flat pieces cut one slow rise into a staircase of levels that nobody built.

The steps are chosen one at a time from a fixed grid of capacities and sharpnesses (orthogonal
matching pursuit, Pati et al. 1993), each choice revises the others, and a further step is taken
only if it lowers the Bayesian information criterion (Schwarz 1978). Errors count in proportion
to the latency, for that is how the clock's and the neighbours' noise comes. A lone spike does not
count: the median of three neighbours leaves a rising curve as it is.

Promises: a level is reported only if what follows it is at least MIN_STEP slower, and if its
capacity is at least MIN_APART times that of the level before; smaller steps are fitted and not
told, for translation (a TLB that no longer reaches) makes them too. Levels that cannot be told
apart come out as one. A flat curve has no level: where nothing ends, no capacity shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# The next cache or memory is 1.6 times slower at least on the machines that we know of (L3 to
# memory in a busy Xeon); with huge pages a TLB costs less than a quarter of a load past its reach.
MIN_STEP = 1.4
# Neighbouring caches of one core differ by 4 and more; nearer steps are one that was smeared.
MIN_APART = 2.5
MIN_POINTS = 8

_MOST_STEPS = 6  # four levels, and two steps that translation makes
_SHARP_EDGED = (1.0, 2.0, 4.0, 16.0)  # exponents: random replacement ... as good as LRU
_SMOOTH = (2.0, 3.0, 4.0, 6.0, 10.0)
_PER_OCTAVE = 6  # capacities in the grid
_MOST_REVISIONS = 8
# Where, how high, how sharp; and two more, for having been sought among a thousand.
_NUMBERS_PER_STEP = 5
# Errors of neighbouring points are not independent as the criterion would have it: a neighbour who
# takes a part of a shared cache bends a whole stretch. A step that explains less is not taken.
_LEAST_ERROR = 0.05

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Capacity:
    """A level as it shows."""

    capacity_bytes: int
    latency_ns: float


@dataclass(frozen=True, slots=True)
class Levels:
    """The levels, fastest first; `beyond_ns` is the latency past the last, None if the curve
    ends before it is clear of the last level."""

    levels: tuple[Capacity, ...]
    beyond_ns: float | None


@dataclass(frozen=True, slots=True)
class _Fit:
    chosen: tuple[int, ...]  # steps of the grid, by rising capacity
    first: float
    heights: tuple[float, ...]
    score: float  # Bayesian information criterion


def cache_levels(working_set_bytes: Sequence[int], latency_ns: Sequence[float]) -> Levels:
    """The levels in a curve over rising working sets; none in fewer than MIN_POINTS.

    Points whose latency is not a positive number are passed over. Raises ValueError if the two
    differ in length or the working sets do not rise.
    """
    sizes, latencies = np.array(working_set_bytes, float), np.array(latency_ns, float)
    if sizes.shape != latencies.shape:
        raise ValueError("one latency for every working set")
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
    """Each value with its two neighbours; the ends stay. A monotone curve is left as it is."""
    if len(values) < 3:
        return values
    inner = np.median(np.stack([values[:-2], values[1:-1], values[2:]]), axis=0)
    return np.concatenate([values[:1], inner, values[-1:]])


def _grid(sizes: Floats) -> tuple[Floats, Floats]:
    """The steps to choose from: their capacities, and each one's rise from 0 to 1 by size."""
    octaves = float(np.log2(sizes[-1] / sizes[0]))
    # A capacity is not looked for before the second point or at the last: nothing shows it there.
    capacities = np.geomspace(sizes[1], sizes[-2], max(2, int(octaves * _PER_OCTAVE) + 1))
    share = capacities[:, None] / sizes[None, :]
    steps = [1.0 - np.minimum(1.0, share) ** exponent for exponent in _SHARP_EDGED]
    steps += [1.0 / (1.0 + share**exponent) for exponent in _SMOOTH]
    return np.tile(capacities, len(steps)), np.concatenate(steps)


def _choose(steps: Floats, ones: Floats, capacities: Floats) -> _Fit:
    """The steps by which the curve, in proportion to itself, comes nearest to 1 everywhere."""
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
    """One step more, then each of them anew beside the others until none moves; empty: there is
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
    """The rising step that explains most of what the others leave; far enough from them all."""
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
    found: list[Capacity] = []
    begin, latency, told = 0.0, fit.first, fit.first
    for index, height in zip(fit.chosen, fit.heights, strict=True):
        capacity = float(capacities[index])
        here = latencies[(sizes > begin) & (sizes <= capacity)]
        if latency + height >= MIN_STEP * told:
            seen = float(np.clip(latency, here.min(), here.max())) if len(here) else latency
            found.append(Capacity(round(capacity), seen))
            begin, told = capacity, latency + height
        latency += height
    if not found:
        return Levels((), None)
    clear = sizes >= 2 * begin
    beyond = float(np.median(latencies[sizes >= sizes[-1] / 2])) if clear.any() else None
    return Levels(tuple(found), beyond)
