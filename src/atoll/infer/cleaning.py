"""Prepares costs for grouping: fills gaps, corrects disturbed pairs and slow PUs.

Every correction compares a PU with the PUs that see the machine most alike. The corrections change
the data in which groups are searched, never the figures that are reported.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from atoll.infer.hierarchy import Floats

_NEIGHBOURS = 5
_UNLIKE = 9.0  # times the nearest one's mean square difference: three times as far
_SAME = 0.01**2  # rows that differ by no more are the same
_LEAST_PUS = 6  # with fewer, no PU has neighbours to compare with
_DISTURBED = math.log(1.6)  # a pair slower than its neighbours' pairs by more than this
_SLOW = math.log(1.3)  # a PU slower to all others by more than this
_ALIKE = 0.9  # correlation of two rows with the same pattern
_PATTERN = 0.25  # standard deviation of a row that has a pattern at all
_FEW = 0.05  # share of PUs that may be slow before slowness is the machine's own property


@dataclass(frozen=True)
class Cleaned:
    cost: Floats  # symmetric, no NaN off the diagonal
    filled: int  # pairs
    disturbed: int  # pairs
    slow: tuple[int, ...]  # PUs


def clean(cost: Floats) -> Cleaned:
    """Cleans `cost` from matrix.log_cost; the diagonal stays NaN."""
    whole, filled = _fill(cost)
    if len(whole) < _LEAST_PUS:
        return Cleaned(whole, filled, 0, ())
    whole, slow = _speed_up(whole)
    whole, disturbed = _calm(whole)
    return Cleaned(whole, filled, disturbed, slow)


def _fill(cost: Floats) -> tuple[Floats, int]:
    size = len(cost)
    holes = np.isnan(cost) & ~np.eye(size, dtype=bool)
    count = int(holes.sum()) // 2
    if not count:
        return cost.copy(), 0
    whole = cost.copy()
    rows, columns = np.nonzero(holes)
    overall = float(np.nanmedian(cost))
    expected = _expected(cost)
    guess = expected[rows, columns]
    whole[rows, columns] = np.where(np.isnan(guess), overall, guess)
    whole = np.where(holes, (whole + whole.T) / 2, whole)
    return whole, count


def _expected(cost: Floats) -> Floats:
    """Each pair as the PUs most like its two ends predict it; NaN if none can."""
    size = len(cost)
    known = ~np.isnan(cost)
    plain = np.where(known, cost, 0.0)
    k = known.astype(np.float64)
    shared = np.maximum(k @ k.T, 1.0)
    square = plain**2
    distance = (square @ k.T + k @ square.T - 2 * plain @ plain.T) / shared
    np.fill_diagonal(distance, np.inf)
    count = min(_NEIGHBOURS, size - 2)
    near = np.argsort(distance, axis=1, kind="stable")[:, :count]
    reach = np.take_along_axis(distance, near, axis=1)
    # A member of a small group has fewer similar PUs; the others would bring their own pattern.
    least = max(float(np.median(reach[:, 0])), _SAME)
    unlike = reach > _UNLIKE * np.maximum(reach[:, :1], least)
    with np.errstate(all="ignore"):
        stacked = np.where(unlike[:, :, None], np.nan, cost[near])  # (i, neighbour, j)
        # A neighbour's own diagonal is NaN: it predicts nothing about itself.
        expected = _nanmedian(stacked)
    both = np.fmin(expected, expected.T)
    averaged = (expected + expected.T) / 2
    result: Floats = np.where(np.isnan(averaged), both, averaged)
    return result


def _nanmedian(stacked: Floats) -> Floats:
    """The median over axis 1; for an even count the upper value, because one of two that disagree
    may be the sibling of the pair's other end. NaN where all are NaN, without a warning."""
    ordered = np.sort(stacked, axis=1)  # NaN last
    count = np.sum(~np.isnan(ordered), axis=1)
    high = np.minimum(count // 2, ordered.shape[1] - 1)
    middle: Floats = np.take_along_axis(ordered, high[:, None, :], axis=1)[:, 0, :]
    return middle


def _speed_up(cost: Floats) -> tuple[Floats, tuple[int, ...]]:
    """Corrects PUs that were disturbed while measured: these show their neighbours' pattern, slower
    throughout. A PU without a pattern may be alone in its chiplet, and stays as it is."""
    size = len(cost)
    shifts = np.zeros(size)
    # A PU is as close to itself as to its nearest neighbour.
    plain = np.where(np.isnan(cost), np.nanmin(cost, axis=1)[:, None], cost)
    # Without the other end's part: otherwise one very slow PU would make all other rows alike.
    plain = plain - np.median(plain, axis=0, keepdims=True)
    patterned = plain.std(axis=1) >= _PATTERN
    with np.errstate(all="ignore"):
        alike = np.corrcoef(plain) >= _ALIKE
    alike &= patterned[:, None] & patterned[None, :]
    np.fill_diagonal(alike, False)
    for i in np.flatnonzero(alike.sum(axis=1) >= 2):
        shifts[i] = float(np.median(np.nanmedian(cost[i] - cost[alike[i]], axis=1)))
    slow = np.flatnonzero(shifts > _SLOW)
    if not 0 < len(slow) <= max(1, int(_FEW * size)):
        return cost, ()
    fixed = cost.copy()
    for i in slow:
        fixed[i, :] -= shifts[i]
        fixed[:, i] -= shifts[i]
    return fixed, tuple(int(i) for i in slow)


def _calm(cost: Floats) -> tuple[Floats, int]:
    expected = _expected(cost)
    excess = cost - expected
    off = ~np.isnan(excess)
    if not off.any():
        return cost, 0
    spread = 1.4826 * float(np.median(np.abs(excess[off])))
    # Only slower pairs: a pair faster than its neighbours' pairs is what SMT looks like.
    disturbed = off & (excess > max(_DISTURBED, 6 * spread))
    count = int(disturbed.sum()) // 2
    if not 0 < count <= max(1, int(_FEW * off.sum() / 2)):
        return cost, 0
    return np.where(disturbed, expected, cost), count
