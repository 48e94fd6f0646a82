"""What a live process really does: threads, memory, allocator, JVM. Format `atoll/inspection` 1.

Made by `atoll.inspect`; printed by `atoll inspect` and `atoll verify` with `--json`. CPUs and
nodes are the kernel's numbers, memory is in bytes, shares lie between 0 and 1. What could not be
found out is None and has a line in `unknown` that says why; it is never a zero.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Literal

from pydantic import Field

from atoll.schema.base import Record


class ThreadLook(Record):
    """One thread, from /proc/PID/task/TID (proc(5))."""

    tid: int
    comm: str
    cpus: str  # cpulist: where it may run
    memory_nodes: str  # nodelist: Mems_allowed_list, what its cpuset leaves
    last_cpu: int
    cpu_seconds: float  # user and system time since it began
    migrations: int | None  # se.nr_migrations; None where the kernel does not tell


class SpreadLook(Record):
    """Over how many chiplets those threads are spread whose masks lie within one each."""

    over: Literal["chiplet", "node"]  # nodes stand for chiplets where the machine shows none
    usable: int  # how many of them the process may use
    # By the chiplet's index, or the node's number, in `atoll topo`; their count is the spread.
    threads_on: dict[int, int]
    threads_named: dict[str, int]  # by name, without the number at its end: {'atoll-duck': 7}


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
    policy: str  # in numa_maps' words: 'default', 'bind:0-1'; empty: not read
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
    # alike: sum over nodes of (share of CPU time there) x (share of pages there).
    local_share: float | None
    # Share of pages on nodes whose CPUs the process's threads may run on.
    own_nodes_share: float | None


class PageCacheLook(Record):
    """What the page cache holds of a file that the process has open or mapped."""

    path: str
    size_bytes: int
    cached_bytes: int
    bytes_by_node: dict[int, int]
    sampled: bool


class MallocLook(Record):
    """Which malloc answers: what was asked for, what is mapped, whose code is called."""

    preload: tuple[str, ...]  # LD_PRELOAD as the process was started with, /etc/ld.so.preload
    loaded: tuple[str, ...]  # allocator libraries that are mapped, in the linker's order
    reached: str | None  # the object that malloc resolves to: 'libjemalloc.so.2', 'libc.so.6'
    # Objects whose malloc goes elsewhere, or that bring an allocator of their own.
    exceptions: dict[str, str] = Field(default_factory=dict)
    # Preloads that changed no malloc, and why: 'no such file', 'defines no malloc'.
    preload_faults: dict[str, str] = Field(default_factory=dict)
    unknown: str = ""  # why `reached` is None


class JvmLook(Record):
    """What a JVM made of its flags (jcmd VM.flags, VM.info)."""

    version: str
    use_numa: bool
    use_numa_asked: bool
    processors: int | None  # what it takes for its number of processors
    processors_asked: int | None  # ActiveProcessorCount on its command line
    collector: str
    max_heap_bytes: int | None
    large_pages: bool
    transparent_huge_pages: bool


class L3Look(Record):
    """resctrl's monitors for the group that the process is in, of one L3 domain."""

    l3: int  # resctrl's id of the domain
    occupancy_bytes: int | None
    total_bytes_per_s: float | None  # memory bandwidth
    local_bytes_per_s: float | None


class Expected(Record):
    """What a process is compared with."""

    # Its place in the plan; or, where nobody planned it, what it was given itself: the CPUs of its
    # main thread, its own memory policy (docs/inspect.md tells which, and when).
    source: Literal["plan", "process"]
    cpus: str  # cpulist: where its threads may run
    exact: bool  # each thread on all of these CPUs; else it may have fewer of them
    memory_policy: str  # in numa_maps' words: 'bind:0-1'; empty: not known
    memory_nodes: str  # nodelist: where its private memory belongs; empty: anywhere


class Severity(StrEnum):
    DRIFT = "drift"  # elsewhere than planned or asked: exit code 1
    NOTE = "note"  # worth knowing; nothing was promised


class Finding(Record):
    """One thing that is not as planned or asked, with its likely cause and the remedy.

    `code` is stable and documented in docs/inspect.md.
    """

    code: str
    severity: Severity
    process: str
    pid: int
    tid: int | None = None
    comm: str = ""
    mapping: str = ""  # 'anonymous 0x7f..', a path
    expected: str
    found: str
    cause: str
    remedy: str


class Inspection(Record):
    """Everything about one process, at one time."""

    FORMAT: ClassVar[str] = "atoll/inspection"
    VERSION: ClassVar[int] = 1

    format: Literal["atoll/inspection"] = "atoll/inspection"
    version: Literal[1] = 1
    pid: int
    process: str  # name in its deployment, else its comm
    slot: int | None
    command: str
    expected: Expected
    memory_policy: str  # of the process, in numa_maps' words; empty: not known
    threads: tuple[ThreadLook, ...]
    # None: fewer than two threads are bound so, or the process may use one chiplet alone.
    spread: SpreadLook | None = None
    memory: MemoryLook | None
    page_cache: tuple[PageCacheLook, ...]
    malloc: MallocLook | None
    jvm: JvmLook | None  # None also where it is no JVM
    l3: tuple[L3Look, ...]  # empty where resctrl is not mounted
    unknown: tuple[str, ...] = ()  # what could not be read, and why
    findings: tuple[Finding, ...]

    @property
    def drifted(self) -> int:
        return sum(finding.severity is Severity.DRIFT for finding in self.findings)
