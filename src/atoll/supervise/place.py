"""The command line that places a process in a slot of the plan, and checks that the plan fits.

Pure except for `refuse_unfit`, which reads through a host what the machine allows now.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from atoll.errors import NotPermitted, UsageError
from atoll.host.api import Host
from atoll.host.procfs import status_field
from atoll.probing.allocators import library_of
from atoll.schema.cpulist import format_cpulist, parse_cpulist
from atoll.schema.deployment import ProcessSpec
from atoll.schema.machine import Machine, Summary
from atoll.schema.plan import HugePages, Malloc, MemoryPolicy, Plan
from atoll.schema.text import plural

_MEMORY_FLAG = {
    MemoryPolicy.BIND: "-m",
    MemoryPolicy.PREFERRED: "-p",
    MemoryPolicy.INTERLEAVE: "-i",
    MemoryPolicy.WEIGHTED_INTERLEAVE: "-w",
}


def placed_argv(launcher: str, plan: Plan, process: ProcessSpec) -> list[str]:
    """The command of `process`, run by atoll-exec with the mask and memory policy of its slot, and
    with the deployment's malloc and huge pages."""
    flags = place_flags(plan, process)
    if plan.malloc is not Malloc.SYSTEM:
        flags += ["--malloc", plan.malloc]
    if plan.thp is HugePages.NEVER:
        flags += ["--no-thp"]
    return [launcher, *flags, "--", *process.argv]


def place_flags(plan: Plan, process: ProcessSpec) -> list[str]:
    """The mask and the memory policy of its slot, in flags that numactl takes too."""
    flags: list[str] = []
    if process.slot is not None:
        slot = plan.slots[process.slot]
        if slot.cpus is not None:
            flags += ["-C", format_cpulist(slot.cpus)]
        if slot.memory_policy is MemoryPolicy.LOCAL:
            flags += ["-l"]
        elif slot.memory_policy in _MEMORY_FLAG:
            flags += [_MEMORY_FLAG[slot.memory_policy], format_cpulist(slot.memory_nodes)]
    elif plan.coordinator is not None:
        if plan.coordinator.cpus is not None:
            flags += ["-C", format_cpulist(plan.coordinator.cpus)]
        if plan.coordinator.memory_nodes:
            flags += ["-m", format_cpulist(plan.coordinator.memory_nodes)]
    return flags


def plan_cpus(plan: Plan) -> frozenset[int]:
    """Every CPU that the plan names."""
    places = [slot.cpus for slot in plan.slots]
    if plan.coordinator is not None:
        places.append(plan.coordinator.cpus)
    return frozenset(cpu for cpus in places if cpus is not None for cpu in cpus)


def plan_nodes(plan: Plan) -> frozenset[int]:
    """Every memory node that the plan names."""
    named = [node for slot in plan.slots for node in slot.memory_nodes]
    if plan.coordinator is not None:
        named += plan.coordinator.memory_nodes
    return frozenset(named)


def refuse_foreign(plan: Plan, machine: Machine) -> None:
    """Raises UsageError if the plan was made for another machine, NotPermitted if this machine only
    lacks CPUs that went offline."""
    from atoll.plan.identity import machine_id  # with all of plan: the keeper does without

    here = machine_id(machine)
    if plan.machine_id == here:
        return
    # First, because a machine without some of its CPUs looks like another one.
    if offline := plan_cpus(plan) & frozenset(machine.offline_cpus):
        raise _offline(offline, machine.pus)
    asleep = f", CPUs {format_cpulist(machine.offline_cpus)} offline" * bool(machine.offline_cpus)
    raise UsageError(
        f"the plan was made for another machine ({plan.machine_id}: {counts(plan.machine)}), not "
        f"for this one ({here}: {counts(machine.summary)}{asleep}); make a plan for this machine "
        "with 'atoll plan'"
    )


def counts(summary: Summary) -> str:
    """'2 packages, 2 NUMA nodes, 16 chiplets, 128 cores'."""
    return ", ".join(
        plural(count, noun)
        for count, noun in (
            (summary.packages, "package"),
            (summary.numa_nodes, "NUMA node"),
            (summary.chiplets, "chiplet"),
            (summary.cores, "core"),
        )
    )


def _offline(cpus: Iterable[int], online: Iterable[int]) -> NotPermitted:
    return NotPermitted(
        f"CPUs {format_cpulist(cpus)} of the plan are offline or do not exist "
        f"(online: {format_cpulist(online)}); bring them online or make a new plan"
    )


def _refuse_addresses(plan: Plan, host: Host) -> None:
    if not plan.addresses:
        return
    here = {address for own in host.addresses().values() for address in own}
    for address in plan.addresses:
        if address not in here and not ipaddress.IPv4Address(address).is_loopback:
            raise UsageError(
                f"the plan listens at {address}, which is not an address of this machine "
                f"({', '.join(sorted(here))}); make a new plan with --listen"
            )


def refuse_unfit(plan: Plan, host: Host) -> None:
    """Raises NotPermitted if this process may not use CPUs or memory nodes of the plan, UsageError
    if the machine lacks an address of it or its malloc cannot be loaded."""
    _refuse_addresses(plan, host)
    library_of(plan.malloc, host)
    wanted = plan_cpus(plan)
    online = frozenset(parse_cpulist(host.read_text("/sys/devices/system/cpu/online")))
    if offline := wanted - online:
        raise _offline(offline, online)
    allowed = host.affinity(0)
    if outside := wanted - allowed:
        raise NotPermitted(
            f"CPUs {format_cpulist(outside)} of the plan are outside what the affinity mask and "
            f"the cgroup allow ({format_cpulist(allowed)}); widen them or make a new plan"
        )
    status = host.read_text("/proc/self/status")
    nodes = frozenset(parse_cpulist(status_field(status, "Mems_allowed_list")))
    # A kernel without NUMA lists no nodes; then a plan can only name node 0.
    if closed := plan_nodes(plan) - (nodes or {0}):
        raise NotPermitted(
            f"memory nodes {format_cpulist(closed)} of the plan are outside what the cgroup "
            f"allows ({format_cpulist(nodes)}); widen cpuset.mems or make a new plan"
        )
