"""Finds allocator and JVM settings that were requested but did not take effect. Pure.

`atoll.inspect.malloc` determines whether a preload took effect, and if not, why.

HotSpot silently turns UseNUMA off (os_linux.cpp) if libnuma is missing, if there is one node, and
if its memory is bound to one node. JDK 17 keeps it on if it has memory of several nodes, even with
all CPUs on one of them (tests/vm/test_jvm.py); some other versions reportedly do not.
"""

from __future__ import annotations

from collections.abc import Sequence

from atoll.inspect.drift_threads import cpus_of
from atoll.inspect.policy import parse_policy
from atoll.inspect.rule_context import RuleContext
from atoll.schema.cpulist import format_cpulist, parse_cpulist
from atoll.schema.inspection import Finding, JvmLook, MallocLook, Severity, ThreadLook
from atoll.schema.plan import HugePages, Malloc

# These collectors ignore NUMA nodes.
_WITHOUT_NUMA = ("Serial", "Epsilon")


def malloc_findings(malloc: MallocLook | None, context: RuleContext) -> list[Finding]:
    """preload-without-effect, malloc-exception and malloc-unplanned."""
    if malloc is None:
        return []
    findings = _unplanned_malloc(malloc, context) + [
        context.finding(
            "preload-without-effect",
            Severity.DRIFT,
            expected=f"LD_PRELOAD={entry}",
            found=f"malloc of {malloc.reached}" if malloc.reached else "not loaded",
            cause=cause,
            remedy=_preload_remedy(cause),
        )
        for entry, cause in malloc.preload_faults.items()
    ]
    taken = [entry for entry in malloc.preload if entry not in malloc.preload_faults]
    if malloc.loaded and taken:
        findings += [
            context.finding(
                "malloc-exception",
                Severity.NOTE,
                expected=f"malloc of {malloc.reached}",
                found=f"{name} calls {other}",
                cause="it contains its own allocator, or was linked to another",
                remedy="none from outside; preloading an allocator hardly affects this library",
            )
            for name, other in malloc.exceptions.items()
        ]
    return findings


def _unplanned_malloc(malloc: MallocLook, context: RuleContext) -> list[Finding]:
    planned = context.expectation.malloc
    if planned is Malloc.SYSTEM:
        return []
    library = f"lib{planned}"
    # Without the right to read its memory, what is mapped is known, and what is called is not.
    called = (malloc.reached,) if malloc.reached else malloc.loaded
    explained = [_base(entry) for entry in malloc.preload_faults]
    if any(name.startswith(library) for name in (*called, *explained)):
        return []
    preloaded = any(_base(entry).startswith(library) for entry in malloc.preload)
    return [
        context.finding(
            "malloc-unplanned",
            Severity.DRIFT,
            expected=f"malloc of {planned}",
            found=f"malloc of {malloc.reached}" if malloc.reached else f"no {library} mapped",
            cause="another library comes before it"
            if preloaded
            else "its LD_PRELOAD has no such library: the engine started it with an environment of "
            "its own",
            remedy="let the engine pass LD_PRELOAD on, or plan without --malloc",
        )
    ]


def _base(path: str) -> str:
    return path.rpartition("/")[2]


def thp_findings(allowed: bool | None, context: RuleContext) -> list[Finding]:
    """thp-on: the process may have transparent huge pages against the plan."""
    if context.expectation.thp is not HugePages.NEVER or not allowed:
        return []
    return [
        context.finding(
            "thp-on",
            Severity.DRIFT,
            expected="no transparent huge pages",
            found="allowed (THP_enabled: 1)",
            cause="the program allowed them again (prctl, PR_SET_THP_DISABLE)",
            remedy="turn off the program's own setting, or plan without --thp never",
        )
    ]


def _preload_remedy(cause: str) -> str:
    if "static" in cause:
        return "link the allocator into the program, or use a dynamically linked build"
    if "raised rights" in cause:
        return "add the library to /etc/ld.so.preload, or run the program without setuid"
    if "preload" in cause:
        return "preload that library; atoll-exec --malloc chooses the right one"
    if "comes before" in cause or "comes first" in cause:
        return "preload it before the others, or build the program without its own malloc"
    return "install the library and give its full path; atoll-exec --malloc checks that it exists"


def jvm_findings(
    jvm: JvmLook | None, policy: str, threads: Sequence[ThreadLook], context: RuleContext
) -> list[Finding]:
    """jvm-numa-off, jvm-processors and jvm-thp-off."""
    if jvm is None:
        return []
    return [
        *_numa(jvm, policy, threads, context),
        *_processors(jvm, context),
        *_thp(jvm, context),
    ]


