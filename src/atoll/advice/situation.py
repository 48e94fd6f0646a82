"""What the rules know: the machine, the kernel, the program, its workload. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from atoll.schema.advice import Preload, PreloadEffect, SubjectKind, Workload
from atoll.schema.cpulist import format_cpulist
from atoll.schema.machine import Machine
from atoll.schema.plan import Placement

DEFAULT_POLICY = "default"  # first touch
UNNAMED = Preload(effect=PreloadEffect.UNKNOWN, why="no program is named")


@dataclass(frozen=True, slots=True)
class Subject:
    """The program that the advice is for, as it is or would be started."""

    kind: SubjectKind = SubjectKind.COMMAND
    name: str = ""
    cpus: frozenset[int] = frozenset()  # where one instance may run
    instances: int = 1
    policy: str = DEFAULT_POLICY  # memory policy as numa_maps writes it, without flags
    malloc: str = "system"
    preload: Preload = UNNAMED
    may_have_thp: bool = True
    threads: Placement = Placement.NONE
    binding_fault: str = ""  # why its threads cannot be bound one by one; empty: they can be
    is_bound: bool = False  # its threads already have one CPU each


@dataclass(frozen=True, slots=True)
class Situation:
    machine: Machine
    subject: Subject
    workload: Workload = Workload.UNKNOWN
    knobs: Mapping[str, str] = field(default_factory=dict)  # only those that the machine has
    root: bool = False
    policy_fault: str = ""  # why no memory policy can be set here
    knobs_fault: str = ""  # why no knob can be set here, by any user
    virtual: bool = False
    frequency_driver: str = ""  # of cpufreq
    mallocs: tuple[str, ...] = ()  # those that can be preloaded
    churn_ns: Mapping[str, float] = field(default_factory=dict)  # one operation, as measured here
    # By tuner: the value that will be in force, of the lines decided before.
    then: Mapping[str, str] = field(default_factory=dict)

    @property
    def nodes(self) -> tuple[int, ...]:
        """The nodes with memory that this process may use."""
        allowed = set(self.machine.allowed.nodes)
        return tuple(
            sorted(
                node.os_index
                for node in self.machine.nodes
                if node.memory_bytes and (not allowed or node.os_index in allowed)
            )
        )

    @property
    def own_nodes(self) -> tuple[int, ...]:
        """Those of `nodes` that have CPUs of the program."""
        beside = {n.os_index for n in self.machine.nodes if self.subject.cpus & set(n.pus)}
        return tuple(node for node in self.nodes if node in beside)

    @property
    def memory_only(self) -> tuple[int, ...]:
        """Nodes without CPUs, such as CXL memory."""
        bare = {node.os_index for node in self.machine.nodes if not node.pus}
        return tuple(node for node in self.nodes if node in bare)

    @property
    def several_nodes(self) -> bool:
        return len(self.nodes) > 1

    @property
    def spans(self) -> bool:
        """One instance runs on several nodes."""
        return len(self.own_nodes) > 1

    @property
    def spans_cpus(self) -> bool:
        """One instance runs on all nodes that have CPUs; the others are memory only."""
        return {*self.own_nodes, *self.memory_only} == set(self.nodes)

    @property
    def own_chiplets(self) -> int:
        return sum(bool(self.subject.cpus & set(one.pus)) for one in self.machine.chiplets)

    @property
    def own_cores(self) -> int:
        return sum(bool(self.subject.cpus & set(core.pus)) for core in self.machine.cores)

    def knob(self, name: str) -> str:
        """Its value; empty if the machine has no such knob."""
        return self.knobs.get(name, "")

    def on(self, mode: str, nodes: tuple[int, ...]) -> str:
        """A memory policy as numa_maps writes it."""
        return f"{mode}:{format_cpulist(nodes)}"
