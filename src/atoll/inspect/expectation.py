"""What a process should look like: its place in a plan, or the place it was started in. Pure.

A process of a deployment is compared with its slot:

- a slot without a mask (WIM, a shared coordinator): every thread may use all CPUs that the
  supervisor may use;
- every thread has exactly the slot's CPUs, except
- under thread placement (dense, sparse) the threads that run tasks: each has one CPU, by the rule
  of `atoll.inspect.seats`;
- in a process that seats its threads itself (Atoll's scheduler), a thread's mask may be narrower
  than the slot, but must stay inside it.

Other processes have no plan. Their reference is the place they were started in: `taskset` and
`numactl` set the mask and the policy of a thread and then become the program. So the main thread
has them, and other threads inherit the mask of the thread that creates them. The reference is
therefore the mask of the main thread. It misleads if the program pins its main thread too (OpenMP,
DPDK, Seastar; see `pins_itself`); then the reference is the mask of the parent process. In a
process with Atoll's runtime it is the mask of the runtime's governor thread, which is never bound,
while the threads that call it are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from atoll.inspect.policy import Policy, parse_policy
from atoll.schema.cpulist import format_cpulist, parse_cpulist
from atoll.schema.deployment import ProcessRecord
from atoll.schema.inspection import Expected, ThreadLook
from atoll.schema.plan import HugePages, Malloc, MemoryPolicy, Plan

# The names of the policies in numa_maps.
_KERNEL_WORD = {
    MemoryPolicy.FIRST_TOUCH: "default",
    MemoryPolicy.LOCAL: "local",
    MemoryPolicy.BIND: "bind",
    MemoryPolicy.PREFERRED: "prefer",
    MemoryPolicy.INTERLEAVE: "interleave",
    MemoryPolicy.WEIGHTED_INTERLEAVE: "weighted interleave",
}
# The thread with this name: native/src/runtime/scheduler/governor.cpp.
_GOVERNOR = "atoll-governor"
# Two threads with different masks are not a team: one of them may have moved away.
_SMALLEST_TEAM = 3


@dataclass(frozen=True, slots=True)
class Expectation:
    """See `atoll.schema.inspection.Expected`, the record of this."""

    source: Literal["plan", "process"]
    process: str  # its name in the deployment, otherwise its comm
    slot: int | None
    cpus: frozenset[int]
    exact: bool
    policy: str  # spelt as in numa_maps
    nodes: frozenset[int]  # where private memory belongs; empty: anywhere
    seats_threads: bool = False  # Atoll's runtime seats them, inside these CPUs
    malloc: Malloc = Malloc.SYSTEM
    thp: HugePages = HugePages.SYSTEM
    # Under thread placement: tid of each thread that runs tasks -> its CPU.
    task_cpus: Mapping[int, int] = field(default_factory=dict)

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
            malloc=self.malloc,
            thp=self.thp,
            task_cpus=dict(self.task_cpus),
        )


def planned(
    process: ProcessRecord,
    plan: Plan,
    *,
    everything: frozenset[int],
    node_cpus: Mapping[int, frozenset[int]],
    task_cpus: Mapping[int, int] | None = None,
) -> Expectation:
    """The place that the plan assigns.

    `everything`: the CPUs that the supervisor may use. `node_cpus`: the CPUs of each node with
    memory. `task_cpus`: see `Expectation`.
    """
    place: tuple[int, ...] | None = None
    policy = _KERNEL_WORD[MemoryPolicy.FIRST_TOUCH]
    nodes: tuple[int, ...] = ()
    if process.spec.slot is not None:
        slot = plan.slots[process.spec.slot]
        place, nodes = slot.cpus, slot.memory_nodes
        policy = _words(_KERNEL_WORD[slot.memory_policy], nodes)
        if not nodes and slot.cpus is not None:
            # First touch and local: on the nodes of the threads.
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
        exact=not process.spec.seats_threads,
        policy=policy,
        nodes=frozenset(nodes),
        malloc=plan.malloc,
        thp=plan.thp,
        task_cpus=task_cpus or {},
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
    """The place in which a process without a plan was started.

    `node_cpus`: the CPUs of each node with memory. `policy` is empty if unknown. `pins_itself`:
    the program is known to pin its main thread too.
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
    """Whether the program pinned its main thread to a CPU as it did its other threads.

    `openmp`: it was started with OMP_PROC_BIND or similar, which binds the main thread first.
    `library`: a `PinningLibrary` is mapped, which leaves the main thread alone.
    """
    return not library and (openmp or is_team(threads))


def is_team(threads: Sequence[ThreadLook]) -> bool:
    """Whether each thread has one CPU, with equally many on each, the main thread included."""
    crowd = Counter(thread.cpus for thread in threads)
    return (
        len(crowd) >= _SMALLEST_TEAM
        and len(set(crowd.values())) == 1
        and all(cpus.isdecimal() for cpus in crowd)
    )


def home_nodes(
    policy: Policy, cpus: frozenset[int], node_cpus: Mapping[int, frozenset[int]]
) -> frozenset[int]:
    """The nodes where private memory belongs under a policy; empty: anywhere.

    A policy that names no node puts memory on the node of the thread that touches it first. That
    determines a node only for threads that may not run everywhere.
    """
    if policy.nodes or not policy.mode:
        return policy.nodes
    with_cpus = {node for node, own in node_cpus.items() if own}
    beside = {node for node in with_cpus if node_cpus[node] & cpus}
    return frozenset(beside) if beside < with_cpus else frozenset()


def _words(word: str, nodes: tuple[int, ...]) -> str:
    return f"{word}:{format_cpulist(nodes)}" if nodes else word
