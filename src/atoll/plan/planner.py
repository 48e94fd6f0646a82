"""Makes a plan from a machine, an engine's traits and a policy: every instance's place and why.

The deployment policies and the sizes follow numa-distributed-engines (sections III-A, IV-B to
IV-D, VI) and olap-on-chiplets (sections 3.2, 4.2, 4.4, 4.5.1). Planning is pure and without
randomness, so the same input gives the same plan. Slots are disjoint, and together they contain
every usable core except the coordinator's. Total threads, total heap and shuffle partitions do not
depend on the policy if the machine permits that; otherwise the plan warns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Unpack

from atoll.errors import UsageError
from atoll.plan import rules
from atoll.plan.auto import choose
from atoll.plan.capacity import NO_DEMAND, Demand, check_demand
from atoll.plan.capacity_rules import about_capacity
from atoll.plan.cautions import warnings
from atoll.plan.coordinator import (
    place_coordinator,
    reserve,
    with_coordinator_sized,
)
from atoll.plan.cores import Group, first_cores, spread_cores, usable_places, without_reserved
from atoll.plan.fitting import fitting_heaps, most_with_room
from atoll.plan.identity import machine_id
from atoll.plan.locality import about_locality
from atoll.plan.memory import place_memory
from atoll.plan.network import (
    Listen,
    about_exposure,
    about_network,
    about_rates,
    deal,
    refuse_deaf,
)
from atoll.plan.policies import POLICIES, divide
from atoll.plan.request import Choices, Request, make_request, sets_masks
from atoll.plan.sizing import Heaps
from atoll.plan.threads import thread_order
from atoll.schema.machine import Machine
from atoll.schema.plan import (
    Asked,
    EngineTraits,
    HugePages,
    Malloc,
    MemoryPolicy,
    Placement,
    Plan,
    Policy,
    Slot,
    TaskThreads,
)

# CPUs (None: no mask), memory policy, memory nodes: two slots with equal values are one place.
Seat = tuple[tuple[int, ...] | None, MemoryPolicy, tuple[int, ...]]


def make_plan(
    machine: Machine,
    traits: EngineTraits,
    asked: str,
    *,
    heap_limit_bytes: int | None = None,
    demand: Demand = NO_DEMAND,
    listen: Listen = (),
    **choices: Unpack[Choices],
) -> Plan:
    """The plan for `asked`, a policy or 'auto'.

    `heap_limit_bytes` limits the total heap, unless the user chooses each instance's. The plan
    warns if it lacks the room for `demand`. Raises UsageError if the machine or the engine cannot
    satisfy the request.
    """
    question = _known(asked)
    check_demand(demand, traits)
    refuse_deaf(listen, traits)
    least_bytes = traits.coordinator_bytes
    own_choice, count = choices.get("coordinator"), choices.get("count")
    traits = with_coordinator_sized(
        traits, machine, own_choice, reserve_bytes=choices.get("reserve_bytes", 0)
    )
    usable = without_reserved(
        usable_places(machine, smt=choices.get("smt", False)), choices.get("reserve_cores", 0)
    )
    if "cores" in choices:
        take = spread_cores if choices.get("spread") else first_cores
        usable = take(usable, choices["cores"])
    places, own = reserve(usable, own_choice, traits)

    def request_of(policy: Policy, count: int | None) -> Request:
        own_choices = Choices(**{**choices, "count": count})
        return make_request(
            machine, traits, policy, own_choices, heap_limit_bytes, demand, listen, places, own
        )

    if question == "auto":
        request, groups, heaps, rule = choose(traits, places, count, request_of)
    else:
        request, rule = request_of(question, count), POLICIES[question].reason
        groups = divide(question, places, count)
        heaps = fitting_heaps(request, groups)
    policy, traits, memory = request.policy, request.traits, request.memory
    placement = choices.get("placement", Placement.NONE)
    if not sets_masks(policy, choices) and placement is not Placement.NONE:
        raise UsageError(
            f"--placement {placement}: wim sets no mask, so its threads have no places; "
            "for one instance with a mask use --policy win -n 1"
        )
    task_threads = None if placement is Placement.NONE else _task_threads(traits, placement)
    slots = _slots(request, groups, heaps, auto=question == "auto")
    same, mask_only = _coincidences(request, slots)
    if request.choices.get("count") != count:
        same = ()  # auto's own number is of its policy alone
    reasons = [rule]
    if count is not None and policy is not Policy.WIM:
        reasons.append(rules.COUNTED)
    if same:
        reasons.append(rules.about_coincidence(policy, same, count))
    if mask_only:
        used = {cpu for place in places for cpu in place.cpus}
        all_cpus = used.issuperset(machine.allowed.pus)
        reasons.append(rules.about_mask(policy, mask_only, all_cpus=all_cpus))
    if not traits.distributed and len(slots) > 1:
        reasons.append(rules.COPIES)
    if policy is Policy.WICP and count is None and _has_rest(places):
        reasons.append(rules.REST)
    reasons += [
        rules.about_cores(
            smt=choices.get("smt", False),
            has_smt=machine.smt,
            masked=sets_masks(policy, choices),
        ),
        rules.about_memory(slots, memory, choices.get("memory"), policy),
        *about_capacity(request, slots, heaps),
        *about_locality(machine, policy, slots, traits, demand),
        rules.about_concurrency(shuffles=traits.shuffles),
    ]
    reasons += rules.about_reserve(choices)
    reasons += rules.about_first_cores(choices, policy)
    reasons += rules.about_allocation(choices)
    if task_threads is not None:
        reasons.append(rules.about_threads(placement, task_threads))
    if traits.has_coordinator:
        reasons.append(rules.about_coordinator(own_choice, limited="cores" in choices))
        if traits.coordinator_ratio:
            reasons.append(rules.about_coordinators_heap(traits, least_bytes))
    if listen:
        reasons.append(about_network(listen, machine, slots))
    threads = sum(slot.threads for slot in slots)
    return Plan(
        engine=traits.name,
        policy=policy,
        asked=question,
        placement=placement,
        task_threads=task_threads,
        smt=choices.get("smt", False),
        malloc=choices.get("malloc", Malloc.SYSTEM),
        thp=choices.get("thp", HugePages.SYSTEM),
        slots=slots,
        coordinator=place_coordinator(
            own_choice, traits, own, memory, slots[0], anywhere=usable if "cores" in choices else ()
        ),
        total_threads=threads,
        total_heap_bytes=sum(heaps.sizes_bytes),
        shuffle_partitions=rules.PARTITIONS_PER_THREAD * threads if traits.shuffles else None,
        coincides_with=same,
        reasons=tuple(reasons),
        warnings=(
            *warnings(request, slots, heaps, lambda: most_with_room(request, len(slots))),
            *about_exposure(listen),
            *about_rates(listen, machine, slots),
        ),
        machine=machine.summary,
        machine_id=machine_id(machine),
    )


def comparable(planners: Sequence[Callable[..., Plan]]) -> list[Plan]:
    """Calls `make_plan`s that lack only `heap_limit_bytes`, so that their total heaps are equal,
    unless the user chooses the heap of each instance (for a benchmark).

    If one plan cannot reach the total of the others (a heap cut for compressed pointers), the
    others are reduced to it.
    """
    limit: int | None = None
    while True:
        plans = [planner(heap_limit_bytes=limit) for planner in planners]
        least = min(plan.total_heap_bytes for plan in plans)
        if least == limit or all(plan.total_heap_bytes == least for plan in plans):
            return plans
        limit = least


def _known(asked: str) -> Asked:
    if asked == "auto":
        return "auto"
    try:
        return Policy(asked)
    except ValueError:
        raise UsageError(
            f"unknown policy {asked!r}; choose from {', '.join(('auto', *Policy))}"
        ) from None


def _task_threads(traits: EngineTraits, placement: Placement) -> TaskThreads:
    found = traits.task_threads
    if isinstance(found, str):
        raise UsageError(
            f"--placement {placement}: Atoll cannot bind the threads of {traits.name} one by one: "
            f"{found}; use --placement none"
        )
    return found


def _slots(
    request: Request, groups: Sequence[Group], heaps: Heaps, *, auto: bool
) -> tuple[Slot, ...]:
    masked = request.policy is not Policy.WIM
    choices = request.choices
    memory_asked = choices.get("memory")
    if auto and not masked and memory_asked is None and request.memory.several:
        # A single server over several nodes: every thread reads all of its memory.
        memory_asked = MemoryPolicy.INTERLEAVE
    homes = [tuple(sorted({p.node for p in group if p.node is not None})) for group in groups]
    listening = deal(request.listen, request.machine, homes)
    seats = _seats(request, groups, request.policy, memory_asked)
    slots: list[Slot] = []
    for index, (group, seat, heap) in enumerate(zip(groups, seats, heaps.sizes_bytes, strict=True)):
        where = listening[index]
        slots.append(
            Slot(
                index=index,
                cpus=seat[0],
                thread_cpus=thread_order(group, choices.get("placement", Placement.NONE)),
                cores=len(group),
                threads=sum(len(place.cpus) for place in group),
                memory_policy=seat[1],
                memory_nodes=seat[2],
                nodes=homes[index],
                chiplets=tuple(sorted({p.chiplet for p in group if p.chiplet is not None})),
                packages=tuple(sorted({p.package for p in group if p.package is not None})),
                memory_bytes=request.memory.share_bytes(group),
                heap_bytes=heap,
                address=where.address if where else None,
                nic=where.nic if where else None,
            )
        )
    return tuple(slots)


def _seats(
    request: Request, groups: Sequence[Group], policy: Policy, asked: MemoryPolicy | None
) -> list[Seat]:
    masked = sets_masks(policy, request.choices)
    if policy is Policy.WIM and masked and asked is None:
        asked = MemoryPolicy.FIRST_TOUCH  # only what the user requested is set
    return [
        (
            tuple(sorted(cpu for place in group for cpu in place.cpus)) if masked else None,
            *place_memory(request.memory, group, asked, machine_wide=not masked),
        )
        for group in groups
    ]


def _coincidences(
    request: Request, slots: Sequence[Slot]
) -> tuple[tuple[Policy, ...], tuple[Policy, ...]]:
    """(policies that give the same slots here, policies of one slot that differ only by a mask)."""
    seats = {(slot.cpus, slot.memory_policy, slot.memory_nodes) for slot in slots}
    memories = _without_masks(seats)
    same: list[Policy] = []
    mask_only: list[Policy] = []
    for other in Policy:
        if other is request.policy:
            continue
        try:
            groups = divide(other, request.places, request.choices.get("count"))
        except UsageError:
            continue  # impossible with this count
        if len(groups) != len(slots):
            continue
        other_seats = set(_seats(request, groups, other, request.choices.get("memory")))
        if other_seats == seats:
            same.append(other)
        elif Policy.WIM in (other, request.policy) and _without_masks(other_seats) == memories:
            mask_only.append(other)
    return tuple(same), tuple(mask_only)


def _without_masks(seats: Collection[Seat]) -> tuple[MemoryPolicy, tuple[int, ...]] | None:
    """The memory of a plan's only seat; None if there are several."""
    return next(seat[1:] for seat in seats) if len(seats) == 1 else None


def _has_rest(places: Group) -> bool:
    outside = sum(place.chiplet is None for place in places)
    return 0 < outside < len(places)
