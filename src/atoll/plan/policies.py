"""The deployment policies: which cores form which worker instance.

WIM, WIN, WIC: numa-distributed-engines section III-A; WICP: olap-on-chiplets section 3.2;
WICP-mixed: its section 4.4; SPMWIN: numa-distributed-engines section IV-D.

Every policy gives disjoint groups that together contain all given places, in the order of their
first cores. Without a count, WIN and WICP use nodes and chiplets as they are, however unequal, and
under WICP the cores outside any chiplet form one more group on their node. With a count, sizes
differ by at most one core.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain, cycle
from typing import NamedTuple

from atoll.errors import UsageError
from atoll.plan.balance import partition
from atoll.plan.cores import Group, Place, group_by
from atoll.schema.plan import Policy, Reason


def divide(policy: Policy, places: Group, count: int | None) -> list[Group]:
    """The groups of `policy`. Raises UsageError if it cannot have `count` instances."""
    if count is not None:
        _check_count(policy, len(places), count)
    groups = POLICIES[policy].divide(places, count)
    return sorted(groups, key=lambda group: group[0].core)


def _by_node(places: Group, count: int | None) -> list[Group]:
    if count is not None:
        return list(partition(places, count))
    return list(map(tuple, group_by(places, lambda place: place.node).values()))


def _by_chiplet(places: Group, count: int | None) -> list[Group]:
    return by_chiplet(places) if count is None else list(partition(places, count))


def _by_core(places: Group, count: int | None) -> list[Group]:
    return [(place,) for place in places] if count is None else list(partition(places, count))


def _spread(places: Group, count: int | None) -> list[Group]:
    count = count or len(group_by(places, lambda place: place.node))
    return _deal(places, _even(len(places), count))


def by_chiplet(places: Sequence[Place]) -> list[Group]:
    """One group per chiplet, and one more per node for the cores outside any chiplet."""
    groups = group_by(
        places, lambda place: (place.chiplet, place.node if place.chiplet is None else None)
    )
    return list(map(tuple, groups.values()))


def _check_count(policy: Policy, cores: int, count: int) -> None:
    if count < 1:
        raise UsageError(f"-n {count}: a plan needs at least one worker instance")
    if count > cores:
        raise UsageError(
            f"-n {count}: the plan has {cores} usable cores and every instance needs its own; "
            f"use -n {cores} or fewer"
        )
    if policy is Policy.WIM and count != 1:
        raise UsageError(
            f"-n {count}: wim is one instance for the machine; for {count} instances use "
            "--policy win, wicp or wic"
        )


def _mixed(places: Group, count: int | None) -> list[Group]:
    """As many slots per node as WICP has there, each with cores of all the node's chiplets."""
    regions = _regions(places)
    if count is None:
        return [
            group
            for region in regions
            for group in _deal(region, _even(len(region), len(by_chiplet(region))))
        ]
    region_of = {place.core: number for number, region in enumerate(regions) for place in region}
    shares = [
        Counter(region_of[place.core] for place in group) for group in partition(places, count)
    ]
    slots: list[Group] = [()] * count
    for number, region in enumerate(regions):
        dealt = _deal(region, [share[number] for share in shares])
        slots = [slot + more for slot, more in zip(slots, dealt, strict=True)]
    return slots


def _regions(places: Group) -> list[Group]:
    """The nodes' cores; nodes that share a chiplet (users may define such) are one region."""
    merged: list[set[int | None]] = []
    for chiplet in by_chiplet(places):
        nodes = {place.node for place in chiplet}
        apart = [region for region in merged if region.isdisjoint(nodes)]
        touched = [region for region in merged if not region.isdisjoint(nodes)]
        merged = [*apart, nodes.union(*touched)]
    return [tuple(place for place in places if place.node in region) for region in merged]


def _even(cores: int, slots: int) -> list[int]:
    size, big = divmod(cores, slots)
    return [size + (slot < big) for slot in range(slots)]


def _deal(places: Sequence[Place], quotas: Sequence[int]) -> list[Group]:
    """Deals cores like cards, node by node and chiplet by chiplet, so that every slot gets its
    share of each; `quotas` is the total number of cards for each slot."""
    slots: list[list[Place]] = [[] for _ in quotas]
    order = group_by(places, lambda place: (place.node, place.chiplet)).values()
    turn = cycle(range(len(quotas)))
    for place in chain.from_iterable(order):
        slot = next(slot for slot in turn if len(slots[slot]) < quotas[slot])
        slots[slot].append(place)
    return [tuple(slot) for slot in slots]


class Definition(NamedTuple):
    """How a policy divides cores, and the rule that `atoll plan --explain` prints for it."""

    divide: Callable[[Group, int | None], list[Group]]  # `count` may be None: by the policy's rule
    reason: Reason


# To add a policy: name it in schema.policy.Policy and define it here (docs/plan.md).
POLICIES = {
    Policy.WIM: Definition(
        lambda places, _: [places],
        Reason(
            rule="one instance per machine",
            text="One instance has the whole machine, without a mask: the engine's default.",
            source="numa-distributed-engines, section III-A (1)",
        ),
    ),
    Policy.WIN: Definition(
        _by_node,
        Reason(
            rule="one instance per NUMA node",
            text="Each instance has one NUMA node, whatever its size, and the node's memory.",
            source="numa-distributed-engines, sections III-A (2) and IV-C",
        ),
    ),
    Policy.WICP: Definition(
        _by_chiplet,
        Reason(
            rule="one instance per chiplet",
            text="Each instance has one chiplet, whatever its size, and the memory of its node.",
            source="olap-on-chiplets, section 3.2 (3)",
        ),
    ),
    Policy.WICP_MIXED: Definition(
        _mixed,
        Reason(
            rule="as many instances as chiplets, mixed",
            text="Each instance has cores of all its node's chiplets: more L3, but shared.",
            source="olap-on-chiplets, section 4.4",
        ),
    ),
    Policy.WIC: Definition(
        _by_core,
        Reason(
            rule="one instance per core",
            text="Each instance has one physical core.",
            source="numa-distributed-engines, section III-A (3)",
        ),
    ),
    Policy.SPMWIN: Definition(
        _spread,
        Reason(
            rule="as many instances as nodes, spread",
            text="Each instance has cores of all nodes: the control experiment for win.",
            source="numa-distributed-engines, section IV-D",
        ),
    ),
}
