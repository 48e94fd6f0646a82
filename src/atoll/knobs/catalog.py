"""The knobs as data: their files, the values they take, and the advice for and against them.

Files and values follow the kernel's documentation (admin-guide/sysctl/{kernel,vm}.rst,
admin-guide/mm/transhuge.rst, admin-guide/pm/cpufreq.rst, core-api/irq/irq-affinity.rst,
networking/ip-sysctl.rst, ABI/testing/sysfs-kernel-mm-mempolicy-weighted-interleave). Advice names
its source, because
experts disagree; the papers are cited as numa-query-tuning ("The Art of Efficient In-memory Query
Processing on NUMA Systems", P. Memarzia, S. Ray, V. C. Bhavsar) and numa-distributed-engines
("Towards NUMA-Aware Distributed Query Engines", A. Fogli et al.).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from atoll.errors import UsageError
from atoll.knobs import parsers
from atoll.knobs.files import is_match, key_of
from atoll.knobs.values import format_keyed

_THP = "/sys/kernel/mm/transparent_hugepage"
_IPV4 = "/proc/sys/net/ipv4/conf/all"
_WEIGHTS = "/sys/kernel/mm/mempolicy/weighted_interleave"


@dataclass(frozen=True, slots=True)
class Knob:
    name: str
    title: str
    patterns: tuple[str, ...]  # paths with at most one '*' each, in the order of writing
    takes: str  # the values that `apply` takes, for people
    parse: Callable[[str, parsers.KnobFiles], Mapping[str, str | None]]  # UsageError, ValueError
    does: str
    advice: tuple[str, ...]
    instead: str  # settings that affect only one process
    effective: str = ""  # the file next to each one that shows what the hardware made of it
    whole: bool = False  # its files form one value: undone together, or left alone together


KNOBS: dict[str, Knob] = {
    knob.name: knob
    for knob in (
        Knob(
            "numa-balancing",
            "AutoNUMA: pages follow threads between nodes",
            ("/proc/sys/kernel/numa_balancing",),
            "0 off, 1 on, 2 memory tiering, 3 both",
            parsers.number(0, 3),
            "The kernel periodically unmaps pages to see which threads touch them, and moves them "
            "there. 2 promotes hot pages from slow memory (CXL) instead.",
            (
                "off: numa-query-tuning IV-C (1): First Touch with it is 86 % slower than "
                "Interleave without; the kernel's sysctl page, for programs bound to nodes",
                "leave it: numa-distributed-engines, figure 18: no significant difference for "
                "Presto under WIM and WIN",
            ),
            "a memory policy (atoll-exec -m or -i, numactl): AutoNUMA leaves such memory alone",
        ),
        Knob(
            "thp-enabled",
            "transparent huge pages: for which memory",
            (f"{_THP}/enabled",),
            "always, madvise or never",
            parsers.choice,
            "Pages of 2 MiB (on x86) for all anonymous memory, only where programs ask, or none.",
            (
                "never: numa-query-tuning IV-C (2), where it hurts with most allocators; "
                "TuneD's profile for PostgreSQL",
                "always: TuneD's profile for SQL Server",
            ),
            "atoll-exec --no-thp, prctl(PR_SET_THP_DISABLE), madvise(MADV_HUGEPAGE)",
        ),
        Knob(
            "thp-defrag",
            "transparent huge pages: which page faults wait for one",
            (f"{_THP}/defrag",),
            "always, defer, defer+madvise, madvise or never",
            parsers.choice,
            "Whether a page fault stalls until memory has been compacted into a huge page.",
            (
                "defer or defer+madvise: page faults do not stall, and huge pages come later "
                "(transhuge.rst describes each and recommends none)",
            ),
            "madvise(MADV_HUGEPAGE) on memory that should wait; atoll-exec --no-thp",
        ),
        Knob(
            "zone-reclaim",
            "reclaim memory on a node before using another node",
            ("/proc/sys/vm/zone_reclaim_mode",),
            "0 off, or a sum of 1 on, 2 write out, 4 swap",
            parsers.number(0, 7),
            "A full node drops its page cache before it takes memory of another node.",
            (
                "0: the kernel's sysctl page, for users of the page cache: file servers, databases",
                "1: the same page, if programs are sized to fit a node and remote memory is slow",
            ),
            "bind memory (atoll-exec -m): a bound process reclaims only on its own nodes",
        ),
        Knob(
            "swappiness",
            "swap out, or drop page cache",
            ("/proc/sys/vm/swappiness",),
            "0 to 200 (100 before Linux 5.8)",
            parsers.number(0, 200),
            "The cost of swapping relative to that of reading files again: 100 makes them equal.",
            (
                "1 to 10: common advice in databases' manuals, so that heaps stay in memory",
                "above 100: the kernel's sysctl page, for swap in memory (zram, zswap)",
            ),
            "memory.swap.max of the process's cgroup (v2), mlockall(2)",
        ),
        Knob(
            "governor",
            "how CPUs choose their frequency",
            ("/sys/devices/system/cpu/cpufreq/policy*/scaling_governor",),
            "a governor that all CPUs have, such as performance, or POLICY=GOVERNOR,...",
            parsers.governor,
            "One governor for every CPU frequency policy, or for the named ones. A policy "
            "whose CPUs are all offline has none. Absent in most virtual machines.",
            (
                "performance: TuneD's throughput-performance; for measurements, so that runs are "
                "comparable",
                "leave it: it costs power, and with hardware-managed frequencies it changes little",
            ),
            "uclamp (sched_setattr, cpu.uclamp.min) if the governor is schedutil",
        ),
        Knob(
            "weighted-interleave",
            "weights of weighted interleave: pages per node",
            # A kernel built with a C23 compiler (seen: 6.18) spells `auto` this way.
            (f"{_WEIGHTS}/auto", f"{_WEIGHTS}/__auto_type", f"{_WEIGHTS}/node*"),
            "NODE=WEIGHT,... of 1 to 255, such as 0=3,1=1",
            parsers.weights,
            "How many pages in turn each node gets under the policy weighted-interleave. Setting "
            "one ends the kernel's own choice (auto, Linux 6.16); undo restores it.",
            (
                "in the ratio of the nodes' bandwidths: the kernel's ABI page, for DRAM "
                "together with CXL memory",
            ),
            "it affects only processes with that policy: atoll-exec -w NODES",
            whole=True,
        ),
        Knob(
            "irq-affinity",
            "which CPUs serve an interrupt",
            ("/proc/irq/*/smp_affinity_list",),
            "IRQ=CPUS,... such as 24=0-3,8,25-26=4",
            parsers.irqs,
            "Interrupts can be kept away from the workers' CPUs, or close to their network card. "
            "Some cannot be moved. irqbalance, if it runs, moves them again.",
            (
                "on the card's own node, away from workers: network vendors' tuning guides, "
                "Seastar's perftune",
                "leave it to irqbalance: the distributions' default",
            ),
            "place the workers elsewhere: atoll-exec with '~pu:N'",
            effective="effective_affinity_list",
        ),
        Knob(
            "arp-ignore",
            "which NICs answer when other machines look for an address",
            (f"{_IPV4}/arp_ignore",),
            "0 any NIC, 1 the one that has the address, 2 to 8 stricter",
            parsers.number(0, 8),
            "With 0, any of several NICs on one network answers for the addresses of all, and "
            "traffic for one of them arrives at another.",
            (
                "1: the kernel's ip-sysctl page, for machines with several NICs on one network; "
                "with it an instance's traffic arrives at its own NIC (atoll up --listen nic)",
                "leave it: with one NIC on each network it changes nothing",
            ),
            "a network of its own for each NIC",
        ),
        Knob(
            "arp-announce",
            "which address a NIC shows when it looks for another machine",
            (f"{_IPV4}/arp_announce",),
            "0 any, 1 one of the target's network if possible, 2 its own",
            parsers.number(0, 2),
            "With 0, a NIC may show the address of another one, and others then answer to that.",
            ("2: together with arp-ignore=1, for the same machines",),
            "a network of its own for each NIC",
        ),
    )
}


def knob_named(name: str) -> Knob:
    try:
        return KNOBS[name]
    except KeyError:
        raise UsageError(f"no knob {name!r}; choose from {', '.join(KNOBS)}") from None


def has_file(name: str, path: str) -> bool:
    """Whether the knob exists and `path` is one of its files."""
    return name in KNOBS and any(is_match(pattern, path) for pattern in KNOBS[name].patterns)


def shown(knob: Knob, values: Mapping[str, str]) -> str:
    """The values of a knob's files (path -> value) in one line, for people."""
    if len(knob.patterns) == 1 and "*" not in knob.patterns[0]:
        return next(iter(values.values()), "")
    keyed = {key: value for path, value in values.items() if (key := key_of(path)) is not None}
    if knob.name == "governor" and len(set(keyed.values())) == 1:
        return next(iter(keyed.values()))
    modes = [value for path, value in values.items() if key_of(path) is None]
    words = [format_keyed(keyed), *("(auto)" if mode == "true" else "(manual)" for mode in modes)]
    return " ".join(filter(None, words))


def setting(knob: Knob, values: Mapping[str, str]) -> str:
    """The argument of `apply` that gives exactly these files (path -> value) their values; empty if
    there is none, as for the mode of the weights."""
    keyed = {key_of(path): value for path, value in values.items()}
    if len(keyed) == 1 and None in keyed and not knob.whole:
        return keyed[None]
    numbered = {key: value for key, value in keyed.items() if key is not None}
    return format_keyed(numbered) if len(numbered) == len(values) else ""
