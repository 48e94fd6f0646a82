"""The plan: every instance's place, and the reasons. Format `atoll/plan` 1.

`atoll.plan` makes a plan from a machine and an engine's traits; people may edit the file before
`atoll up`. CPUs and nodes are OS indices. The terms WIM, WIN, WICP and WIC are from
olap-on-chiplets section 3.2, SPMWIN from numa-distributed-engines section IV-D, WICP-mixed from
olap-on-chiplets section 4.4.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from enum import StrEnum
from typing import Literal, Self

from pydantic import Field, model_validator

from atoll.schema.base import Record
from atoll.schema.machine import Summary
from atoll.schema.policy import Policy as Policy

LOOPBACK = "127.0.0.1"  # where an instance listens unless its plan names another address

# What a user can request: a policy, or the planner's own choice of one.
Asked = Literal["auto"] | Policy


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


class Malloc(StrEnum):
    """Whose malloc the processes call."""

    SYSTEM = "system"  # nothing is preloaded
    JEMALLOC = "jemalloc"
    TCMALLOC = "tcmalloc"
    MIMALLOC = "mimalloc"
    TBBMALLOC = "tbbmalloc"


class HugePages(StrEnum):
    """Whether the processes may have transparent huge pages."""

    SYSTEM = "system"  # as the machine's own setting says
    NEVER = "never"  # they are off for these processes (PR_SET_THP_DISABLE)


class CoordinatorKind(StrEnum):
    SHARED = "shared"  # anywhere on the machine, no mask
    IN_WORKER = "in-worker"  # inside slot 0's CPUs
    RESERVED = "reserved"  # its own cores, in no slot


class TaskThreads(Record):
    """How the threads that run an engine's tasks are found, so that each is bound to one CPU.

    Regular expressions, compared with the start of a name.
    """

    comm: str = ""  # the thread's name in the kernel, which keeps 15 bytes
    java: str = ""  # also its full name in the JVM's thread dump, if 15 bytes are too few
    title: str = ""  # also its process's title as in ps(1), if each session has a process
    # The title, or else comm, of those that wait for work. They leave their CPU to others.
    idle: str = ""
    openmp: bool = False  # instead of names: an OpenMP runtime binds the threads of the program

    @model_validator(mode="after")
    def _can_be_searched(self) -> Self:
        if self.openmp == bool(self.comm):
            raise ValueError("give either comm, a regular expression, or openmp")
        for pattern in (self.comm, self.java, self.title, self.idle):
            try:
                re.compile(pattern)
            except re.error as fault:
                raise ValueError(f"{pattern!r} is not a regular expression ({fault})") from None
        return self


class EngineTraits(Record):
    """What a plan needs to know about an engine; every adapter in atoll.engines declares one."""

    name: str
    distributed: bool  # all instances form one logical server; otherwise each is a whole server
    parallel_query: bool  # an instance runs one query on several threads
    has_coordinator: bool
    jvm: bool
    listens: bool = False  # its instances can listen at an address of the network
    # The share of a slot's memory for the engine's own heap or buffer; the rest is for off-heap
    # memory and the page cache. `ratio_source` cites the source of the number.
    heap_ratio: float = Field(gt=0, lt=1)
    ratio_source: str
    min_heap_bytes: int = Field(ge=0)
    coordinator_bytes: int = Field(ge=0)  # its heap, deducted from the machine's memory first
    coordinator_ratio: float = Field(default=0, ge=0, lt=1)  # or this share of memory, if larger
    coordinator_overhead_bytes: int = Field(default=0, ge=0)  # its other memory, also deducted
    # An instance's memory outside its heap (metaspace, code cache, the daemon that spawns it).
    overhead_bytes: int = Field(ge=0)
    # Other memory that grows with the heap, as a share of the heap.
    off_heap_ratio: float = Field(default=0, ge=0)
    page_cache_ratio: float = Field(default=0, ge=0, lt=1)  # of a slot's memory, kept free of both
    reserve_source: str = ""  # the source of these two
    # The memory outside the heap that the user's own configuration gives every instance, and the
    # settings that do so. The coordinator's is part of the two fields above.
    asked_bytes: int = Field(default=0, ge=0)
    asked_source: str = ""
    # The memory that an instance's queries may take at one time: this share of the heap, minus a
    # fixed part that the engine reserves. Memory outside the heap counts too, such as
    # a server's work_mem.
    query_ratio: float = Field(default=1, ge=0)
    query_reserved_bytes: int = Field(default=0, ge=0)
    query_beside_bytes: int = Field(default=0, ge=0)  # the part of `asked_bytes` for queries
    query_source: str = ""
    shuffles: bool = False  # the plan's number of shuffle partitions is one of its settings
    own_malloc: str = ""  # why a preloaded malloc changes little in it; empty: it serves it
    # For thread placement; or the reason why its threads cannot be bound one by one.
    task_threads: TaskThreads | str = "its package does not declare which of its threads run tasks"


class Slot(Record):
    """One worker instance's place."""

    index: int
    cpus: tuple[int, ...] | None  # None: no mask is set (WIM)
    thread_cpus: tuple[int, ...] = ()  # the order in which threads take CPUs; placement none: empty
    cores: int  # physical cores that it may use
    threads: int  # the engine's number of worker threads
    memory_policy: MemoryPolicy
    memory_nodes: tuple[int, ...] = ()  # for bind, preferred, interleave; empty otherwise
    nodes: tuple[int, ...]  # nodes that its CPUs belong to
    chiplets: tuple[int, ...]  # indices of the chiplets that its CPUs belong to
    packages: tuple[int, ...]
    memory_bytes: int  # its share of the machine's memory
    heap_bytes: int
    address: str | None = None  # the IPv4 address that it listens at; None: loopback
    nic: str | None = Field(default=None, pattern=r"^[^/\s]{1,15}$")  # which has that address
    # The GC threads of a JVM in a decomposition (ParallelGCThreads, ConcGCThreads); None: the JVM
    # chooses them by `threads`.
    parallel_gc_threads: int | None = Field(default=None, ge=1)
    concurrent_gc_threads: int | None = Field(default=None, ge=1)


