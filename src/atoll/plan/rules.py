"""The rules that a plan rests on, as data with their sources; those of `auto` are in plan.auto.

Sources:
- "Towards NUMA-Aware Distributed Query Engines" (A. Fogli, P. Pietzuch, D. Makreshanski,
  J. Giceva), cited as numa-distributed-engines;
- "OLAP on Modern Chiplet-Based Processors" (A. Fogli, B. Zhao, P. Pietzuch, M. Bandle,
  J. Giceva), cited as olap-on-chiplets.
"""

from __future__ import annotations

from collections.abc import Sequence

from atoll.plan.coordinator import CoordinatorChoice
from atoll.plan.memory import MemoryMap
from atoll.plan.request import Choices, sets_masks
from atoll.schema.plan import (
    CoordinatorKind,
    EngineTraits,
    HugePages,
    Malloc,
    MemoryPolicy,
    Placement,
    Policy,
    Reason,
    Slot,
    TaskThreads,
)
from atoll.schema.size import gib
from atoll.schema.text import plural

COUNTED = Reason(
    rule="requested count",
    text="The user set the number of instances; sizes differ by at most one core, and an "
    "instance stays within one chiplet and node wherever possible.",
    source="numa-distributed-engines, section IV-B; olap-on-chiplets, section 4.5.1",
)
COPIES = Reason(
    rule="copies",
    text="Each instance is a whole server with a full copy of the data; the query streams are "
    "distributed to them round-robin.",
    source="rule of this tool, not a measurement",
)
REST = Reason(
    rule="cores outside chiplets",
    text="Cores that belong to no chiplet form one more slot on their node.",
    source="rule of this tool, not a measurement",
)
PARTITIONS_PER_THREAD = 2


def about_concurrency(*, shuffles: bool) -> Reason:
    if not shuffles:
        return Reason(
            rule="equal concurrency",
            text="The total number of threads depends on the machine and not on the policy.",
            source="rule of this tool, not a measurement",
        )
    return Reason(
        rule="equal concurrency",
        text=f"The total number of threads, and {PARTITIONS_PER_THREAD} shuffle partitions per "
        "thread, depend on the machine and not on the policy.",
        source="Spark's tuning guide: 2 to 3 tasks per CPU core",
    )


def about_cores(*, smt: bool, has_smt: bool, masked: bool) -> Reason:
    if not has_smt:
        text = "The cores have one thread each."
    elif smt:
        text = "All threads of a core are used, as requested; analytical queries gained nothing."
    else:
        text = (
            "Physical cores only, one CPU each: analytical queries gained nothing from SMT overall."
        )
    if not masked:
        text += " Nothing limits wim to them: an engine that counts CPUs counts all of the machine."
    return Reason(rule="physical cores", text=text, source="numa-distributed-engines, section VI")


def about_memory(
    slots: Sequence[Slot], memory: MemoryMap, asked: MemoryPolicy | None, policy: Policy
) -> Reason:
    used = sorted({slot.memory_policy for slot in slots})
    source = "numa-distributed-engines, section IV-C"
    if asked is not None:
        text = f"{asked}, as requested."
        if policy is Policy.WIM:
            text += " With it, wim is no longer the engine's default deployment."
        source = "the user"
    elif used == [MemoryPolicy.BIND]:
        text = "Bound to the node of each instance, which was the best of three policies."
    elif used == [MemoryPolicy.INTERLEAVE]:
        text = "Interleaved over its nodes: an instance over several nodes has no local node."
    elif MemoryPolicy.INTERLEAVE in used:
        text = "Bound for instances on one node; interleaved for instances over several nodes."
    elif policy is Policy.WIM:
        text = "Nothing is set: the kernel's default, first touch."
    elif not memory.several:
        text = "One node with memory and CPUs, so there is nothing to choose: first touch."
    else:
        text = "The topology does not show which memory is local: first touch."
    return Reason(rule="memory policy", text=text, source=source)


def about_coordinator(choice: CoordinatorChoice | None, *, limited: bool) -> Reason:
    match choice.kind if choice else CoordinatorKind.SHARED:
        case CoordinatorKind.SHARED:
            where = "the plan's cores" if limited else "the machine"
            mask = "a mask of the plan's cores" if limited else "no mask"
            text = f"The coordinator has {mask} and may run anywhere on {where}."
        case CoordinatorKind.IN_WORKER:
            text = "The coordinator shares the CPUs of slot 0, as requested."
        case CoordinatorKind.RESERVED:
            text = "The coordinator has its own cores, the last of the machine, as requested."
    return Reason(
        rule="coordinator",
        text=text + " A coordinator that shared one core with an instance slowed queries to 0.65x.",
        source="olap-on-chiplets, section 4.2",
    )


