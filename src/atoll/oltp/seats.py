"""The seats to compare: a server on the fewest chiplets, and one spread over them. Pure.

arcas-runtime section 5.6 calls them LocalCache and DistributedCache. A server gets n cores and n
clients, so each core has a session to run. Both seats take their cores from the same NUMA nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from atoll.bench.sameness import same_place
from atoll.plan.planner import comparable, make_plan
from atoll.schema.machine import Machine
from atoll.schema.oltp import OltpSeat
from atoll.schema.plan import EngineTraits, Plan, Policy
from atoll.schema.text import plural

Seat = tuple[OltpSeat, Plan]


def default_cores(machine: Machine) -> tuple[int, ...]:
    """Half of the cores: the rest is for the driver, and leaves a choice of chiplets."""
    return (max(1, len(machine.allowed_cores) // 2),)


def make_seats(
    machine: Machine, traits: EngineTraits, cores: Sequence[int]
) -> tuple[list[Seat], list[str]]:
    """Both seats for each number of cores, merged if they are the same cores, and notes.

    Raises UsageError if the machine has fewer cores, or too little memory.
    """
    seats: list[Seat] = []
    notes: list[str] = []
    for count in dict.fromkeys(cores):
        packed, spread = comparable(
            [
                partial(make_plan, machine, traits, Policy.WIM, cores=count, spread=spread)
                for spread in (False, True)
            ]
        )
        alike = same_place(packed, spread, machine)
        used = {cpu for plan in (packed, spread) for cpu in _cpus(plan)}
        free = tuple(
            cpu for core in machine.allowed_cores if used.isdisjoint(core.pus) for cpu in core.pus
        )
        seats.append((_seat("packed", count, packed, free, alike=alike), packed))
        if not alike:
            seats.append((_seat("spread", count, spread, free, alike=False), spread))
        else:
            why = "the chiplets are not known" if not machine.chiplets else _why(packed, count)
            notes.append(f"spread/cores={count} is packed/cores={count} here: {why}")
        if not free:
            notes.append(
                f"cores={count}: no core is left for the driver, so it shares the server's"
            )
    return seats, notes


def _why(packed: Plan, count: int) -> str:
    if count == 1:
        return "1 core is on 1 chiplet"
    chiplets = len(packed.slots[0].chiplets)
    return f"{plural(count, 'core')} of {plural(chiplets, 'chiplet')} are all that there are"


def _seat(
    placement: str, count: int, plan: Plan, free: tuple[int, ...], *, alike: bool
) -> OltpSeat:
    (slot,) = plan.slots
    return OltpSeat.model_validate(
        {
            "placement": placement,
            "also": ("spread",) if alike else (),
            "cores": count,
            "cpus": _cpus(plan),
            "chiplets": slot.chiplets,
            "heap_bytes": slot.heap_bytes,
            "driver_cpus": free or _cpus(plan),
        }
    )


def _cpus(plan: Plan) -> tuple[int, ...]:
    (slot,) = plan.slots
    assert slot.cpus is not None  # a number of cores gives every policy a mask
    return slot.cpus
