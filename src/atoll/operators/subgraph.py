"""The places of a machine that are best connected: the densest subgraph of k items, the third phase
of query-plan-deployment-poster. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop
from itertools import combinations
from math import comb, fsum
from typing import NamedTuple

MOST_SUBSETS = 200_000  # up to this many, all are tried

Weights = Sequence[Sequence[float]]  # symmetric: how well two places are connected


class Subset(NamedTuple):
    places: tuple[int, ...]  # sorted
    weight: float  # of all pairs in it
    most: float  # no subset that might come after it weighs more


def densest(
    weights: Weights, size: int, needed: frozenset[int], merit: Sequence[float]
) -> Iterator[Subset]:
    """Subsets of that number of places that have all `needed` ones, the densest first; of equally
    dense ones that whose places have most merit.

    All of them if there are at most MOST_SUBSETS. Else one, found by peeling off the place that is
    connected worst and by exchanging places while that helps; `most` is then Charikar's bound
    ('Greedy Approximation Algorithms for Finding Dense Components in a Graph', APPROX 2000).
    """
    others = [place for place in range(len(weights)) if place not in needed]
    free = size - len(needed)
    if free < 0:
        return
    if comb(len(others), free) > MOST_SUBSETS:
        yield _peeled(weights, size, needed, merit)
        return
    ranked = []
    for chosen in combinations(others, free):
        places = tuple(sorted((*needed, *chosen)))
        # Exact sums: of the same links in another order they are the same.
        weight = fsum([weights[a][b] for a, b in combinations(places, 2)])
        ranked.append((-weight, -fsum([merit[one] for one in places]), places))
    heapify(ranked)
    while ranked:
        weight, _, places = heappop(ranked)
        yield Subset(places, -weight, -weight)


def _peeled(weights: Weights, size: int, needed: frozenset[int], merit: Sequence[float]) -> Subset:
    left = set(range(len(weights)))
    links = [sum(weights[one][other] for other in left if other != one) for one in left]
    total = sum(links) / 2
    density = total / len(left)
    while len(left) > 1:
        peelable = (left - needed if len(left) > size else left) or left
        worst = min(peelable, key=lambda one: (links[one], merit[one], one))
        if len(left) == size:
            kept = set(left)
        left.remove(worst)
        total -= links[worst]
        for other in left:
            links[other] -= weights[other][worst]
        density = max(density, total / len(left))
    return _exchanged(weights, kept, needed, 2 * density * size)


def _exchanged(weights: Weights, kept: set[int], needed: frozenset[int], most: float) -> Subset:
    """Exchanges a place in it for one outside while that gains weight."""

    def link(one: int, without: int) -> float:
        return sum(weights[one][other] for other in kept if other not in (one, without))

    while True:
        gain, out, new = max(
            (link(new, out) - link(out, out), -out, -new)
            for out in kept - needed
            for new in range(len(weights))
            if new not in kept
        )
        if gain <= 1e-9 * most:
            break
        kept.remove(-out)
        kept.add(-new)
    places = tuple(sorted(kept))
    return Subset(places, sum(weights[a][b] for a, b in combinations(places, 2)), most)
