"""Packs units into the fewest cores: the second phase of query-plan-deployment-poster. Pure.

First fit decreasing comes first. Then the emptiest cores are packed again into one core less, as
often as that works: by exchanges (`overfull`), else by an exact search (bin completion, after Korf,
'A New Algorithm for Optimal Bin Packing', AAAI 2002). If these are all cores and the search ends
within its limit, the result is proven.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from atoll.operators.loads import Core, Load, Room
from atoll.operators.overfull import repaired

SEARCHED = 80  # items that are packed again at once
STEPS = 4_000  # of the exact search
EVENINGS = 8
_SORTED = 50  # completions of a core that are tried fullest first


class Item(NamedTuple):
    size: int
    node: int | None = None  # on whose cores it must be


class Packed(NamedTuple):
    cores: list[list[int]]  # indices of the items
    fewest: int  # fewer cores cannot do


def pack(
    items: Sequence[Item],
    capacity: int,
    cores_of: dict[int, int],
    near: Sequence[Sequence[int]],
) -> Packed:
    """The fewest cores that we find, each filled up to `capacity`.

    No item is larger, and none is 0. Items of different nodes do not share a core, and the search
    gives those of a node at most `cores_of` it. `near`: the items with which each item exchanges
    most, those first; an item goes to the core of such a one if that costs no core. Then cores are
    filled evenly where first fit can, for up to 8,000 items. Takes n log n, and the search.
    """
    if not items:
        return Packed([], 0)
    bound = fewest(items, capacity)
    best = first_fit(items, capacity, near)
    if len(best) > bound and any(near):
        alone = first_fit(items, capacity, [()] * len(items))
        best = min(best, alone, key=len)
    while len(best) > bound:
        best.sort(key=lambda core: -sum(items[one].size for one in core))
        kept = len(best)
        while kept and sum(map(len, best[kept - 1 :])) <= SEARCHED:
            kept -= 1
        fewer, is_proven = _one_less(items, capacity, best[:kept], best[kept:], cores_of)
        if fewer is None:
            bound = len(best) if is_proven and not kept else bound
            break
        best[kept:] = fewer
    found = _even(items, capacity, len(best), cores_of, near) or best
    if not _nodes_hold(items, found, cores_of) and len(items) <= SEARCHED:
        found = _Search(items, capacity).pack(range(len(items)), len(best), cores_of) or found
    return Packed(found, bound)


def _nodes_hold(
    items: Sequence[Item], cores: Sequence[Sequence[int]], cores_of: dict[int, int]
) -> bool:
    """Whether each node has the cores that are filled with its items."""
    nodes = (node for core in cores for node in {items[one].node for one in core})
    used = Counter(node for node in nodes if node is not None)
    return all(count <= cores_of[node] for node, count in used.items())


def _even(
    items: Sequence[Item],
    capacity: int,
    count: int,
    cores_of: dict[int, int],
    near: Sequence[Sequence[int]],
) -> list[list[int]] | None:
    """In that number of cores, none filled more than must be: with the least capacity for which
    first fit needs no more. Full cores beside an empty one would let units wait for no gain."""
    sizes = [item.size for item in items]
    low, high = max(-(-sum(sizes) // count), *sizes), capacity
    best = None
    for _ in range(min(EVENINGS, 8_000 // len(items))):
        middle = (low + high) // 2
        found = first_fit(items, middle, near)
        if len(found) <= count and _nodes_hold(items, found, cores_of):
            best, high = found, middle
        else:
            low = middle + 1
    return best


def _one_less(
    items: Sequence[Item],
    capacity: int,
    kept: Sequence[Sequence[int]],
    cores: Sequence[Sequence[int]],
    cores_of: dict[int, int],
) -> tuple[list[list[int]] | None, bool]:
    """The items of `cores`, emptiest last, in one core less, if that is found; else whether there
    is no way. `kept`: the other cores."""
    if len(cores) < 2:
        return None, True
    if all(items[one].node is None for core in cores for one in core):
        fewer = [Core(0, list(core)) for core in cores[:-1]]
        for one in cores[-1]:
            min(
                fewer, key=lambda core: sum(items[other].size for other in core.units)
            ).units.append(one)
        loads = [Load(size=item.size) for item in items]
        if found := repaired(loads, capacity, [Room(len(fewer))], len(fewer), fewer):
            return [core.units for core in found], False
    left = dict(cores_of)
    for core in kept:
        for node in {items[one].node for one in core}:
            if node is not None:
                left[node] -= 1
    search = _Search(items, capacity)
    fewer_ = search.pack(list(chain(*cores)), len(cores) - 1, left)
    return fewer_, not search.gave_up


def fewest(items: Sequence[Item], capacity: int) -> int:
    """A bound: no packing has fewer cores. Martello and Toth's L2, for each node and for all."""
    nodes = {item.node for item in items} - {None}
    classes = sum(
        _fewest([one.size for one in items if one.node == node], capacity) for node in nodes
    )
    return max(classes, _fewest([one.size for one in items], capacity))


