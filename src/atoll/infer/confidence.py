"""How sure an answer is, from its contrasts, its noise and the number of pairs behind it.

A found grouping is doubted for three reasons, each a probability or scaled like one:

bar     its contrast may be the machine's own unevenness: a half at the bar, less above it
noise   some groups may be as far apart by noise alone: the normal tail times the number of ways to
        group the cores (the union bound of scan statistics; D. Berend and T. Tassa 2010 bound the
        number of ways)
pairs   all pairs inside may be the fastest ones by mere order. If N pairs are drawn in random
        order, the k pairs inside the groups come first with probability (ways to choose such
        groups) / C(N, k), whatever the figures are. One pair is always the fastest: no evidence.

That nothing was found is only as sure as groups would have been found if there were any: the step
of real chiplets against the smallest step that would stand out of this noise, and again the number
of pairs. Nothing here depends on the unit of the figures or the numbering of the PUs.

Two matrices are combined by Dempster's rule (A. P. Dempster 1967): each supports an answer with its
confidence and leaves the rest open.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from atoll.infer.evidence import least_chance
from atoll.infer.hierarchy import profile_distance
from atoll.schema.text import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from atoll.infer.evidence import Evidence
    from atoll.infer.hierarchy import Floats, Group

FEWEST = 4  # units; fewer have no two groups of two
_USUAL_CHIPLET = 4  # cores; larger ones show more clearly
_WORTH_NAMING = 0.1
_UNEQUAL = 0.6  # if no pair has one figure, the answer stays open


class Sureness(NamedTuple):
    value: float  # 0 to 1
    doubts: tuple[str, ...] = ()  # for people: what lowers it most


def noise_bound(cost: Floats) -> float:
    """What the noise of one figure hardly exceeds (in a tenth of the cases), as a log ratio.

    The smaller of two bounds of 95 %. The noise shows in how differently a PU and the one most like
    it see the others; among few rows the most alike are so by selection, and the factors for that
    come from simulations of pure noise. And it cannot exceed the spread of all figures
    (chi-square, by Wilson and Hilferty 1931).
    """
    size = len(cost)
    if size < FEWEST:
        return math.inf
    distance = profile_distance(cost)
    np.fill_diagonal(distance, np.inf)
    squares = [_unlike(cost, i, int(twin)) for i, twin in enumerate(distance.argmin(axis=1))]
    rows = size - 3
    by_rows = math.sqrt(float(np.mean(squares)) / 2) * (1 + 2 / math.sqrt(rows) + 8 / rows**2)
    pairs = cost[np.triu_indices(size, 1)]
    share = 2 / (9 * (len(pairs) - 1))
    by_spread = float(pairs.std(ddof=1)) / math.pow(1 - share - 1.645 * math.sqrt(share), 1.5)
    return min(by_rows, by_spread)


def _unlike(cost: Floats, one: int, other: int) -> float:
    """The mean square difference of two rows, apart from how slow each is as a whole."""
    apart = np.delete(cost[one] - cost[other], [one, other])
    return float(((apart - np.median(apart)) ** 2).mean())


def order_doubt(sizes: Sequence[int], units: int) -> float:
    """The probability that chance puts all pairs inside some groups of these sizes first."""
    inside = sum(map(_pairs, sizes))
    return math.exp(min(0.0, _log_ways(sizes, units) - _log_choose(_pairs(units), inside)))


def noise_doubt(cost: Floats, groups: Sequence[Group], noise: float) -> float:
    """The probability that noise alone puts some groups this far apart."""
    same = np.zeros(cost.shape, dtype=bool)
    for group in groups:
        same[np.ix_(group, group)] = True
    upper = np.triu(np.ones(cost.shape, dtype=bool), 1)
    near, far = cost[same & upper], cost[~same & upper]
    error = noise * math.sqrt(1 / len(near) + 1 / max(1, len(far)))
    if error == 0:
        return 0.0
    z = max(0.0, float(far.mean() - near.mean())) / error if len(far) else 0.0
    tail = math.log(0.5 * math.erfc(z / math.sqrt(2))) if z < 30 else -(z**2) / 2
    ways = len(cost) * math.log(0.792 * len(cost) / math.log(len(cost) + 1))
    return math.exp(min(0.0, ways + tail))


def of_groups(cost: Floats, islands: Sequence[tuple[Group, Evidence]], bar: float) -> Sureness:
    """Of the groups of cores that were found, in indices into `cost`; `bar`: the least contrast.

    The contrast at the weakest quarter of them counts.
    """
    margins = sorted(max(1.0, evidence.margin(bar)) for _, evidence in islands)
    groups = [group for group, _ in islands]
    by_bar = 0.5 / math.pow(margins[len(margins) // 4], 1.5)
    by_noise = noise_doubt(cost, groups, noise_bound(cost))
    by_order = order_doubt([len(group) for group in groups], len(cost))
    doubts = []
    if by_order > _WORTH_NAMING:
        inside = plural(sum(_pairs(len(group)) for group in groups), "pair")
        doubts.append(f"only {inside} inside the groups: chance may have made them the nearest")
    if by_noise > _WORTH_NAMING:
        doubts.append("noise alone may have made groups this clear")
    return Sureness((1 - by_bar) * (1 - by_noise) * (1 - by_order), tuple(doubts))


def of_none(units: int, noise: float, step: float, nearly: float = 0.0) -> Sureness:
    """That there are no groups among `units` cores: how surely groups a `step` (log ratio) apart
    would have been found. `noise`: its bound; `nearly`: the clarity of the best rejected candidate,
    below 1."""
    if units < FEWEST:
        return Sureness(0.0, (f"too few cores to show groups: it takes {FEWEST}",))
    visible = least_chance(noise, min(_USUAL_CHIPLET, units // 2), units)
    times = step / visible if visible > 0 else math.inf
    hidden = 1 - 0.5 * times**1.5 if times < 1 else 0.5 / times**1.5
    by_order = order_doubt((units // 2, units - units // 2), units)
    doubts = []
    if hidden > 0.5:
        doubts.append(
            f"each figure may be off by {math.expm1(noise):.0%}, as the most similar PUs show, and "
            "that would hide chiplets"
        )
    return Sureness((1 - 0.5 * nearly**2) * (1 - hidden) * (1 - by_order), tuple(doubts))


def with_unequal(sure: float, share: float) -> float:
    """The confidence if the two directions of this share of the pairs differ much. That may be the
    home of a line, but then a figure is not that of a pair alone."""
    return sure * (1 - _UNEQUAL * share)


def agreeing(one: float, other: float) -> float:
    """The confidence in an answer that both support."""
    return 1 - (1 - one) * (1 - other)


def against(sure: float, other: float) -> float:
    """The confidence in an answer that something contradicts with the confidence `other`."""
    both = sure * other
    return sure * (1 - other) / (1 - both) if both < 1 else 0.5


def _pairs(members: int) -> int:
    return members * (members - 1) // 2


def _log_ways(sizes: Sequence[int], units: int) -> float:
    """Of choosing groups of these sizes."""
    ways = math.lgamma(units + 1) - math.lgamma(units - sum(sizes) + 1)
    ways -= sum(math.lgamma(size + 1) for size in sizes)
    return ways - sum(math.lgamma(count + 1) for count in Counter(sizes).values())


def _log_choose(total: int, chosen: int) -> float:
    return math.lgamma(total + 1) - math.lgamma(chosen + 1) - math.lgamma(total - chosen + 1)