def _numa(
    jvm: JvmLook, policy: str, threads: Sequence[ThreadLook], context: RuleContext
) -> list[Finding]:
    deaf = jvm.collector.startswith(_WITHOUT_NUMA)
    if not jvm.use_numa_asked or (jvm.use_numa and not deaf):
        return []
    cause, remedy = _why_no_numa(jvm, policy, threads, context)
    return [
        context.finding(
            "jvm-numa-off",
            # On a machine with one node nothing is lost.
            Severity.DRIFT if context.machine.several_nodes else Severity.NOTE,
            expected="-XX:+UseNUMA",
            found=f"on, but {jvm.collector} ignores it" if jvm.use_numa else "off",
            cause=cause,
            remedy=remedy,
        )
    ]


def _why_no_numa(
    jvm: JvmLook, policy: str, threads: Sequence[ThreadLook], context: RuleContext
) -> tuple[str, str]:
    if jvm.use_numa:
        return (
            f"the {jvm.collector} collector does not support NUMA",
            "use -XX:+UseParallelGC, -XX:+UseG1GC or -XX:+UseZGC",
        )
    if not context.machine.several_nodes:
        return "the machine has one memory node", "remove -XX:+UseNUMA on this machine"
    if not context.clues.libnuma:
        return "libnuma.so.1 is not installed", "install it: apt-get install libnuma1"
    main = next((thread for thread in threads if thread.tid == context.pid), None)
    allowed = parse_policy(policy).nodes if policy.startswith("bind") else frozenset()
    if not allowed and main is not None:
        allowed = frozenset(parse_cpulist(main.memory_nodes))
    cpus = cpus_of(main) if main is not None else context.expectation.cpus
    beside = frozenset(node for node, own in context.machine.node_cpus.items() if own & cpus)
    if len(allowed) == 1:
        differ = "" if beside == allowed else f" (its CPUs are on {format_cpulist(beside)})"
        return (
            f"its memory is bound to node {format_cpulist(allowed)} alone{differ}; a JVM then "
            "turns UseNUMA off, whatever its CPUs",
            "remove -XX:+UseNUMA, since all its memory is on that node; or give it memory of "
            "several nodes (atoll-exec -N 0-1 -m 0-1)",
        )
    differ = (
        f"; its CPUs are on nodes {format_cpulist(beside)}, its memory on "
        f"{format_cpulist(allowed)}, which JDK 17 accepts and other versions may not"
        if allowed and beside != allowed
        else ""
    )
    return (
        f"the JVM turned it off at start{differ}",
        "start it with -Xlog:os+numa and read the first lines of its output"
        + (", or give it CPUs and memory of the same nodes" if differ else ""),
    )


def _processors(jvm: JvmLook, context: RuleContext) -> list[Finding]:
    has = jvm.processors
    if has is None:
        return []
    place, asked = len(context.expectation.cpus), jvm.processors_asked
    if asked is not None:
        if asked == has:
            return []
        expected, cause = f"{asked} (-XX:ActiveProcessorCount)", "the JVM rejected the number"
        remedy = "read the first lines of the JVM's output"
        severity = Severity.DRIFT
    elif has == place:
        return []
    else:
        expected = f"{place}, the CPUs {format_cpulist(context.expectation.cpus)}"
        remedy = f"start it in its planned place, or with -XX:ActiveProcessorCount={place}"
        if has > place:
            severity = Severity.DRIFT
            cause = "its CPU mask was narrowed after start; its thread pools keep their size"
        else:
            severity = Severity.NOTE
            cause = "a CPU quota of its cgroup (cpu.max), or a narrower CPU mask at start"
    return [
        context.finding(
            "jvm-processors",
            severity,
            expected=expected,
            found=str(has),
            cause=cause,
            remedy=remedy,
        )
    ]


def _thp(jvm: JvmLook, context: RuleContext) -> list[Finding]:
    planned = context.expectation.thp is HugePages.NEVER
    if not jvm.transparent_huge_pages or not (planned or context.machine.thp == "never"):
        return []
    return [
        context.finding(
            "jvm-thp-off",
            Severity.DRIFT,
            expected="-XX:+UseTransparentHugePages",
            found="transparent huge pages are off",
            cause="the plan turns them off (--thp never)"
            if planned
            else "/sys/kernel/mm/transparent_hugepage/enabled says never",
            remedy="plan without --thp never, or remove the flag"
            if planned
            else "let programs ask for them: atoll apply thp-enabled=madvise",
        )
    ]