def _fewest(sizes: list[int], capacity: int) -> int:
    """Two bounds, by dual feasible functions: weights that no core can hold more than 1 of.

    Martello and Toth: for each k, what is over half of a core has one of its own, and what lies
    between k and that must find room beside it, or needs more. Fekete and Schepers: of what is
    above 1 / (k + 1) of a core, k fit.
    """
    sizes.sort(reverse=True)
    large = [size for size in sizes if 2 * size > capacity]
    small = sizes[len(large) :]
    best = max(len(large), -(-sum(sizes) // capacity), 1 if sizes else 0)
    beside = sum(capacity - size for size in large)
    rest = sum(small)
    full = 0
    for k in reversed(small):
        while full < len(large) and large[full] > capacity - k:
            beside -= capacity - large[full]
            full += 1
        best = max(best, len(large) + max(0, -(-(rest - beside) // capacity)))
        rest -= k
    for k in range(2, 6):
        weight = 0  # times k (k + 1)
        for size in sizes:
            parts, over = divmod((k + 1) * size, capacity)
            weight += parts * (k + 1 if over else k)
        best = max(best, -(-weight // (k * (k + 1))))
    return best


def first_fit(
    items: Sequence[Item], capacity: int, near: Sequence[Sequence[int]]
) -> list[list[int]]:
    """First fit decreasing, in n log n: those of nodes first, each node's on cores of their own."""
    order = sorted(range(len(items)), key=lambda one: -items[one].size)
    tags = dict.fromkeys(items[one].node for one in order)
    cores: list[list[int]] = []
    # Two neighbouring cores of one node together hold more than one core does.
    total = sum(item.size for item in items)
    rooms = _Rooms(min(len(items), 2 * total // capacity + 2 * len(tags)), capacity)
    core_of: dict[int, int] = {}
    for node in sorted(tags, key=lambda node: (node is None, node or 0)):
        first = 0 if node is None else len(cores)
        for one in order:
            if items[one].node != node:
                continue
            size = items[one].size
            for other in near[one]:
                core = core_of.get(other, -1)
                if core >= first and rooms.of(core) >= size:
                    break
            else:
                core = rooms.first(size, first)
            if core == len(cores):
                cores.append([])
            cores[core].append(one)
            core_of[one] = core
            rooms.take(core, size)
    return cores


class _Rooms:
    """What is free in each core, as a tree of maxima."""

    def __init__(self, most: int, capacity: int) -> None:
        self._leaves = 1 << max(most - 1, 0).bit_length()
        self._most = [capacity] * (2 * self._leaves)

    def of(self, core: int) -> int:
        return self._most[self._leaves + core]

    def take(self, core: int, size: int) -> None:
        most = self._most
        at = self._leaves + core
        most[at] -= size
        while at > 1:
            at //= 2
            left, right = most[2 * at], most[2 * at + 1]
            larger = left if left > right else right
            if most[at] == larger:
                break
            most[at] = larger

    def first(self, size: int, start: int) -> int:
        """The first core from `start` on with room. There is one, since unused cores count too."""
        at = self._leaves + start
        while self._most[at] < size:
            while at % 2:
                at //= 2
            at += 1
        while at < self._leaves:
            at = 2 * at if self._most[2 * at] >= size else 2 * at + 1
        return at - self._leaves


class _Search:
    """Bin completion: fills one core after the other, each with the largest item that is left and a
    set beside which no further item fits."""

    def __init__(self, items: Sequence[Item], capacity: int) -> None:
        self._items, self._capacity = items, capacity
        self._steps = STEPS
        self._failed: set[tuple[object, ...]] = set()  # what does not fit, with its cores

    @property
    def gave_up(self) -> bool:
        return self._steps <= 0

    def pack(
        self, chosen: Sequence[int], cores: int, cores_of: dict[int, int]
    ) -> list[list[int]] | None:
        """Those items in that number of cores; None: there is no way, or it gave up."""
        items = self._items
        order = sorted(chosen, key=lambda one: (-items[one].size, _tag(items[one])))
        return self._fill(order, cores, cores_of)

    def _fill(
        self, order: list[int], cores: int, cores_of: dict[int, int]
    ) -> list[list[int]] | None:
        if not order:
            return []
        items = [self._items[one] for one in order]
        seen = (*items, *cores_of.values())
        if seen in self._failed or fewest(items, self._capacity) > cores:
            return None
        rest = order[1:]
        sums = [0]  # of each item of the rest and all behind it
        for item in reversed(items[1:]):
            sums.append(sums[-1] + item.size)
        sums.reverse()
        room = self._capacity - items[0].size
        slack = cores * self._capacity - items[0].size - sums[0]
        found = self._completions(rest, sums, 0, room, items[0].node, slack, [])
        fullest = sorted(islice(found, _SORTED), key=lambda one: (one[0], one[2]))
        for _, node, chosen in chain(fullest, found):
            after = cores_of
            if node is not None:
                if not cores_of[node]:
                    continue
                after = cores_of | {node: cores_of[node] - 1}
            others = set(chosen)
            behind = [one for at, one in enumerate(rest) if at not in others]
            filled = self._fill(behind, cores - 1, after)
            if filled is not None:
                return [[order[0], *(rest[at] for at in chosen)], *filled]
        self._failed.add(seen)
        return None

    def _completions(
        self,
        rest: list[int],
        sums: list[int],
        start: int,
        room: int,
        node: int | None,
        slack: int,
        chosen: list[int],
    ) -> Iterator[tuple[int, int | None, tuple[int, ...]]]:
        """Sets of places in `rest` that leave at most `slack` of the core free, with what they
        leave and the core's node."""
        self._steps -= 1
        before: Item | None = None
        for at in range(start, len(rest)):
            if self.gave_up or room - sums[at] > slack:
                break
            item = self._items[rest[at]]
            if item.size > room or item == before or not _agree(item.node, node):
                continue
            before = item
            of = item.node if node is None else node
            chosen.append(at)
            yield from self._completions(rest, sums, at + 1, room - item.size, of, slack, chosen)
            chosen.pop()
        if room <= slack and not self.gave_up:
            others = set(chosen)
            smallest = (
                self._items[one].size
                for at, one in reversed(list(enumerate(rest)))
                if at not in others and self._items[one].node in (None, node)
            )
            if next(smallest, room + 1) > room:
                yield room, node, tuple(chosen)


def _agree(one: int | None, other: int | None) -> bool:
    return one is None or other is None or one == other


def _tag(item: Item) -> int:
    return -1 if item.node is None else item.node
