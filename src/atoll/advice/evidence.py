"""The evidence that rules cite. Every entry was looked up in its source.

Papers: numa-query-tuning ("The Art of Efficient In-memory Query Processing on NUMA Systems",
P. Memarzia, S. Ray, V. C. Bhavsar), numa-distributed-engines ("Towards NUMA-Aware Distributed Query
Engines", A. Fogli et al.), olap-on-chiplets ("OLAP on Modern Chiplet-Based Processors", A. Fogli et
al.). Manuals are the kernel's, by their file in Documentation/.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from atoll.schema.advice import Evidence

_TUNING = "numa-query-tuning"
_ENGINES = "numa-distributed-engines"
_CHIPLETS = "olap-on-chiplets"


def _paper(source: str, place: str, says: str) -> Evidence:
    return Evidence(kind="paper", source=source, place=place, says=says)


def _of(kind: Literal["issue", "manual"], source: str, place: str, says: str) -> Evidence:
    return Evidence(kind=kind, source=source, place=place, says=says)


def preload(why: str) -> Evidence:
    """What the program's files or its memory show of a preload."""
    return Evidence(kind="measured", source="this machine", place="the program's files", says=why)


def churn(times_ns: Mapping[str, float]) -> Evidence:
    """What `atoll measure` found; the fastest first."""
    times = sorted(times_ns.items(), key=lambda item: item[1])
    return Evidence(
        kind="measured",
        source="this machine",
        place="its newest profile, churn",
        says="ns an operation: " + ", ".join(f"{name} {ns:.0f}" for name, ns in times),
    )