def about_coordinators_heap(traits: EngineTraits, least_bytes: int) -> Reason:
    return Reason(
        rule="coordinator's heap",
        text=f"{gib(traits.coordinator_bytes)}: 1/{1 / traits.coordinator_ratio:.0f} of "
        f"the machine's memory, at least {gib(least_bytes)}, at most 31 GiB and, with its own "
        "place, a quarter of a node. It holds plans, statistics and results in transit, but no "
        "table data.",
        source="rule of this tool, not a measurement",
    )


def about_reserve(choices: Choices) -> list[Reason]:
    """Memory and cores for other services."""
    parts = [gib(size)] if (size := choices.get("reserve_bytes", 0)) else []
    if cores := choices.get("reserve_cores", 0):
        parts.append(f"the machine's first {'core' if cores == 1 else f'{cores} cores'}")
    text = f"{_sentence(' and '.join(parts))} reserved for other services, as requested."
    return [Reason(rule="other services", text=text, source="the user")] if parts else []


def about_first_cores(choices: Choices, policy: Policy) -> list[Reason]:
    """The limit to some cores, and the mask that it gives to WIM."""
    if not sets_masks(Policy.WIM, choices):
        return []
    text = "Every process has a mask of the plan's CPUs"
    if "cores" in choices:
        count = plural(choices["cores"], "core")
        text = (
            f"Only {count}, spread over all chiplets of their nodes"
            if choices.get("spread")
            else f"Only the first {count}, chiplet by chiplet and node by node"
        )
        text += "; the coordinator stays on them too"
    wim = "; wim gets a mask of them" if policy is Policy.WIM else ""
    return [Reason(rule="masked", text=f"{text}, as requested{wim}.", source="the user")]


def about_allocation(choices: Choices) -> list[Reason]:
    """The malloc and the huge pages of all processes."""
    parts = []
    if (malloc := choices.get("malloc", Malloc.SYSTEM)) is not Malloc.SYSTEM:
        parts.append(f"every process preloads {malloc}")
    if choices.get("thp", HugePages.SYSTEM) is HugePages.NEVER:
        parts.append("no process has transparent huge pages")
    if not parts:
        return []
    text = f"{_sentence(' and '.join(parts))}, as requested; the machine's settings stay."
    return [Reason(rule="allocation", text=text, source="the user")]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def about_threads(placement: Placement, threads: TaskThreads) -> Reason:
    order = "neighbours first" if placement is Placement.DENSE else "as far apart as possible first"
    who = (
        "the program's OpenMP runtime binds them (OMP_PLACES)"
        if threads.openmp
        else "Atoll binds them while it runs, also those that start later"
    )
    return Reason(
        rule="thread placement",
        text=f"Each thread that runs tasks gets one CPU of its slot, {order}, as requested; {who}.",
        source="the user",
    )


def about_coincidence(policy: Policy, others: Sequence[Policy], count: int | None) -> Reason:
    where = "On this machine" if count is None else f"With -n {count} on this machine"
    return Reason(
        rule="no choice",
        text=f"{where} {_listed([*others, policy])} give the same slots: comparing "
        "them would show nothing.",
        source="this machine's topology",
    )


def about_mask(policy: Policy, others: Sequence[Policy], *, all_cpus: bool) -> Reason:
    """Compares one instance with a mask and one without, which differ in nothing else."""
    if policy is Policy.WIM:
        text = (
            f"On this machine {_listed(others)} would also be one instance: the only "
            "difference is a CPU mask"
        )
    else:
        text = (
            f"On this machine wim is also one instance: the only difference from {policy} is "
            f"that wim sets no CPU mask, and {policy} sets one"
        )
    reach = (
        "that contains every CPU that this process may use anyway"
        if all_cpus
        else "that excludes CPUs that the plan does not use (SMT siblings, reserved cores)"
    )
    return Reason(
        rule="only the mask differs", text=f"{text} {reach}.", source="this machine's topology"
    )


def _listed(policies: Sequence[Policy]) -> str:
    """'win', 'win and wicp', 'win, wicp and wic'."""
    *most, last = policies
    return f"{', '.join(most)} and {last}" if most else str(last)
