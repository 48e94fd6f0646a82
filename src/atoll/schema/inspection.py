"""The observed placement of a live process: threads, memory, allocator, JVM.

Format `atoll/inspection` 1. Made by `atoll.inspect`; printed by `atoll inspect` and `atoll verify`
with `--json`. CPUs and nodes are the kernel's numbers, memory is in bytes, shares lie between 0
and 1. An unknown value is None, never zero, and `unknown` has a line with the reason.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from atoll.schema.base import Record
from atoll.schema.plan import HugePages, Malloc


class ThreadLook(Record):
    """One thread, from /proc/PID/task/TID (proc(5))."""

    tid: int
    comm: str
    cpus: str  # cpulist: where it may run
    memory_nodes: str  # nodelist: Mems_allowed_list, the nodes that its cpuset allows
    last_cpu: int
    cpu_seconds: float  # user and system time since it began
    migrations: int | None  # se.nr_migrations; None if the kernel does not report it


class SpreadLook(Record):
    """The number of chiplets over which the threads bound to one chiplet each are spread."""

    over: Literal["chiplet", "node"]  # nodes replace chiplets if the machine shows none
    usable: int  # how many of them the process may use
    # By the chiplet's index or the node's number in `atoll topo`; their count is the spread.
    threads_on: dict[int, int]
    threads_named: dict[str, int]  # by name, without a trailing number: {'atoll-duck': 7}


class MappingKind(StrEnum):
    HEAP = "heap"
    STACK = "stack"
    ANONYMOUS = "anonymous"
    FILE = "file"
    SHARED = "shared"  # shmem: shared memory, tmpfs, memfd
    HUGETLB = "hugetlb"
    KERNEL = "kernel"  # vdso, vvar: the kernel's own


class MappingLook(Record):
    """One mapping with resident pages."""

    start: int  # address
    size_bytes: int
    kind: MappingKind
    name: str  # path, '[heap]', or empty
    policy: str  # as in numa_maps: 'default', 'bind:0-1'; empty: not read
    bytes_by_node: dict[int, int]


class MemoryLook(Record):
    """Where a process's pages are."""

    method: Literal["numa_maps", "move_pages"]  # counted by the kernel, or sampled
    sampled_pages: int  # 0 when counted
    resident_bytes: int
    bytes_by_node: dict[int, int]
    bytes_by_kind: dict[MappingKind, dict[int, int]]
    # Half the width of the 95 % interval of a node's share, the widest of all; 0 when counted.
    share_error: float = Field(ge=0)
    huge_bytes: int | None  # in transparent huge pages
    mappings: tuple[MappingLook, ...]  # the largest, and all that a finding names
    # Share of pages on the node of the thread that touches them, if every thread touched all pages
    # equally: sum over nodes of (share of CPU time there) x (share of pages there).
    local_share: float | None
    # Share of pages on nodes whose CPUs the process's threads may run on.
    own_nodes_share: float | None


class PageCacheLook(Record):
    """How much of a file that the process has open or mapped is in the page cache."""

    path: str
    size_bytes: int
    cached_bytes: int
    bytes_by_node: dict[int, int]
    sampled: bool


class MallocLook(Record):
    """Whose malloc answers: the requested preloads, the mapped libraries, the code called."""

    preload: tuple[str, ...]  # LD_PRELOAD at the process's start, and /etc/ld.so.preload
    loaded: tuple[str, ...]  # allocator libraries that are mapped, in the linker's order
    reached: str | None  # the object that malloc resolves to: 'libjemalloc.so.2', 'libc.so.6'
    # Objects whose malloc leads elsewhere, or that contain their own allocator.
    exceptions: dict[str, str] = Field(default_factory=dict)
    # Preloads that replaced no malloc, and why: 'no such file', 'defines no malloc'.
    preload_faults: dict[str, str] = Field(default_factory=dict)
    unknown: str = ""  # why `reached` is None


class JvmLook(Record):
    """What a JVM made of its flags (jcmd VM.flags, VM.info)."""

    version: str
    use_numa: bool
    use_numa_asked: bool
    processors: int | None  # the number of processors that it assumes
    processors_asked: int | None  # ActiveProcessorCount on its command line
    collector: str
    max_heap_bytes: int | None
    large_pages: bool
    transparent_huge_pages: bool


class L3Look(Record):
    """resctrl's monitors for the process's group, in one L3 domain."""

    l3: int  # resctrl's id of the domain
    occupancy_bytes: int | None
    total_bytes_per_s: float | None  # memory bandwidth
    local_bytes_per_s: float | None


class NicLook(Record):
    """What an interface has moved, for the whole machine."""

    name: str
    address: str | None  # where slots listen; None for lo
    slots: tuple[int, ...]
    rx_bytes: int
    tx_bytes: int
    # Since the deployment started; a rendered one records no start, so since the interface exists.
    since: Literal["deployment", "interface"]


class Expected(Record):
    """The reference that a process is compared with."""

    # Its place in the plan; without a plan, the place it was started in: the CPUs of its main
    # thread, its own memory policy (docs/inspect.md gives the rules).
    source: Literal["plan", "process"]
    cpus: str  # cpulist: where its threads may run
    exact: bool  # each thread but those in task_cpus has all of these CPUs; else it may have fewer
    memory_policy: str  # as in numa_maps: 'bind:0-1'; empty: unknown
    memory_nodes: str  # nodelist: where its private memory belongs; empty: anywhere
    malloc: Malloc = Malloc.SYSTEM  # whose malloc it should call; system: any
    thp: HugePages = HugePages.SYSTEM
    # Under thread placement: tid of each thread that runs tasks -> the one CPU that it should have.
    task_cpus: dict[int, int] = Field(default_factory=dict)


class Severity(StrEnum):
    DRIFT = "drift"  # not where the plan or the user put it: exit code 1
    NOTE = "note"  # worth knowing; no promise was broken


class Finding(Record):
    """One deviation from the plan or the request, with its likely cause and the remedy.

    `code` is stable and documented in docs/inspect.md.
    """

    code: str
    severity: Severity
    process: str
    pid: int  # 0 if the process is not there and Atoll did not start it
    tid: int | None = None
    comm: str = ""
    mapping: str = ""  # 'anonymous 0x7f..', a path
    expected: str
    found: str
    cause: str
    remedy: str


class Inspection(Record):
    """Everything about one process, at one time."""

    format: Literal["atoll/inspection"] = "atoll/inspection"
    version: Literal[1] = 1
    pid: int
    process: str  # its name in its deployment, otherwise its comm
    slot: int | None
    command: str
    expected: Expected
    memory_policy: str  # of the process, as in numa_maps; empty: unknown
    threads: tuple[ThreadLook, ...]
    # None: fewer than two threads are bound, or the process may use only one chiplet.
    spread: SpreadLook | None = None
    memory: MemoryLook | None
    # Whether it may have transparent huge pages (PR_SET_THP_DISABLE). None: Linux before 5.0.
    thp: bool | None = None
    page_cache: tuple[PageCacheLook, ...]
    malloc: MallocLook | None
    jvm: JvmLook | None  # None also if it is not a JVM
    l3: tuple[L3Look, ...]  # empty if resctrl is not mounted
    unknown: tuple[str, ...] = ()  # what could not be read, and why
    findings: tuple[Finding, ...]

    @property
    def drifted(self) -> int:
        return sum(finding.severity is Severity.DRIFT for finding in self.findings)
