"""Finds nested levels, nearest first: finds the smallest islands, folds each into one, repeats.

Folding keeps the machine's own order (L3 groups inside quadrants inside packages) and makes the
upper levels more certain, because the distance of two folded groups is the mean of all pairs
between them. Groups are judged one by one, so one package may have islands where another has none,
each at its own latency.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from atoll.infer.evidence import Evidence, weigh
from atoll.infer.hierarchy import Group, average_linkage, partitions, profile_distance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from atoll.infer.hierarchy import Floats

_MOST_LEVELS = 6
_MOST_PARTS = 16  # tiles to search by spectrum; more show in the trees or not at all
_LEAST_TO_PART = 8  # units; smaller sets give no useful average
# A split must be a fair part of the split that encloses it: the scatter inside an L3 group is a
# tenth of the step out of it. Folded groups have almost no scatter left.
_SHARE_OF_PARENT = 0.25
_SHARE_OF_PARENT_FOLDED = 0.10
_LONE_BAR = math.log(1.5)  # a machine seldom has one group among cores without any
_LONE_PAIR_BAR = math.log(2.0)  # and hardly ever one lone pair, which rests on one figure
_PEERS = 3
_PEER_CLARITY = 0.7
_CLEAR_SHARE = 0.75
_OTHER_SIZE = 4
_PAIR_BAR = math.log(1.4)  # a group of two rests on one figure


@dataclass(frozen=True)
class Bars:
    """The least contrasts, as log ratios, by the kind of measurement."""

    first: float  # between single cores
    folded: float  # between groups, where noise has averaged out


@dataclass(frozen=True)
class Island:
    members: Group
    evidence: Evidence
    clarity: float


@dataclass(frozen=True)
class Found:
    tiers: tuple[tuple[Island, ...], ...]  # nearest first
    nearly: float  # clarity of the best rejected candidate among single cores; below 1


def find_levels(cost: Floats, bars: Bars) -> Found:
    """The levels of `cost`, which is symmetric without NaN off the diagonal."""
    units: list[Group] = [(i,) for i in range(len(cost))]
    folded = cost
    tiers: list[tuple[Island, ...]] = []
    nearly = 0.0
    while len(units) > 2 and len(tiers) < _MOST_LEVELS:
        bar = bars.folded if tiers else bars.first
        islands, refused = _islands(folded, bar, first=not tiers)
        if not tiers:
            nearly = refused
            islands = _look_closer(folded, islands, bar)
            if len(islands) == 1 and not _stands_alone(islands[0]):
                islands = []
        if not islands:
            break
        tiers.append(tuple(_unfold(island, units) for island in islands))
        inside = {unit for island in islands for unit in island.members}
        rest = [unit for index, unit in enumerate(units) if index not in inside]
        units = rest + [island.members for island in tiers[-1]]
        folded = fold(cost, units)
    return Found(tuple(tiers), nearly)


def _stands_alone(island: Island) -> bool:
    bar = _LONE_BAR if len(island.members) > 2 else _LONE_PAIR_BAR
    return island.evidence.margin(bar) >= 1.0


def fold(cost: Floats, units: Sequence[Group]) -> Floats:
    """Mean cost between units; NaN on the diagonal."""
    of_unit = np.zeros((len(units), len(cost)))
    for row, unit in enumerate(units):
        of_unit[row, list(unit)] = 1.0 / len(unit)
    plain = np.where(np.eye(len(cost), dtype=bool), 0.0, cost)
    result: Floats = of_unit @ plain @ of_unit.T
    result = (result + result.T) / 2
    np.fill_diagonal(result, np.nan)
    return result


def usual_noise(cost: Floats) -> float:
    """The noise of one figure: how much the rows of two PUs that see the machine alike differ."""
    size = len(cost)
    if size < 4:
        return 0.05  # too few to estimate: what a careful tool reaches on a busy machine
    distance = profile_distance(cost)
    np.fill_diagonal(distance, np.inf)
    twin = distance.argmin(axis=1)
    away = []
    for i in range(size):
        third = np.delete(np.arange(size), sorted({i, int(twin[i])}))
        apart = cost[i, third] - cost[twin[i], third]
        away.append(np.abs(apart - np.median(apart)))
    return 1.4826 * float(np.median(np.concatenate(away))) / math.sqrt(2)


def _islands(cost: Floats, bar: float, *, first: bool) -> tuple[list[Island], float]:
    """The smallest islands of the tree that shows more, all disjoint."""
    best: list[Island] = []
    nearly = 0.0
    noise = usual_noise(cost)
    trees = [average_linkage(cost)]
    if len(cost) >= 4:
        trees.append(average_linkage(profile_distance(cost)))
    for tree in trees:
        weighed = _weigh_tree(cost, tree, bar, noise, first=first)
        nearly = max([nearly, *(i.clarity for i in weighed if i.clarity < 1.0)])
        chosen = _smallest([island for island in weighed if island.clarity >= 1.0])
        chosen = _with_peers(cost, chosen, weighed)
        if _worth(chosen) > _worth(best):
            best = chosen
    return best, nearly


def _weigh_tree(
    cost: Floats, tree: list[tuple[Group, int]], bar: float, noise: float, *, first: bool
) -> list[Island]:
    islands = []
    share = _SHARE_OF_PARENT if first else _SHARE_OF_PARENT_FOLDED
    enclosing = [0.0] * len(tree)  # the largest contrast of the group itself or of one around it
    for index in reversed(range(len(tree))):  # parents before their children
        group, parent = tree[index]
        around = enclosing[parent] if parent >= 0 else 0.0
        enclosing[index] = around
        evidence = weigh(cost, group, noise, folded=not first)
        if evidence is None:
            continue
        least = max(bar, share * around, _PAIR_BAR if first and len(group) == 2 else 0.0)
        clarity = evidence.clarity(least)
        if clarity >= 1.0:
            enclosing[index] = max(around, evidence.contrast)
        islands.append(Island(group, evidence, clarity))
    return islands


def _look_closer(cost: Floats, islands: list[Island], bar: float) -> list[Island]:
    """Adds parts, of the whole and of large islands, whose contrast is below the noise of a pair,
    and members that the trees left outside of the island to which they belong."""
    flat = _parts(cost, tuple(range(len(cost))), bar)
    if _worth(flat) > _worth(islands):
        islands = flat
    result = []
    for island in islands:
        result.extend(_parts(cost, island.members, bar) or [island])
    return _adopted(cost, result, bar)


def _adopted(cost: Floats, islands: list[Island], bar: float) -> list[Island]:
    """Adds single units to the island to which they are as close as its members, if it stays clear:
    noise leaves some out of a tree. If a unit is slower than the members to all others, it was
    disturbed while measured, and that much is forgiven."""
    noise = usual_noise(cost)
    result = list(islands)
    alone = set(range(len(cost))) - {unit for island in islands for unit in island.members}
    for unit in sorted(alone):
        slower = [_slower(cost, unit, island.members) for island in result]
        reach = [
            float(cost[unit, list(island.members)].mean()) - slow
            for island, slow in zip(result, slower, strict=True)
        ]
        best = min(range(len(result)), key=reach.__getitem__, default=None)
        if best is None or len(result[best].members) < 3:
            continue
        own = cost[np.ix_(result[best].members, result[best].members)]
        if reach[best] > float(np.nanmean(own)) + result[best].evidence.contrast / 2:
            continue
        evened = cost.copy()
        evened[unit] -= slower[best]
        evened[:, unit] -= slower[best]
        grown = tuple(sorted((*result[best].members, unit)))
        evidence = weigh(evened, grown, noise)
        clarity = evidence.clarity(bar) if evidence else 0.0
        if evidence is not None and clarity >= 1.0:
            result[best] = Island(grown, evidence, clarity)
    return result


def _slower(cost: Floats, unit: int, members: Group) -> float:
    others = np.setdiff1d(np.arange(len(cost)), (*members, unit))
    if not len(others):
        return 0.0
    members_mean = cost[np.ix_(np.array(members), others)].mean()
    return max(0.0, float(cost[unit, others].mean() - members_mean))


def _parts(cost: Floats, members: Group, bar: float) -> list[Island]:
    if len(members) < _LEAST_TO_PART:
        return []
    index = np.array(members)
    inner = cost[np.ix_(index, index)]
    noise = usual_noise(inner)
    best: list[Island] = []
    for groups in partitions(inner, min(_MOST_PARTS, len(members) // 3)):
        sizes = sorted(map(len, groups))
        if sizes[-1] >= _OTHER_SIZE * sizes[(len(sizes) - 1) // 2]:
            continue
        islands = []
        for group in groups:
            evidence = weigh(inner, group, noise)
            clarity = evidence.clarity(bar) if evidence else 0.0
            if evidence is None or clarity < (_PEER_CLARITY if len(groups) > _PEERS else 1.0):
                break
            islands.append(Island(tuple(int(index[i]) for i in group), evidence, clarity))
        clear = sum(island.clarity >= 1.0 for island in islands)
        whole = len(islands) == len(groups) and clear >= _CLEAR_SHARE * len(groups)
        if whole and _worth(islands) > _worth(best):
            best = islands
    return best


def _smallest(islands: list[Island]) -> list[Island]:
    chosen: list[Island] = []
    taken: set[int] = set()
    for island in sorted(islands, key=lambda i: (len(i.members), i.members)):
        if taken.isdisjoint(island.members):
            chosen.append(island)
            taken.update(island.members)
    return chosen


def _with_peers(cost: Floats, chosen: list[Island], weighed: list[Island]) -> list[Island]:
    """Lets three similar groups make up for what a group lacks. A group many times their size, as
    wide inside as the distance between them, is a separate level: it is found again after these
    are folded."""
    if len(chosen) < _PEERS:
        return chosen
    sizes = sorted(len(island.members) for island in chosen)
    usual = sizes[(len(sizes) - 1) // 2]
    inside = {i.members: float(np.nanmean(cost[np.ix_(i.members, i.members)])) for i in chosen}
    small = [i for i in chosen if len(i.members) < _OTHER_SIZE * usual]
    nearest_step = min(i.evidence.contrast for i in small)
    limit = float(np.median([inside[i.members] for i in small])) + nearest_step / 2
    chosen = [i for i in chosen if i in small or inside[i.members] < limit]
    taken = {unit for island in chosen for unit in island.members}
    likely = [
        island
        for island in weighed
        if _PEER_CLARITY <= island.clarity < 1.0
        and usual <= len(island.members) <= sizes[-1]
        and taken.isdisjoint(island.members)
    ]
    return chosen + _smallest(likely)


def _worth(islands: list[Island]) -> float:
    """How much a method found, to compare methods."""
    return sum(i.evidence.contrast * math.sqrt(len(i.members)) for i in islands)


def _unfold(island: Island, units: Sequence[Group]) -> Island:
    members = tuple(sorted(pu for unit in island.members for pu in units[unit]))
    return Island(members, island.evidence, island.clarity)
