"""The order in which threads take a slot's CPUs.

Dense keeps neighbours together, so that few chiplets are busy. Sparse spreads threads over nodes,
chiplets and cores first and SMT siblings last, so that caches and memory channels are shared as
late as possible (the two ends of the spread that olap-on-chiplets section 4.4 compares).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from atoll.plan.cores import Group, Place, group_by
from atoll.schema.plan import Placement


def thread_order(group: Group, placement: Placement) -> tuple[int, ...]:
    """All CPUs of `group` in the order of `placement`; empty for none."""
    match placement:
        case Placement.NONE:
            return ()
        case Placement.DENSE:
            return tuple(cpu for place in sorted(group) for cpu in place.cpus)
        case Placement.SPARSE:
            cores = [place.cpus for place in _spread(sorted(group))]
            return tuple(cpu for turn in zip_longest(*cores) for cpu in turn if cpu is not None)


def _spread(places: Sequence[Place]) -> list[Place]:
    by_node = group_by(places, lambda place: (place.package, place.node)).values()
    nodes = [
        _alternate(list(group_by(members, lambda place: place.chiplet).values()))
        for members in by_node
    ]
    return _alternate(nodes)


def _alternate(lists: Sequence[Sequence[Place]]) -> list[Place]:
    """The first of each list, then the second of each, and so on."""
    return [place for turn in zip_longest(*lists) for place in turn if place is not None]
