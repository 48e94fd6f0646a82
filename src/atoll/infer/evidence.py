"""Is a candidate group an island, or a cut through something smooth?

A mesh or a ring has no groups, yet every clustering cuts it into some. What a cut cannot fake:
all members are nearer to their own group than anyone outside is to it, and by a margin that is
most of the contrast. On a mesh the members at the cut are as near to the other side. Four
figures are taken, all on the logarithm of the cost, so that they are ratios:

contrast    from inside the group to those who are nearest to it outside (as many as it has
            members: the group next door)
corrected   the same, less what a faster kind of core explains (cost = a_i + a_j): twice the
            cost across, less the cost inside, less the cost among the nearest outsiders
separation  the worst member against the nearest outsider, and against its own way next door,
            over the contrast: 1 for an island, about 0 for a cut through a gradient
order       how often a pair inside is nearer than a pair across (AUC, Mann and Whitney 1947)

and all are held against what noise alone can give: among all groups of g of m PUs the tightest
has a contrast of about 2 sigma sqrt(ln(e m / g) / (g - 1)) without any structure (the union
bound of scan statistics, as for a planted dense subgraph).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from atoll.infer.hierarchy import Group

    Floats = npt.NDArray[np.float64]

SEPARATION = 0.4  # half way between an island and a gradient, less what noise takes
FULL_SEPARATION = 0.8  # below it, more contrast is asked for
_LARGEST_ALLOWANCE = 0.35  # of the contrast: noise alone never carries a group over the bar
_BEYOND_CHANCE = 1.25  # times the bound
_USUAL_WORTH = 10
_NOISE_QUANTILE = 1.5  # standard errors that the worst member may be off by noise


@dataclass(frozen=True)
class Evidence:
    contrast: float  # log ratio; the smaller of the plain and the corrected one
    separation: float
    order: float
    noise: float  # standard deviation of a single figure, log
    chance: float  # the contrast that noise alone may give

    def clarity(self, least_contrast: float) -> float:
        """How far it clears the bar: 1 just clears it, below 1 does not."""
        bar = max(least_contrast, _BEYOND_CHANCE * self.chance)
        believed = self.contrast / bar * min(1.0, self.separation / FULL_SEPARATION)
        return min(believed, self.separation / SEPARATION, self.order / self.least_order)

    def margin(self, least_contrast: float) -> float:
        """`clarity` without the tests that are passed or not."""
        bar = max(least_contrast, _BEYOND_CHANCE * self.chance)
        return self.contrast / bar * min(1.0, self.separation / FULL_SEPARATION)

    @property
    def least_order(self) -> float:
        """Two normal samples this far apart, less a margin; at high contrast nearly all."""
        apart = self.contrast / max(self.noise, 1e-6) / math.sqrt(2)
        ideal = 0.5 * (1 + math.erf(min(apart, 8.0) / math.sqrt(2)))
        return min(0.97, 0.5 + 0.85 * (ideal - 0.5))


def weigh(
    cost: Floats, group: Group, usual_noise: float, *, folded: bool = False
) -> Evidence | None:
    """None: too little outside, or the outside is as near. A single core outside may just be a
    slow one (a_i + a_j), so two are needed; of folded groups, each has shown itself already."""
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
            # They may be of several quadrants: the ways within theirs, then.
            others = cost[np.ix_(next_door, outside)]
            beyond = min(beyond, float(np.nanmin(others, axis=1).mean()))
        corrected = 2 * between - within - beyond
    contrast = min(plain, corrected)
    if contrast <= 0:
        return None
    noise = _noise(own_pairs, across, usual_noise)
    allowance = _NOISE_QUANTILE * noise * math.sqrt(1 / (count - 1) + 1 / count)
    # Two ways to be at the edge: an outsider as near as a member, a member as near to next door.
    gap = float(approach.min()) - float(own.max())
    own_gap = float((across.mean(axis=0) - own).min())
    separation = 0.0
    if plain > 0:
        separation = min(gap, own_gap) / plain + min(allowance / plain, _LARGEST_ALLOWANCE)
    order = _order(near_values, across.ravel())
    chance = 2 * noise * math.sqrt(math.log(math.e * size / count) / (count - 1))
    return Evidence(contrast, min(separation, 1.0), order, noise, chance)


def _noise(own: Floats, across: Floats, usual: float) -> float:
    """Of a single figure, after the means of rows and columns are taken out. `usual`, that of the
    whole machine, counts as much as ten figures, so that small groups are not thought exact."""
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
    """Share of (near, far) couples in the right order, ties half."""
    ordered, near = np.sort(far), np.sort(near)
    below = np.searchsorted(ordered, near, side="left")
    upto = np.searchsorted(ordered, near, side="right")
    wrong = below + (upto - below) / 2
    return 1.0 - float(wrong.mean()) / len(far)
