"""The usable cores with their positions: the planner's view of a machine.

A core is usable if the affinity mask and the cgroup allow at least one of its PUs. Only its lowest
allowed PU is used unless SMT is requested: numa-distributed-engines section VI finds no overall
gain from hyper-threads in analytical queries and uses only physical cores.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from itertools import zip_longest
from typing import NamedTuple, TypeVar

from atoll.errors import UsageError
from atoll.schema.machine import Machine
from atoll.schema.text import plural

Key = TypeVar("Key", bound=Hashable)


class Place(NamedTuple):
    """A usable core."""

    core: int  # logical index: neighbours in the machine have neighbouring numbers
    cpus: tuple[int, ...]  # the CPUs that a slot gets with it; the first is the lowest allowed
    node: int | None  # OS index
    chiplet: int | None
    package: int | None


Group = tuple[Place, ...]  # the cores of one slot


def usable_places(machine: Machine, *, smt: bool) -> Group:
    """All usable cores in the machine's order. Raises UsageError if there is none."""
    chiplet_of = {core: chiplet.index for chiplet in machine.chiplets for core in chiplet.cores}
    places = tuple(
        Place(
            core=core.index,
            cpus=core.pus if smt else core.pus[:1],
            node=core.node,
            chiplet=chiplet_of.get(core.index),
            package=core.package,
        )
        for core in machine.allowed_cores
    )
    if not places:
        raise UsageError(
            "this process may use no core of the machine; widen its CPU mask or cgroup"
        )
    return places


def without_reserved(places: Group, cores: int) -> Group:
    """The places without the machine's first `cores`, which other services get. The first, since
    a system's own work tends to run there. Raises UsageError if none would be left."""
    if not 0 <= cores < len(places):
        raise UsageError(
            f"--reserve-cores {cores}: the machine has {len(places)} usable cores and the engine "
            "needs at least one; reserve fewer"
        )
    return places[cores:]


def first_cores(places: Group, cores: int) -> Group:
    """The first `cores` of the places: node by node, and in a node chiplet by chiplet, so that a
    scalability curve fills one chiplet after the other (olap-on-chiplets section 4.3). Cores
    outside any chiplet come last on their node. Raises UsageError if there are fewer."""
    if not 1 <= cores <= len(places):
        raise UsageError(
            f"cores={cores}: the plan has {plural(len(places), 'usable core')}; use 1 to "
            f"{len(places)}"
        )
    ordered = [
        place
        for on_node in group_by(places, lambda place: (place.package, place.node)).values()
        for chiplet in _chiplets_first(on_node)
        for place in chiplet
    ]
    return tuple(sorted(ordered[:cores]))


def spread_cores(places: Group, cores: int) -> Group:
    """As many cores of each node as `first_cores` takes, dealt over all chiplets of the node: one
    of each, then a second one. So the two differ in chiplets alone (arcas-runtime section 5.6).
    Raises UsageError if there are fewer."""
    wanted = Counter((place.package, place.node) for place in first_cores(places, cores))
    return tuple(
        sorted(
            place
            for node, on_node in group_by(places, lambda p: (p.package, p.node)).items()
            for place in _dealt(on_node)[: wanted[node]]
        )
    )


def _dealt(places: Iterable[Place]) -> list[Place]:
    rounds = zip_longest(*_chiplets_first(places))
    return [place for cards in rounds for place in cards if place is not None]


def _chiplets_first(places: Iterable[Place]) -> list[list[Place]]:
    chiplets = group_by(places, lambda place: place.chiplet)
    outside = chiplets.pop(None, [])
    return [*chiplets.values(), outside]


def group_by(places: Iterable[Place], key: Callable[[Place], Key]) -> dict[Key, list[Place]]:
    """Places by `key`, keys in the order of their first core."""
    groups: dict[Key, list[Place]] = {}
    for place in places:
        groups.setdefault(key(place), []).append(place)
    return groups
