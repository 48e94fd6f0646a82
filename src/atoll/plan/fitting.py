"""Sizes the heaps of a division; finds how many instances would fit if these do not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from atoll.errors import UsageError
from atoll.plan.capacity import fits
from atoll.plan.cores import Group
from atoll.plan.policies import divide
from atoll.plan.request import Request
from atoll.plan.sizing import Heaps, asked_heaps, shortfall, size_heaps
from atoll.schema.plan import Policy
from atoll.schema.size import gib


def fitting_heaps(request: Request, groups: Sequence[Group]) -> Heaps:
    """The heaps of `groups`. Raises UsageError with the number of instances that would fit."""
    memory, traits = request.memory, request.traits
    heaps = _sized(request, groups)
    lack = shortfall(heaps, traits)
    if not lack:
        return heaps
    if (heap_bytes := request.choices.get("heap_bytes")) is not None:
        raise UsageError(f"--heap {gib(heap_bytes)}: {lack}; request more")
    fewer = _most(request, len(groups), lambda _, heaps: not shortfall(heaps, traits))
    if fewer:
        raise UsageError(
            f"{lack}: {len(groups)} instances do not fit in {gib(memory.budget_bytes)} "
            f"({memory.limited_by}); use -n {fewer} or fewer"
        )
    raise UsageError(
        f"{lack}: not even one instance fits in {gib(memory.budget_bytes)} "
        f"({memory.limited_by}); "
        + ("request less there" if traits.asked_bytes else "give the process more memory")
    )


def _sized(request: Request, groups: Sequence[Group]) -> Heaps:
    shares = [request.memory.share_bytes(group) for group in groups]
    if (heap_bytes := request.choices.get("heap_bytes")) is not None:
        return asked_heaps(heap_bytes, shares, request.traits)
    return size_heaps(shares, request.traits, request.heap_limit_bytes)


def most_with_room(request: Request, too_many: int) -> int:
    """The most instances below `too_many` that have room for the demand; 0: not even one."""

    def has_room(groups: Sequence[Group], heaps: Heaps) -> bool:
        threads = [sum(len(place.cpus) for place in group) for group in groups]
        return not shortfall(heaps, request.traits) and fits(
            heaps.sizes_bytes, threads, request.demand, request.traits
        )

    return _most(request, too_many, has_room)


def _most(request: Request, too_many: int, suits: Callable[[Sequence[Group], Heaps], bool]) -> int:
    """The most instances below `too_many` that suit; 0: not even one.

    Uses bisection, since fewer instances have larger heaps: dividing a thousand cores takes
    a tenth of a second.
    """
    # wim takes no count.
    policy = Policy.WIN if request.policy is Policy.WIM else request.policy
    most = 0
    while too_many - most > 1:
        count = (most + too_many) // 2
        groups = divide(policy, request.places, count)
        if suits(groups, _sized(request, groups)):
            most = count
        else:
            too_many = count
    return most
