"""Finds SMT siblings, that is PUs of one core, before any other structure.

Siblings share the L1 cache, so a line need not move at all: 5 to 12 ns one way, against 15 ns and
more between cores of any known machine. Pairs are matched greedily, the fastest first. A pair is
certain if it is under the bound and clearly closer than the next best partners of both. If most
certain pairs follow one numbering rule (i and i + d), the rule completes the rest, including pairs
without a figure and disturbed ones. With four or eight threads per core no pairs stand out: the
threads are found as groups, and atoll.infer.classification recognises them by the same bound.

The fastest of all pairs is always faster than the next ones, so a pair also has to stand out of the
noise: by more than the largest of that many figures does (sigma sqrt(2 ln pairs)). Among two or
three PUs nothing shows the noise, and no pair is a core.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from atoll.infer.confidence import FEWEST, noise_bound

if TYPE_CHECKING:
    from atoll.infer.hierarchy import Floats, Group

PAIR_NS = 16.0  # slower pairs are two cores; the fastest measured L3 has 15, plus noise
_CLEAR = math.log(1.6)
_FAIR = math.log(1.25)
_SOME = math.log(1.1)  # for a pair that the numbering already supports
_RULE_SHARE = 0.8
_FEW = 0.05  # of the pairs of a rule, if nothing else supports them
_UNKNOWN_UNIT = math.log(1.5)  # bandwidth has no bound in ns, so only the contrast decides


def smt_pairs(cost: Floats, *, in_ns: bool) -> list[Group]:
    """Pairs of PUs of one core; empty if there are none."""
    size = len(cost)
    if size < FEWEST:
        return []
    bound = math.log(PAIR_NS) if in_ns else math.inf
    chance = noise_bound(cost) * math.sqrt(2 * math.log(size * (size - 1) / 2))
    clear = max(_CLEAR if in_ns else _UNKNOWN_UNIT, chance)
    matched = {pair: _contrast(cost, *pair) for pair in _match(cost)}
    certain = [p for p, contrast in matched.items() if contrast >= clear and cost[p] < bound]
    if not certain:
        return []
    ruled = _by_rule(cost, certain, bound)
    taken = {pu for pair in ruled for pu in pair}
    rest: list[Group] = [
        pair
        for pair, contrast in matched.items()
        if contrast >= _FAIR and cost[pair] < bound and taken.isdisjoint(pair)
    ]
    return sorted(ruled + rest)


def _match(cost: Floats) -> list[tuple[int, int]]:
    size = len(cost)
    upper = np.triu_indices(size, 1)
    order = np.argsort(cost[upper], kind="stable")
    free = np.ones(size, dtype=bool)
    pairs = []
    for i, j in zip(upper[0][order].tolist(), upper[1][order].tolist(), strict=True):
        if free[i] and free[j]:
            free[i] = free[j] = False
            pairs.append((i, j))
    return pairs


def _contrast(cost: Floats, i: int, j: int) -> float:
    """The average contrast to the two next best partners of both."""
    third = np.delete(np.arange(len(cost)), [i, j])
    shared = np.sort((cost[i, third] + cost[j, third]) / 2)
    return float(shared[:2].mean() - cost[i, j])


def _by_rule(cost: Floats, certain: list[tuple[int, int]], bound: float) -> list[Group]:
    """The certain pairs; all pairs of the numbering rule if nearly all certain pairs follow it."""
    steps = [j - i for i, j in certain]
    step = max(set(steps), key=steps.count)
    following = {i for i, j in certain if j - i == step}
    if len(following) < max(2, _RULE_SHARE * len(certain)):
        return list(certain)
    # Blocks of `step` first threads, each before the block of its second threads.
    first = min(following)
    starts = [i for i in range(first, len(cost) - step) if (i - first) % (2 * step) < step]
    if not following <= set(starts):
        return list(certain)
    paired = {i for i in starts if i in following or _is_likely(cost, i, i + step, bound)}
    paired |= _disturbed(cost, starts, paired, step)
    ruled: list[Group] = [(i, i + step) for i in sorted(paired)]
    taken = {pu for pair in ruled for pu in pair}
    return [*ruled, *(pair for pair in certain if taken.isdisjoint(pair))]


def _is_likely(cost: Floats, i: int, j: int, bound: float) -> bool:
    fast = cost[i, j] < min(bound, _usual(cost, i, j) - _SOME)
    return bool(fast) and _contrast(cost, i, j) >= _SOME - _FAIR


def _disturbed(cost: Floats, starts: list[int], paired: set[int], step: int) -> set[int]:
    """Pairs of the rule whose figure does not show it, lost or disturbed, if the pairs before and
    after are known. At either end they may also be cores without SMT (hybrids). There the pair must
    be close, all PUs must follow the rule, and hardly another pair may be missing."""
    whole = len(cost) == 2 * len(starts)
    few = len(starts) - len(paired) <= max(1, int(_FEW * len(starts)))
    disturbed = set()
    for before, i, after in zip([None, *starts], starts, [*starts[1:], None], strict=False):
        if i in paired:
            continue
        near = cost[i, i + step] < _usual(cost, i, i + step) - _SOME
        if (before in paired and after in paired) or (whole and few and near):
            disturbed.add(i)
    return disturbed


def _usual(cost: Floats, i: int, j: int) -> float:
    """The cost of a fast pair with another core for these two: the lower quartile."""
    third = np.delete(np.arange(len(cost)), [i, j])
    return float(np.quantile((cost[i, third] + cost[j, third]) / 2, 0.25))
