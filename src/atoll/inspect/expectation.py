"""What a process should be like: its place in a plan, or what it was given itself. Pure.

A process of a deployment is held against its slot:

- a slot without a mask (WIM, a shared coordinator): every thread may use all that the supervisor
  may use;
- thread placement none: every thread has the slot's CPUs, exactly;
- dense or sparse, or a process that seats its threads itself (Atoll's scheduler): a thread's mask
  may be narrower inside the slot, never leave it.

Nobody planned any other process. What was asked of it is what it was started with: `taskset` and
`numactl` set the mask and the policy of a thread and then become the program, so its main thread
has them, and threads inherit the mask of the thread that makes them. The reference is therefore
the main thread's mask. It misleads where a program pins its main thread too (OpenMP, DPDK,
Seastar); see `pins_itself`. Then it is the mask of the parent process. In a process with Atoll's
runtime it is the mask of the runtime's governor, which is never bound; its callers are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from atoll.inspect.policy import Policy, parse_policy
from atoll.schema.cpulist import format_cpulist, parse_cpulist
from atoll.schema.deployment import ProcessRecord
from atoll.schema.inspection import Expected, ThreadLook
from atoll.schema.plan import MemoryPolicy, Placement, Plan

# What numa_maps calls a policy.
_KERNEL_WORD = {
    MemoryPolicy.FIRST_TOUCH: "default",
    MemoryPolicy.LOCAL: "local",
    MemoryPolicy.BIND: "bind",
    MemoryPolicy.PREFERRED: "prefer",
    MemoryPolicy.INTERLEAVE: "interleave",
    MemoryPolicy.WEIGHTED_INTERLEAVE: "weighted interleave",
}
# A thread of this name: native/src/runtime/governor.cpp.
_GOVERNOR = "atoll-governor"
# Two threads that differ are no team: one may have left the other.
_SMALLEST_TEAM = 3


@dataclass(frozen=True, slots=True)
class Expectation:
    """See `atoll.schema.inspection.Expected`, which is this as a record."""

    source: Literal["plan", "process"]
    process: str  # its name in the deployment, else its comm
    slot: int | None
    cpus: frozenset[int]
    exact: bool
    policy: str  # in numa_maps' words
    nodes: frozenset[int]  # where private memory belongs; empty: anywhere
    seats_threads: bool = False  # Atoll's runtime does, inside these CPUs

    @property
    def planned(self) -> bool:
        return self.source == "plan"

    def record(self) -> Expected:
        return Expected(
            source=self.source,
            cpus=format_cpulist(self.cpus),
            exact=self.exact,
            memory_policy=self.policy,
            memory_nodes=format_cpulist(self.nodes),
        )


def planned(
    process: ProcessRecord,
    plan: Plan,
    *,
    everything: frozenset[int],
    node_cpus: Mapping[int, frozenset[int]],
) -> Expectation:
    """The place that the plan gives.

    `everything`: the CPUs that the supervisor may use; `node_cpus` of the nodes with memory.
    """
    place: tuple[int, ...] | None = None
    policy = _KERNEL_WORD[MemoryPolicy.FIRST_TOUCH]
    nodes: tuple[int, ...] = ()
    if process.spec.slot is not None:
        slot = plan.slots[process.spec.slot]
        place, nodes = slot.cpus, slot.memory_nodes
        policy = _words(_KERNEL_WORD[slot.memory_policy], nodes)
        if not nodes and slot.cpus is not None:
            # First touch and local: beside the threads.
            nodes = tuple(node for node in slot.nodes if node in node_cpus)
    elif plan.coordinator is not None:
        place, nodes = plan.coordinator.cpus, plan.coordinator.memory_nodes
        if nodes:
            policy = _words("bind", nodes)
    return Expectation(
        source="plan",
        process=process.spec.name,
        slot=process.spec.slot,
        cpus=everything if place is None else frozenset(place),
        exact=not process.spec.seats_threads
        and (place is None or plan.placement is Placement.NONE),
        policy=policy,
        nodes=frozenset(nodes),
    )


def as_given(
    comm: str,
    threads: Sequence[ThreadLook],
    pid: int,
    *,
    policy: str,
    parent_cpus: frozenset[int],
    node_cpus: Mapping[int, frozenset[int]],
    pins_itself: bool = False,
) -> Expectation:
    """What a process that nobody planned was given. `node_cpus` of the nodes with memory.

    `policy` may be empty: not known. `pins_itself`: it is known to pin its main thread too.
    """
    governor = next((thread for thread in threads if thread.comm == _GOVERNOR), None)
    main = governor or next((thread for thread in threads if thread.tid == pid), threads[0])
    cpus = frozenset(parse_cpulist(main.cpus))
    if pins_itself:
        team = frozenset(cpu for thread in threads for cpu in parse_cpulist(thread.cpus))
        cpus = parent_cpus | cpus if team <= parent_cpus else cpus
    return Expectation(
        source="process",
        process=comm,
        slot=None,
        cpus=cpus,
        exact=False,
        policy=policy,
        nodes=home_nodes(parse_policy(policy), cpus, node_cpus),
        seats_threads=governor is not None,
    )


def pins_itself(threads: Sequence[ThreadLook], *, openmp: bool, library: bool) -> bool:
    """Whether the program gave its main thread a CPU as it did the others.

    `openmp`: it was started with OMP_PROC_BIND or the like, which binds the main thread first.
    `library`: a `PinningLibrary` is mapped, which leaves the main thread alone.
    """
    return not library and (openmp or is_team(threads))


def is_team(threads: Sequence[ThreadLook]) -> bool:
    """Whether the threads have a CPU each, equally many on every CPU, the main thread too."""
    crowd = Counter(thread.cpus for thread in threads)
    return (
        len(crowd) >= _SMALLEST_TEAM
        and len(set(crowd.values())) == 1
        and all(cpus.isdecimal() for cpus in crowd)
    )


def home_nodes(
    policy: Policy, cpus: frozenset[int], node_cpus: Mapping[int, frozenset[int]]
) -> frozenset[int]:
    """Where private memory belongs under a policy; empty: anywhere.

    A policy that names no node puts memory beside the thread that touches it first; that says
    something only of threads that may not run everywhere.
    """
    if policy.nodes or not policy.mode:
        return policy.nodes
    with_cpus = {node for node, own in node_cpus.items() if own}
    beside = {node for node in with_cpus if node_cpus[node] & cpus}
    return frozenset(beside) if beside < with_cpus else frozenset()


def _words(word: str, nodes: tuple[int, ...]) -> str:
    return f"{word}:{format_cpulist(nodes)}" if nodes else word
