"""Judges whether a candidate group is an island, or a cut through a smooth gradient.

A mesh or a ring has no groups, yet every clustering cuts it into some. A cut cannot fake this: in
an island all members are closer to their own group than any outsider is, by a margin that is most
of the contrast. On a mesh the members at the cut are as close to the other side. There are four
figures, all computed on the logarithm of the cost, so that they are ratios:

contrast    from inside the group to the nearest outsiders (as many as the group has members:
            the group next door)
corrected   the same, minus what a faster kind of core explains (cost = a_i + a_j): twice the
            cost across, minus the cost inside, minus the cost among the nearest outsiders
separation  the worst member against the nearest outsider, and against its own distance to the
            group next door, over the contrast: 1 for an island, about 0 for a cut in a gradient
order       how often a pair inside is closer than a pair across (AUC, Mann and Whitney 1947)

All are compared with what noise alone can give: among all groups of g of m PUs the tightest
has a contrast of about 2 sigma sqrt(ln(e m / g) / (g - 1)) without any structure (the union
bound of scan statistics, as for a planted dense subgraph).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from atoll.infer.hierarchy import Floats, Group

SEPARATION = 0.4  # half way between an island and a gradient, minus an allowance for noise
FULL_SEPARATION = 0.8  # below it, more contrast is required
_LARGEST_ALLOWANCE = 0.35  # of the contrast: noise alone never lifts a group over the bar
_BEYOND_CHANCE = 1.25  # times the bound
_USUAL_WORTH = 10
_NOISE_QUANTILE = 1.5  # standard errors by which noise may displace the worst member


@dataclass(frozen=True)
class Evidence:
    contrast: float  # log ratio; the smaller of the plain and the corrected one
    separation: float
    order: float
    noise: float  # standard deviation of a single figure, log
    chance: float  # the contrast that noise alone may give

    def clarity(self, least_contrast: float) -> float:
        """By how much it clears the bar: 1 just clears it, less does not."""
        bar = max(least_contrast, _BEYOND_CHANCE * self.chance)
        believed = self.contrast / bar * min(1.0, self.separation / FULL_SEPARATION)
        return min(believed, self.separation / SEPARATION, self.order / self.least_order)

    def margin(self, least_contrast: float) -> float:
        """`clarity` without the pass-or-fail tests."""
        bar = max(least_contrast, _BEYOND_CHANCE * self.chance)
        return self.contrast / bar * min(1.0, self.separation / FULL_SEPARATION)

    @property
    def least_order(self) -> float:
        """The order of two normal samples this far apart, minus a margin; near 1 at high
        contrast."""
        apart = self.contrast / max(self.noise, 1e-6) / math.sqrt(2)
        ideal = 0.5 * (1 + math.erf(min(apart, 8.0) / math.sqrt(2)))
        return min(0.97, 0.5 + 0.85 * (ideal - 0.5))


def weigh(
    cost: Floats, group: Group, usual_noise: float, *, folded: bool = False
) -> Evidence | None:
    """None if there is too little outside, or the outside is as close. A single core outside may
    just be slow (a_i + a_j), so at least two are needed; folded groups have already proved
    themselves."""
    size, count = len(cost), len(group)
    if not 2 <= count <= size - (1 if folded else 2):
        return None
    inside = np.array(group)
    outside = np.setdiff1d(np.arange(size), inside)
    own_pairs = cost[np.ix_(inside, inside)]
    own = np.nansum(own_pairs, axis=1) / (count - 1)
    to_group = cost[np.ix_(outside, inside)]
    approach = to_group.mean(axis=1)
    next_door = outside[np.argsort(approach, kind="stable")[: min(count, len(outside))]]
    across = cost[np.ix_(next_door, inside)]
    upper = np.triu_indices(count, 1)
    near_values = own_pairs[upper]
    within, between = float(near_values.mean()), float(across.mean())
    plain = between - within
    corrected = plain
    if len(next_door) >= 2:
        among = cost[np.ix_(next_door, next_door)]
        beyond = float(among[np.triu_indices(len(next_door), 1)].mean())
        if folded:
            # The outsiders may be of several quadrants: then use the distances within theirs.
            others = cost[np.ix_(next_door, outside)]
            beyond = min(beyond, float(np.nanmin(others, axis=1).mean()))
        corrected = 2 * between - within - beyond
    contrast = min(plain, corrected)
    if contrast <= 0:
        return None
    noise = _noise(own_pairs, across, usual_noise)
    allowance = _NOISE_QUANTILE * noise * math.sqrt(1 / (count - 1) + 1 / count)
    # Two ways to be at the edge: an outsider as close as a member, a member as close to next door.
    gap = float(approach.min()) - float(own.max())
    own_gap = float((across.mean(axis=0) - own).min())
    separation = 0.0
    if plain > 0:
        separation = min(gap, own_gap) / plain + min(allowance / plain, _LARGEST_ALLOWANCE)
    order = _order(near_values, across.ravel())
    return Evidence(contrast, min(separation, 1.0), order, noise, _chance(noise, count, size))


def least_chance(noise: float, count: int, size: int) -> float:
    """The contrast that a group of `count` of `size` needs to stand out of this noise."""
    return _BEYOND_CHANCE * _chance(noise, count, size)


def _chance(noise: float, count: int, size: int) -> float:
    return 2 * noise * math.sqrt(math.log(math.e * size / count) / (count - 1))


def _noise(own: Floats, across: Floats, usual: float) -> float:
    """The noise of a single figure, without the means of rows and columns. `usual`, the noise of
    the whole machine, counts as ten figures, so that small groups are not considered exact."""
    squares, freedom = _USUAL_WORTH * usual**2, float(_USUAL_WORTH)
    if len(own) >= 4:
        filled = np.where(np.isnan(own), np.nanmean(own), own)
        rows = filled.mean(axis=1, keepdims=True)
        rest = (filled - rows - rows.T + filled.mean())[np.triu_indices(len(own), 1)]
        squares += float((rest**2).sum())
        freedom += len(rest) - len(own) + 1
    if min(across.shape) >= 2:
        rest = across - across.mean(axis=1, keepdims=True) - across.mean(axis=0, keepdims=True)
        squares += float(((rest + across.mean()) ** 2).sum())
        freedom += (across.shape[0] - 1) * (across.shape[1] - 1)
    return math.sqrt(squares / freedom)


def _order(near: Floats, far: Floats) -> float:
    """The share of (near, far) couples in the right order; ties count half."""
    ordered, near = np.sort(far), np.sort(near)
    below = np.searchsorted(ordered, near, side="left")
    upto = np.searchsorted(ordered, near, side="right")
    wrong = below + (upto - below) / 2
    return 1.0 - float(wrong.mean()) / len(far)
