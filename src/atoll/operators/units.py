"""Operators as the units that are packed: chains whose neighbours never run at once, replicas,
single ones.

The first phase of query-plan-deployment-poster: pipelines that can be temporally ordered become one
scheduling unit. The paper does not say when they can be; the rules here are Atoll's own
(docs/operators.md). Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from atoll.errors import UsageError
from atoll.schema.operator_graph import BUSY, Activity, GraphOperator, OperatorGraph
from atoll.schema.text import first_of

MOST_OVERLAP = 0.1  # of the windows, in which both may be busy
SCALE = 10**9  # duties as integers, whose sums do not depend on their order


_Flow = tuple[int, int, float]  # giver, taker, bytes/s


class Unit(NamedTuple):
    """What is placed on one core. `size` is the part of the core that it needs, times SCALE."""

    operators: tuple[int, ...]  # in the order of the data; indices of `Operators.all`
    size: int
    replica: int
    replicas: int
    duty: float
    peak: float | None
    memory_gbs: float | None
    cache_bytes: float
    node: int | None  # on whose cores it must be


class Operators:
    """The operators of a graph in an order that depends neither on their order in the file nor, but
    for operators that look alike in every way, on their names.

    Raises UsageError if they depend on each other in a circle.
    """

    def __init__(self, graph: OperatorGraph) -> None:
        at = {one.id: place for place, one in enumerate(graph.operators)}
        carried_by: defaultdict[tuple[int, int], float] = defaultdict(float)
        for edge in graph.edges:  # several from one operator to another count as one
            known = edge.bytes_per_s
            carried_by[at[edge.giver], at[edge.taker]] += known.value if known else 0.0
        flows = [(giver, taker, carried) for (giver, taker), carried in carried_by.items()]
        _refuse_cycles(graph.operators, flows)
        looks = _looks(graph.operators, flows)
        ids = (one.id for one in graph.operators)
        order = [old for _, _, old in sorted(zip(looks, ids, at.values(), strict=True))]
        rank = [0] * len(order)
        for new, old in enumerate(order):
            rank[old] = new
        self.all: tuple[GraphOperator, ...] = tuple(graph.operators[old] for old in order)
        self.flows: list[_Flow] = sorted(
            (rank[giver], rank[taker], carried) for giver, taker, carried in flows
        )
        self.overlaps = {
            (rank[at[one.giver]], rank[at[one.taker]]): one.share for one in graph.overlaps
        }
        # Of each, a duty as an integer; 0 where it is not known.
        self.sizes = [
            max(1, round(one.activity.duty.value * SCALE)) if one.activity else 0
            for one in self.all
        ]

    def activity(self, one: int) -> Activity:
        found = self.all[one].activity
        assert found is not None  # `require_activity` was called
        return found

    def require_activity(self) -> None:
        """Raises UsageError."""
        if missing := [one.id for one in self.all if one.activity is None]:
            raise UsageError(
                f"the graph does not say how busy these operators are: {first_of(missing, 5)}; "
                "measure them with 'atoll operators profile', or write their duty into the file"
            )

    def chains(
        self, capacity: int, may: Callable[[int, int], bool] = lambda giver, taker: True
    ) -> list[list[int]]:
        """Operators joined into units that fit `capacity`, those that exchange most first.

        Two neighbours are joined if neither has another neighbour between them, if they never run
        at once, and if `may` allows it. Units are chains, so the graph of units has no circle. Each
        chain is in the order of the data. Takes n log n.
        """
        takers, givers = [0] * len(self.all), [0] * len(self.all)
        for giver, taker, _ in self.flows:
            takers[giver] += 1
            givers[taker] += 1
        joinable = [
            (giver, taker, carried)
            for giver, taker, carried in self.flows
            if takers[giver] == givers[taker] == 1 and self._take_turns(giver, taker)
        ]
        chain_of = [[one] for one in range(len(self.all))]
        size = list(self.sizes)  # of a chain, at its first operator
        for giver, taker, _ in sorted(joinable, key=lambda flow: -flow[2]):
            if not may(giver, taker):
                continue
            before, after = chain_of[giver], chain_of[taker]
            nodes = {self.all[one].node for one in (*before, *after)} - {None}
            if size[before[0]] + size[after[0]] > capacity or len(nodes) > 1:
                continue
            size[before[0]] += size[after[0]]
            before += after
            for one in after:
                chain_of[one] = before
        return [chain for one, chain in enumerate(chain_of) if chain[0] == one]

    def _take_turns(self, giver: int, taker: int) -> bool:
        """Whether they are hardly ever busy at once. A measured overlap comes first."""
        measured = self.overlaps.get((giver, taker))
        if measured is not None:
            return measured <= MOST_OVERLAP
        return self.all[giver].blocking or self._idle(giver) or self._idle(taker)

    def _idle(self, one: int) -> bool:
        """Whether it can be busy in few windows only: by its 95th percentile, or by Markov's
        inequality."""
        activity = self.activity(one)
        if activity.duty.value <= BUSY * MOST_OVERLAP:
            return True
        return activity.peak is not None and activity.peak.value <= BUSY

    def units(self, chains: Sequence[Sequence[int]], capacity: int) -> list[Unit]:
        """The chains as units; an operator above the capacity as replicas, if it can be divided.

        Duties and GB/s are averages, so those of a chain add, and so does what it keeps in caches.
        Its neighbours are never busy at once, but others may be, so the peak is the largest sum of
        operators of which no two are neighbours.
        """
        found = []
        for chain in chains:
            size = sum([self.sizes[one] for one in chain])
            parallel = self.all[chain[0]].parallel and len(chain) == 1
            replicas = -(-size // capacity) if parallel else 1
            known = [self.activity(one) for one in chain]
            peak = _peak(known)
            memory_gbs = [one.memory_gbs.value for one in known if one.memory_gbs is not None]
            nodes = {self.all[one].node for one in chain} - {None}
            first = Unit(
                operators=tuple(chain),
                size=-(-size // replicas),
                replica=0,
                replicas=replicas,
                duty=sum([one.duty.value for one in known]) / replicas,
                peak=None if peak is None else peak / replicas,
                memory_gbs=sum(memory_gbs) / replicas if memory_gbs else None,
                cache_bytes=sum([one.cache_bytes or 0 for one in known]) / replicas,
                node=nodes.pop() if nodes else None,
            )
            found.append(first)
            found += [first._replace(replica=one) for one in range(1, replicas)]
        return found

    def traffic(self, units: Sequence[Unit]) -> dict[tuple[int, int], float]:
        """Bytes/s between two units, the lower number first. Replicas share evenly."""
        units_of = [range(0)] * len(self.all)
        for at, unit in enumerate(units):
            for one in unit.operators if unit.replica == 0 else ():  # the others follow it
                units_of[one] = range(at, at + unit.replicas)
        found: defaultdict[tuple[int, int], float] = defaultdict(float)
        for one, other, carried in self.flows:
            givers, takers = units_of[one], units_of[other]
            each = carried / (len(givers) * len(takers))
            for giver in givers if each else ():
                for taker in takers:
                    if giver != taker:
                        found[(giver, taker) if giver < taker else (taker, giver)] += each
        return found


def _peak(chain: Sequence[Activity]) -> float | None:
    """What a chain may use at once: the largest sum of peaks of which no two are neighbours'. An
    unknown one counts as 0; None if all are."""
    if all(one.peak is None for one in chain):
        return None
    with_last, without_last = 0.0, 0.0
    for one in chain:
        peak = one.peak.value if one.peak is not None else 0.0
        with_last, without_last = without_last + peak, max(with_last, without_last)
    return max(with_last, without_last)


def _looks(operators: Sequence[GraphOperator], flows: Sequence[_Flow]) -> list[int]:
    """A number for how each operator and its neighbourhood look (Weisfeiler and Leman's
    refinement, three rounds)."""
    found = [hash(_figures(one)) for one in operators]
    for _ in range(3):
        near = [0] * len(found)  # a sum does not depend on the order of the neighbours
        for giver, taker, carried in flows:
            near[giver] += hash((0, carried, found[taker]))
            near[taker] += hash((1, carried, found[giver]))
        found = list(map(hash, zip(found, near, strict=True)))
    return found


def _figures(one: GraphOperator) -> tuple[float, ...]:
    """Only numbers: hashes of words and of None differ from run to run."""
    flags = (one.blocking, one.parallel, one.node is None)
    if one.activity is None:
        return flags
    known = (one.activity.duty, one.activity.peak, one.activity.memory_gbs)
    cache = one.activity.cache_bytes
    return (
        *flags,
        *(-1 if each is None else each.value for each in known),
        -1 if cache is None else cache,
    )


def _refuse_cycles(operators: Sequence[GraphOperator], flows: Sequence[_Flow]) -> None:
    takers: list[list[int]] = [[] for _ in operators]
    waits = [0] * len(operators)
    for giver, taker, _ in flows:
        takers[giver].append(taker)
        waits[taker] += 1
    ready = [one for one, count in enumerate(waits) if not count]
    while ready:
        for taker in takers[ready.pop()]:
            waits[taker] -= 1
            if not waits[taker]:
                ready.append(taker)
    left = {one for one, count in enumerate(waits) if count}
    if not left:
        return
    # Every operator that is left has a giver that is left, so going back ends in a circle.
    giver_of = {taker: giver for giver, taker, _ in flows if giver in left and taker in left}
    path = [min(left)]
    while path[-1] not in path[:-1]:
        path.append(giver_of[path[-1]])
    circle = path[path.index(path[-1]) :][::-1]
    names = first_of([operators[one].id for one in circle], 8, " -> ")
    raise UsageError(
        f"the operators depend on each other in a circle: {names}; a graph of operators must have "
        "a first and a last one"
    )