SPARSE = _paper(
    _TUNING,
    "III-B, figures 3 and 4, table III",
    "bound threads are at least 27 % faster than free ones; sparse beats dense when not all "
    "hardware threads are used, and equals it when they are",
)
DENSE = _paper(
    _CHIPLETS,
    "4.4",
    "threads on one chiplet have more bandwidth than spread ones as long as the data fits into "
    "its L3",
)
BETWEEN_CORES = _paper(
    _CHIPLETS,
    "2.3, figure 3",
    "on Milan a cache line passes between cores of one chiplet in 24 ns, of one socket in 106 ns "
    "and of two sockets in 182 ns (means)",
)
FIRST_TOUCH = _paper(
    _TUNING,
    "III-C",
    "data should be on the node of the thread that processes it, and sharing kept to a minimum",
)
INTERLEAVE = _paper(
    _TUNING,
    "IV-C 1, figure 5",
    "one program with a shared hash table on all nodes: interleave is fastest, with and without "
    "AutoNUMA, although first touch with AutoNUMA has the higher local share",
)
INTERLEAVE_2 = _paper(
    _TUNING,
    "IV-D 1, figure 6",
    "distributive aggregation (W2): 27 to 44 % less time, almost all of it by interleave",
)
BIND = _paper(
    _ENGINES,
    "IV-C, figure 6",
    "one instance per node with bound memory is fastest (2.6x to 3.3x), and interleave the worst, "
    "since each instance's data is its own",
)
LOCAL_FIRST = _of(
    "manual",
    "linux",
    "admin-guide/mm/numa_memory_policy.rst",
    "the default policy takes memory of the CPU's own node, and of the next one when that is full; "
    "bind never takes any of another node",
)
WEIGHTS = _of(
    "manual",
    "linux",
    "ABI/testing/sysfs-kernel-mm-mempolicy-weighted-interleave",
    "weights in the ratio of the nodes' bandwidths, for DRAM together with CXL memory (Linux 6.9); "
    "all are 1 until somebody sets them, or the kernel itself (auto, 6.16)",
)
ALLOCATORS = _paper(
    _TUNING,
    "IV-D 1, figure 6",
    "tbbmalloc takes 62 to 83 % off holistic aggregation (W1) and 70 to 94 % off the hash join "
    "(W3) against the system's malloc",
)
PRELOADED = _of(
    "manual",
    "man-pages",
    "ld.so(8), LD_PRELOAD",
    "the dynamic linker loads these libraries first, so they serve only what is looked up by it",
)
NOT_ALLOCATING = _paper(
    _TUNING,
    "IV-D 1, IV-D 3, IV-F",
    "programs that allocate little gain little: W2 by its allocator, W4 in the join phase",
)
TRY_ALLOCATORS = _paper(
    _TUNING,
    "IV-F",
    "the authors recommend to try new allocators before one is chosen",
)
CHURN = _paper(
    _TUNING,
    "III-A 8, figure 2",
    "one thread: tcmalloc is fastest; several: the allocators differ widely, in time and memory",
)
THP_HURTS = _paper(
    _TUNING,
    "IV-C 2, figure 5c",
    "huge pages cost time with tcmalloc, jemalloc and tbbmalloc, and little with the others",
)
THP_TLB = _of(
    "manual",
    "linux",
    "admin-guide/mm/transhuge.rst",
    "huge pages make fewer TLB misses, and each one is cheaper",
)
THP_TUNED = _of(
    "manual",
    "tuned",
    "profiles postgresql and mssql",
    "the field disagrees: never for one database, always for the other",
)
MADVISE = _of(
    "manual",
    "linux",
    "admin-guide/mm/transhuge.rst",
    "under madvise only memory gets huge pages whose program asked for them",
)
DEFRAG = _of(
    "manual",
    "linux",
    "admin-guide/mm/transhuge.rst, defrag",
    "always: a page fault stalls until memory is compacted; defer+madvise: only in regions that "
    "asked for it",
)
AUTONUMA = _paper(
    _TUNING,
    "IV-C 1, figures 5a and 5b",
    "First Touch with AutoNUMA is 86 % slower than Interleave without it (W1), and Interleave is "
    "slower with it, too",
)
AUTONUMA_SAME = _paper(
    _ENGINES,
    "VI, figure 18",
    "Presto, first touch, one instance and one per node: no significant difference",
)
AUTONUMA_SKIPS = _of(
    "manual",
    "linux",
    "mm/mempolicy.c, vma_policy_mof",
    "AutoNUMA leaves memory with a policy of its own alone",
)
TIERING = _of(
    "manual",
    "linux",
    "admin-guide/sysctl/kernel.rst, numa_balancing",
    "2 promotes hot pages from slow memory, and so has another purpose than 1",
)
RECLAIM = _of(
    "manual",
    "linux",
    "admin-guide/sysctl/vm.rst, zone_reclaim_mode",
    "leave it off if data in the page cache matters more than locality; it suits programs sized "
    "to fit a node",
)
GOVERNOR = _of(
    "manual",
    "linux",
    "admin-guide/pm/cpufreq.rst",
    "performance requests the highest frequency, powersave the lowest; ondemand, conservative and "
    "schedutil follow the load with a delay",
)
PSTATE = _of(
    "manual",
    "linux",
    "admin-guide/pm/intel_pstate.rst and amd-pstate.rst, active mode",
    "powersave of these drivers follows the load, unlike cpufreq's governor of that name",
)
SMT = _paper(
    _ENGINES,
    "VI, figure 17",
    "one instance per node gains 2.5x over one per machine, with and without SMT; half of the "
    "queries gain more without it, half with it",
)
SMT_ISSUE = _of(
    "issue",
    "trinodb/trino",
    "#10088",
    "two threads a core, on 16 cores: TPC-H up to 4 % faster, TPC-DS 2 to 3 % slower, 5 to 8 % "
    "more CPU time; the default then followed the physical cores",
)
SUB_NUMA = _paper(
    _CHIPLETS,
    "5, NUMA domain configuration",
    "NPS and SNC improve bandwidth and latency, but engines that do not use several nodes lose",
)
ONE_NODE = _of(
    "manual",
    "linux",
    "admin-guide/mm/numa_memory_policy.rst",
    "a policy chooses among nodes; with one node there is nothing to choose",
)
