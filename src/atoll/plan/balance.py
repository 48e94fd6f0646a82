"""Divides cores into N worker instances of equal size that cross as few borders as possible.

The rule is that of the papers (numa-distributed-engines section IV-B, olap-on-chiplets section
4.5.1): each of N instances gets C/N cores, if possible from a single chiplet and NUMA node. This
module makes it exact: sizes differ by at most one core; among all such divisions the number of
instances that cross a NUMA node is minimal, and among those the number that cross a chiplet.

Instances come in two sizes only, q = C div N and q+1, so a node or a chiplet is a knapsack for
two kinds of items, and a small dynamic programme gives an exact answer. Instances that do not fit
whole are put together from the remaining cores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from atoll.plan.cores import Group, Place, group_by


class Count(NamedTuple):
    """How many instances of each size."""

    big: int  # of q+1 cores
    small: int  # of q cores


@lru_cache(maxsize=8)  # a plan needs the same division again to see which policies coincide
def partition(places: Group, count: int) -> tuple[Group, ...]:
    """Divides `places` into `count` groups, 1 <= count <= len(places). Deterministic."""
    size, big = divmod(len(places), count)
    limit = Count(big, count - big)
    nodes = [
        list(group_by(members, lambda place: place.chiplet).values())
        for members in group_by(places, lambda place: place.node).values()
    ]
    shapes = [tuple(len(chiplet) for chiplet in node) for node in nodes]
    groups: list[Group] = []
    left: list[Place] = []
    placed = Count(0, 0)
    for node, inside in zip(nodes, _per_node(shapes, size, limit), strict=True):
        groups += _fill_node(node, size, inside, left)
        placed = Count(placed.big + inside.big, placed.small + inside.small)
    rest = Count(limit.big - placed.big, limit.small - placed.small)
    groups += _take(iter(left), size, rest)
    return tuple(groups)


def _fill_node(
    chiplets: Sequence[Sequence[Place]], size: int, inside: Count, left: list[Place]
) -> list[Group]:
    """Makes `inside` groups from one node's chiplets, as many as possible within one chiplet."""
    groups: list[Group] = []
    across: list[Place] = []
    rest_big, rest_small = inside
    capacities = tuple(len(chiplet) for chiplet in chiplets)
    for chiplet, most in zip(chiplets, _per_chiplet(capacities, size, inside), strict=True):
        within = Count(most.big, min(most.small, rest_small))
        cores = iter(chiplet)
        groups += _take(cores, size, within)
        rest_big, rest_small = rest_big - within.big, rest_small - within.small
        across += cores
    cores = iter(across)
    groups += _take(cores, size, Count(rest_big, rest_small))
    left += cores
    return groups


def _take(cores: Iterator[Place], size: int, count: Count) -> list[Group]:
    """The next groups of `cores`, the larger ones first."""
    sizes = [size + 1] * count.big + [size] * count.small
    return [tuple(islice(cores, wanted)) for wanted in sizes]


# ---- Number of instances that fit whole ---------------------------------------------------


@lru_cache(maxsize=256)
def _frontiers(capacities: tuple[int, ...], size: int, big: int) -> tuple[tuple[int, ...], ...]:
    """Row d, entry a: most small instances with `a` big ones in the first d domains; -1: none."""
    row = (0,) + (-1,) * big
    rows = [row]
    for capacity in capacities:
        best = [-1] * (big + 1)
        for used, small in enumerate(row):
            if small < 0:
                continue
            for a in range(min(capacity // (size + 1), big - used) + 1):
                best[used + a] = max(best[used + a], small + (capacity - a * (size + 1)) // size)
        row = tuple(best)
        rows.append(row)
    return tuple(rows)


@lru_cache(maxsize=4096)
def _most_inside(capacities: tuple[int, ...], size: int, limit: Count) -> tuple[int, int]:
    """(most instances that fit whole in one domain each, how many of them are big)."""
    last = _frontiers(capacities, size, limit.big)[-1]
    return max(
        ((big + min(small, limit.small), big) for big, small in enumerate(last) if small >= 0)
    )


def _per_chiplet(capacities: tuple[int, ...], size: int, limit: Count) -> list[Count]:
    """Instances that fit whole in each chiplet; the small ones may exceed `limit` in total."""
    rows = _frontiers(capacities, size, limit.big)
    big = _most_inside(capacities, size, limit)[1]
    chosen: list[Count] = []
    for capacity, before, after in zip(
        reversed(capacities), reversed(rows[:-1]), reversed(rows[1:]), strict=True
    ):
        a, small = next(
            (a, small)
            for a in range(min(capacity // (size + 1), big) + 1)
            if before[big - a] >= 0
            and before[big - a] + (small := (capacity - a * (size + 1)) // size) == after[big]
        )
        chosen.append(Count(a, small))
        big -= a
    return chosen[::-1]


def _per_node(shapes: Sequence[tuple[int, ...]], size: int, limit: Count) -> list[Count]:
    """Instances that fit whole in each node: most in total, then most of them within a chiplet.

    The states are the counts used so far. Few instances cross a node (for some division fewer than
    there are nodes), so few cores are left over, which prunes the search.
    """
    crossing = sum(limit) - _most_inside(tuple(map(sum, shapes)), size, limit)[0]
    spare = crossing * (size + 1)
    # Counts so far -> (instances within a chiplet, the choice for each node so far).
    states: dict[Count, tuple[int, tuple[Count, ...]]] = {Count(0, 0): (0, ())}
    filled = 0
    for shape in shapes:
        capacity = sum(shape)
        filled += capacity
        following: dict[Count, tuple[int, tuple[Count, ...]]] = {}
        for used, (score, choices) in states.items():
            for big in range(min(capacity // (size + 1), limit.big - used.big) + 1):
                room = (capacity - big * (size + 1)) // size
                for small in range(min(room, limit.small - used.small), -1, -1):
                    now = Count(used.big + big, used.small + small)
                    if filled - now.big * (size + 1) - now.small * size > spare:
                        break
                    choice = Count(big, small)
                    value = score + _most_inside(shape, size, choice)[0]
                    if now not in following or value > following[now][0]:
                        following[now] = (value, (*choices, choice))
        states = following
    wanted = sum(limit) - crossing
    return list(
        max(
            (state for used, state in states.items() if sum(used) == wanted),
            key=lambda state: state[0],
        )[1]
    )