class CoordinatorPlace(Record):
    kind: CoordinatorKind
    cpus: tuple[int, ...] | None = None  # None: no mask
    memory_nodes: tuple[int, ...] = ()
    heap_bytes: int = 0
    address: str | None = None  # the IPv4 address that it listens at; None: loopback


class ClusterPlace(Record):
    """What a plan knows of an engine that spans machines, each of which has a plan of its own."""

    address: str  # IPv4, where the coordinator listens
    port: int = Field(ge=1, le=65535)
    leads: bool  # the coordinator runs here; otherwise the instances of this plan join it
    machines: int = Field(ge=2)
    instances: int = Field(ge=2)  # of all machines, as are the next two
    threads: int = Field(ge=2)
    heap_bytes: int = Field(ge=1)  # of the smallest instance

    @property
    def head(self) -> str:
        return f"{self.address}:{self.port}"


class Reason(Record):
    """Why the plan is as it is: the rule, its explanation, and its source."""

    rule: str
    text: str
    source: str


class Plan(Record):
    format: Literal["atoll/plan"] = "atoll/plan"
    version: Literal[1] = 1
    engine: str
    policy: Policy  # the policy that auto chose, if auto was requested
    asked: Asked
    placement: Placement
    task_threads: TaskThreads | None = None  # the threads to place; placement none: null
    smt: bool
    # Of all processes of the deployment.
    malloc: Malloc = Malloc.SYSTEM
    thp: HugePages = HugePages.SYSTEM
    slots: tuple[Slot, ...] = Field(min_length=1)
    coordinator: CoordinatorPlace | None
    cluster: ClusterPlace | None = None  # None: the engine is on this machine only
    # Equal for all policies of a benchmark, so that only placement differs.
    total_threads: int
    total_heap_bytes: int
    shuffle_partitions: int | None  # None: the engine has no such setting
    coincides_with: tuple[Policy, ...] = ()  # policies that give the same slots on this machine
    reasons: tuple[Reason, ...]
    warnings: tuple[str, ...] = ()
    machine: Summary  # of the machine that it was made for
    machine_id: str  # hash of the machine's CPUs, nodes, dies and L3s; `up` refuses another machine

    @model_validator(mode="after")
    def _slots_can_be(self) -> Self:
        """Checks what a hand edit may break: slots count from 0, each can run, none share a CPU."""
        for place, slot in enumerate(self.slots):
            if slot.index != place:
                raise ValueError(f"slot {slot.index} is at position {place}; count slots from 0")
            if slot.cpus == ():
                raise ValueError(f"slot {place} has no CPUs; list some, or use null for no mask")
            if slot.memory_policy in _OF_NODES and not slot.memory_nodes:
                raise ValueError(f"slot {place}: {slot.memory_policy.value} needs memory_nodes")
            if slot.threads < 1 or slot.heap_bytes < 1:
                raise ValueError(f"slot {place} needs at least one thread and some heap")
        for address in self.addresses:
            if not _is_ipv4(address):
                raise ValueError(f"{address!r} is not an IPv4 address; use null for loopback")
        users = Counter(cpu for slot in self.slots for cpu in set(slot.cpus or ()))
        shared = sorted(cpu for cpu, count in users.items() if count > 1)
        if shared:
            raise ValueError(f"CPU {shared[0]} is in several slots; slots must not share CPUs")
        return self

    @model_validator(mode="after")
    def _threads_can_be_placed(self) -> Self:
        if self.placement is Placement.NONE:
            return self
        if self.task_threads is None:
            raise ValueError(
                f"placement {self.placement.value} needs task_threads; make the plan again with "
                "'atoll plan'"
            )
        for slot in self.slots:
            order = set(slot.thread_cpus)
            if not order or len(order) < len(slot.thread_cpus) or not order <= {*(slot.cpus or ())}:
                raise ValueError(
                    f"slot {slot.index}: placement {self.placement.value} needs thread_cpus: CPUs "
                    "of the slot, each once"
                )
        return self

    @model_validator(mode="after")
    def _can_span_machines(self) -> Self:
        if self.cluster is None:
            return self
        if any(slot.address is None for slot in self.slots):
            raise ValueError("in a cluster, every slot needs an address that the others can reach")
        home = self.coordinator.address if self.coordinator else None
        if home != (self.cluster.address if self.cluster.leads else None):
            raise ValueError("the coordinator's address is not the one in cluster.address")
        if not _is_ipv4(self.cluster.address):
            raise ValueError(f"cluster.address {self.cluster.address!r} is not an IPv4 address")
        if min(slot.heap_bytes for slot in self.slots) < self.cluster.heap_bytes:
            raise ValueError("a slot has less than cluster.heap_bytes, which all instances have")
        return self

    @property
    def joining(self) -> int:
        """The number of instances that join the engine's coordinator on this machine."""
        if self.cluster is None:
            return len(self.slots)
        return self.cluster.instances if self.cluster.leads else 0

    @property
    def all_instances(self) -> int:
        """The number of worker instances on all machines of the cluster."""
        return self.cluster.instances if self.cluster else len(self.slots)

    @property
    def all_threads(self) -> int:
        """Their threads."""
        return self.cluster.threads if self.cluster else self.total_threads

    @property
    def all_heap_bytes(self) -> int:
        """Their heap."""
        if self.cluster is None:
            return self.total_heap_bytes
        return self.cluster.instances * self.cluster.heap_bytes

    @property
    def addresses(self) -> tuple[str, ...]:
        """Every address other than loopback that it listens at, sorted."""
        coordinator = [self.coordinator] if self.coordinator else []
        places: tuple[Slot | CoordinatorPlace, ...] = (*self.slots, *coordinator)
        return tuple(sorted({place.address for place in places if place.address is not None}))


def _is_ipv4(text: str) -> bool:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True
