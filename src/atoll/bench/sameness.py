"""Whether two entrants, or two plans, differ only in name. Pure."""

from __future__ import annotations

from atoll.schema.machine import Machine
from atoll.schema.plan import Plan
from atoll.schema.results import Entrant


def coincide(one: Entrant, other: Entrant, machine: Machine) -> bool:
    """Whether two entrants differ only in name. Clusters never do."""
    if one.plan is None or other.plan is None:
        return False
    run = one.scheduler, one.streams, one.knobs, _nics(one)
    if run != (other.scheduler, other.streams, other.knobs, _nics(other)):
        return False
    return same_deployment(one.plan, other.plan, machine)


def _nics(entrant: Entrant) -> set[str | None]:
    """The rates of NICs that it stands for: no part of a plan."""
    return {cell.values.get("nic") for cell in entrant.cells}


def same_deployment(one: Plan, other: Plan, machine: Machine) -> bool:
    """Whether two plans differ only in name."""

    def sizes(plan: Plan) -> list[tuple[int, str]]:
        return sorted((slot.heap_bytes, slot.address or "") for slot in plan.slots)

    return same_place(one, other, machine) and sizes(one) == sizes(other)


def same_place(one: Plan, other: Plan, machine: Machine) -> bool:
    """Whether two plans have equal slots with equal CPUs and memory nodes, and equal malloc.

    A mask of all CPUs equals no mask.
    """
    everything = frozenset(machine.allowed.pus)

    def coordinator(plan: Plan) -> object:
        place = plan.coordinator
        whole = place is not None and place.cpus is not None and everything <= {*place.cpus}
        return place.model_copy(update={"cpus": None}) if place and whole else place

    def seats(plan: Plan) -> set[object]:
        return {
            (
                frozenset(slot.cpus) if slot.cpus is not None else everything,
                slot.memory_policy,
                slot.memory_nodes,
                slot.threads,
                slot.thread_cpus,
                slot.parallel_gc_threads,
                slot.concurrent_gc_threads,
            )
            for slot in plan.slots
        }

    return (
        one.engine == other.engine
        and one.cluster == other.cluster
        and len(one.slots) == len(other.slots)
        and seats(one) == seats(other)
        and coordinator(one) == coordinator(other)
        and (one.malloc, one.thp) == (other.malloc, other.thp)
    )
