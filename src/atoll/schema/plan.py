"""The plan: who sits where, and why. Format `atoll/plan` 1.

A plan is made by `atoll.plan` from a machine and an engine's traits, and is a file that a
person may edit before `atoll up`. CPUs and nodes are OS indices. Words: WIM, WIN, WICP,
WIC from olap-on-chiplets section 3.2; SPMWIN from numa-distributed-engines section IV-D;
WICP-mixed from olap-on-chiplets section 4.4.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from atoll.schema.base import Record
from atoll.schema.machine import Summary


class Policy(StrEnum):
    """How many worker instances there are, and what each owns."""

    WIM = "wim"  # one for the machine, no mask, no policy: the engine as people start it
    WIN = "win"  # one per NUMA node
    WICP = "wicp"  # one per chiplet (WICP-local)
    WICP_MIXED = "wicp-mixed"  # as many as WICP, cores of each spread over its node's chiplets
    WIC = "wic"  # one per core
    SPMWIN = "spmwin"  # as many as WIN, cores of each spread over all nodes: the control


# What can be asked for: a policy, or the planner's own choice of one.
Asked = Literal["auto", "wim", "win", "wicp", "wicp-mixed", "wic", "spmwin"]


class MemoryPolicy(StrEnum):
    FIRST_TOUCH = "first-touch"  # the kernel's default: nothing is set
    LOCAL = "local"
    BIND = "bind"
    PREFERRED = "preferred"
    INTERLEAVE = "interleave"
    WEIGHTED_INTERLEAVE = "weighted-interleave"


_OF_NODES = frozenset(
    {
        MemoryPolicy.BIND,
        MemoryPolicy.PREFERRED,
        MemoryPolicy.INTERLEAVE,
        MemoryPolicy.WEIGHTED_INTERLEAVE,
    }
)


class Placement(StrEnum):
    """How threads sit inside a slot."""

    NONE = "none"  # the slot's mask as a whole; the kernel chooses
    DENSE = "dense"  # neighbouring CPUs first
    SPARSE = "sparse"  # as far apart as the slot allows first


class CoordinatorKind(StrEnum):
    SHARED = "shared"  # anywhere on the machine, no mask
    IN_WORKER = "in-worker"  # inside slot 0's CPUs
    RESERVED = "reserved"  # cores of its own that no slot has


class EngineTraits(Record):
    """What a plan must know of an engine; every adapter in atoll.engines declares one."""

    name: str
    distributed: bool  # all instances are one logical server; else each is a whole server
    parallel_query: bool  # an instance runs one query on several threads
    has_coordinator: bool
    jvm: bool
    # Share of a slot's memory that goes to the engine's own heap or buffer; the rest is left to
    # off-heap memory and the page cache. `ratio_source` says where the number comes from.
    heap_ratio: float = Field(gt=0, lt=1)
    ratio_source: str
    min_heap_bytes: int = Field(ge=0)
    coordinator_bytes: int = Field(ge=0)  # its heap, taken off the machine's memory first
    coordinator_ratio: float = Field(default=0, ge=0, lt=1)  # or this of that memory, if it is more
    coordinator_overhead_bytes: int = Field(default=0, ge=0)  # what it weighs besides, likewise
    # Memory of an instance beside its heap (metaspace, code cache, the daemon that spawns it).
    overhead_bytes: int = Field(ge=0)
    # What else lies beside the heap and grows with it, as a share of the heap.
    off_heap_ratio: float = Field(default=0, ge=0)
    page_cache_ratio: float = Field(default=0, ge=0, lt=1)  # of a slot's memory, kept free of both
    reserve_source: str = ""  # where these two come from
    # What the user's own configuration has every instance take beside its heap, and by which
    # settings. What it has the coordinator take is part of the two above.
    asked_bytes: int = Field(default=0, ge=0)
    asked_source: str = ""
    # What an instance's queries may take at once: this share of the heap, less a fixed part that
    # the engine keeps to itself. Memory beside the heap counts too, such as a server's work_mem.
    query_ratio: float = Field(default=1, ge=0)
    query_reserved_bytes: int = Field(default=0, ge=0)
    query_beside_bytes: int = Field(default=0, ge=0)  # of `asked_bytes`, for queries too
    query_source: str = ""


class Slot(Record):
    """One worker instance's place."""

    index: int
    cpus: tuple[int, ...] | None  # None: no mask is set (WIM)
    thread_cpus: tuple[int, ...] = ()  # the order in which threads take CPUs; placement none: empty
    cores: int  # physical cores that it may use
    threads: int  # worker threads the engine is told to use
    memory_policy: MemoryPolicy
    memory_nodes: tuple[int, ...] = ()  # for bind, preferred, interleave; empty otherwise
    nodes: tuple[int, ...]  # nodes that its CPUs belong to
    chiplets: tuple[int, ...]  # indices of the chiplets that its CPUs belong to
    packages: tuple[int, ...]
    memory_bytes: int  # its share of the machine's memory
    heap_bytes: int
    nic: str | None = None  # a NIC on its node, where there is one
    # Of a JVM, where a decomposition asks for them (ParallelGCThreads, ConcGCThreads); None: as the
    # JVM has them by `threads`.
    parallel_gc_threads: int | None = Field(default=None, ge=1)
    concurrent_gc_threads: int | None = Field(default=None, ge=1)


class CoordinatorPlace(Record):
    kind: CoordinatorKind
    cpus: tuple[int, ...] | None = None  # None: no mask
    memory_nodes: tuple[int, ...] = ()
    heap_bytes: int = 0


class Reason(Record):
    """Why the plan is as it is: the rule, in words, and the source that it rests on."""

    rule: str
    text: str
    source: str


class Plan(Record):
    FORMAT: ClassVar[str] = "atoll/plan"
    VERSION: ClassVar[int] = 1

    format: Literal["atoll/plan"] = "atoll/plan"
    version: Literal[1] = 1
    engine: str
    policy: Policy  # what `auto` came to, where auto was asked
    asked: Asked
    placement: Placement
    smt: bool
    slots: tuple[Slot, ...] = Field(min_length=1)
    coordinator: CoordinatorPlace | None
    # Held equal between the policies of a bench, so that only placement differs.
    total_threads: int
    total_heap_bytes: int
    shuffle_partitions: int
    coincides_with: tuple[Policy, ...] = ()  # policies that give the same slots on this machine
    reasons: tuple[Reason, ...]
    warnings: tuple[str, ...] = ()
    machine: Summary  # of the machine that it was made for
    machine_id: str  # hash of the machine's CPUs, nodes, dies and L3s; `up` refuses another machine

    @model_validator(mode="after")
    def _slots_can_be(self) -> Self:
        """What a hand edit may break: slots count from 0, each can run, none share a CPU."""
        for place, slot in enumerate(self.slots):
            if slot.index != place:
                raise ValueError(f"slot {slot.index} stands at place {place}; count them from 0")
            if slot.cpus == ():
                raise ValueError(f"slot {place} has no CPU; name some, or null for no mask")
            if slot.memory_policy in _OF_NODES and not slot.memory_nodes:
                raise ValueError(f"slot {place}: {slot.memory_policy.value} needs memory_nodes")
            if slot.threads < 1 or slot.heap_bytes < 1:
                raise ValueError(f"slot {place} needs at least one thread and some heap")
        users = Counter(cpu for slot in self.slots for cpu in set(slot.cpus or ()))
        shared = sorted(cpu for cpu, count in users.items() if count > 1)
        if shared:
            raise ValueError(f"CPU {shared[0]} is in several slots; slots share none")
        return self
