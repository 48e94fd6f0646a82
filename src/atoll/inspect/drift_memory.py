"""Finds pages on the wrong nodes and their most likely cause. Pure.

What each memory policy guarantees (set_mempolicy(2), mm/mempolicy.c):

- bind is strict: a page on another node was moved, or was allocated before the policy was set;
- preferred, local and first touch fall back to other nodes when a node is full, and so does
  interleave. A few pages elsewhere prove nothing, so these policies have a threshold;
- a policy applies to the process's own memory. A file's pages lie where the first process that
  read them ran, and another process may have touched shared memory that has a file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from atoll.inspect.policy import Policy, parse_policy, plain
from atoll.inspect.rule_context import RuleContext
from atoll.schema.cpulist import format_cpulist, parse_cpulist
from atoll.schema.inspection import (
    Finding,
    MappingKind,
    MappingLook,
    MemoryLook,
    PageCacheLook,
    Severity,
    ThreadLook,
)
from atoll.schema.size import GIB, MIB, gib

# Under bind, over all mappings: a fork shares a few pages with its parent, exec copies arguments.
STRICT_BYTES = 64 << 10
# Under other policies: at least this much, and this share of the memory that the policy governs.
SOFT_BYTES = 8 * MIB
SOFT_SHARE = 0.05
# Interleaving counts as uneven if a node differs by this much (16 huge pages) and by this part of
# its share. Where many mappings begin, the first nodes get slightly more.
UNEVEN_BYTES = 32 * MIB
UNEVEN_PART = 0.25
# A node is full if less than this part of it is free.
FULL_PART = 0.02
# All memory has been moved if this part of every mapping has been.
_WHOLE = 0.9
_OWN_KINDS = frozenset(
    {MappingKind.HEAP, MappingKind.STACK, MappingKind.ANONYMOUS, MappingKind.HUGETLB}
)
_FAMILY_S_OWN = ("/dev/zero", "[anon_shmem")
DEPLOYMENTS_OWN = (*_FAMILY_S_OWN, "/memfd:", "/SYSV", "/dev/shm/")


def memory_findings(
    memory: MemoryLook,
    policy: str,
    threads: Sequence[ThreadLook],
    context: RuleContext,
    weights: Mapping[int, int],
) -> list[Finding]:
    """memory-outside and interleave-uneven. `policy`: the process's own memory policy."""
    if not context.machine.several_nodes:
        return []
    return [
        *_outside(memory, policy, threads, context),
        *_uneven(memory, policy, context, weights),
    ]


def policy_findings(
    policy: str, threads: Sequence[ThreadLook], context: RuleContext
) -> list[Finding]:
    """memory-policy: compares the process's own policy with the plan's."""
    expectation = context.expectation
    if (
        not expectation.planned
        or not context.machine.several_nodes
        or not policy
        or plain(policy) == expectation.policy
    ):
        return []
    closed = _closed(expectation.nodes, threads)
    return [
        context.finding(
            "memory-policy",
            Severity.DRIFT,
            expected=expectation.policy,
            found=policy,
            cause=(
                f"cpuset.mems of its cgroup closes nodes {format_cpulist(closed)}; the kernel "
                "then rewrites policies"
                if closed
                else "the program set its own policy (set_mempolicy), or a launcher in its command "
                "did (numactl)"
            ),
            remedy=(
                "widen cpuset.mems and restart, or plan inside the cgroup"
                if closed
                else "turn off the program's own NUMA setting and let Atoll set the policy"
            ),
        )
    ]


def page_cache_findings(files: Sequence[PageCacheLook], context: RuleContext) -> list[Finding]:
    """page-cache-elsewhere: only a note, since no policy promises where a file is cached."""
    home = context.expectation.nodes
    findings = []
    for file in files:
        away = {node: size for node, size in file.bytes_by_node.items() if node not in home}
        if home and _is_much(sum(away.values()), sum(file.bytes_by_node.values())):
            findings.append(
                context.finding(
                    "page-cache-elsewhere",
                    Severity.NOTE,
                    mapping=file.path,
                    expected=f"cached on nodes {format_cpulist(home)}",
                    found=_by_node(away),
                    cause="a process on another node read or wrote it first",
                    remedy="drop it from the cache (vmtouch -e) and read it from the planned place",
                )
            )
    return findings


def _outside(
    memory: MemoryLook, policy: str, threads: Sequence[ThreadLook], context: RuleContext
) -> list[Finding]:
    judged = [
        (mapping, *wanted)
        for mapping in memory.mappings
        if _is_own(mapping, context) and (wanted := _wanted(mapping, policy, context))[0]
    ]
    findings = []
    for strict in (True, False):
        parts = [(mapping, nodes) for mapping, nodes, is_strict in judged if is_strict is strict]
        away = [(mapping, nodes, _away(mapping, nodes)) for mapping, nodes in parts]
        out = sum(sum(found.values()) for _, _, found in away)
        held = sum(sum(mapping.bytes_by_node.values()) for mapping, _ in parts)
        if not (out > STRICT_BYTES if strict else _is_much(out, held)):
            continue
        whole = all(
            sum(found.values()) > _WHOLE * sum(mapping.bytes_by_node.values())
            for mapping, _, found in away
        )
        for mapping, nodes, found in away:
            size = sum(found.values())
            if not size or not (strict or size > out / 100):
                continue
            cause, remedy = _why_outside(
                mapping, nodes, found, policy, threads, context, whole=whole
            )
            places = {"away": format_cpulist(found), "nodes": format_cpulist(nodes)}
            findings.append(
                context.finding(
                    "memory-outside",
                    Severity.DRIFT,
                    mapping=mapping_name(mapping),
                    expected=f"nodes {places['nodes']}",
                    found=_by_node(found),
                    cause=cause,
                    remedy=remedy.format(pid=context.pid, **places),
                )
            )
    return findings


def _why_outside(
    mapping: MappingLook,
    nodes: frozenset[int],
    away: Mapping[int, int],
    policy: str,
    threads: Sequence[ThreadLook],
    context: RuleContext,
    *,
    whole: bool,
) -> tuple[str, str]:
    own, clues = parse_policy(mapping.policy), context.clues
    back = "move the pages back: migratepages {pid} {away} {nodes}"
    perhaps_own = ""
    if not mapping.policy:
        perhaps_own = (
            ", or the program gave them their own policy (mbind); Atoll samples a process this "
            "large, and a sample does not show policies"
        )
        policy_line = f"grep ^{mapping.start:08x} /proc/{{pid}}/numa_maps"
        back = f"check its policy: {policy_line}; if it has none of its own, {back}"
    if closed := _closed(nodes, threads):
        return (
            f"cpuset.mems of its cgroup closes nodes {format_cpulist(closed)}",
            "widen cpuset.mems, then " + back,
        )
    if mapping.policy and policy and mapping.policy != policy and away.keys() & own.nodes:
        return (
            f"the program gave this mapping its own policy, {mapping.policy} (mbind)",
            "turn off the program's own NUMA setting",
        )
    if threads_own := _threads_with_own_policy(away, policy, threads, context):
        return threads_own, "turn off the program's own NUMA setting, then " + back
    if context.expectation.planned and policy and plain(policy) != context.expectation.policy:
        return (
            f"its memory policy is {policy} instead of {context.expectation.policy}",
            "see memory-policy",
        )
    if (own if mapping.policy else parse_policy(policy)).mode == "bind":
        return (
            (
                "all of its memory was moved after first touch (migrate_pages, a change "
                "of cpuset.mems), or existed before the policy was set"
                if whole
                else "these pages were moved after first touch (move_pages, migrate_pages), "
                "or were touched before the policy was set, or by a thread that had another"
            )
            + perhaps_own,
            back,
        )
    full = [node for node in nodes if node in clues.free and _is_full(*clues.free[node])]
    if full:
        return (
            f"node {format_cpulist(full)} is full, so the policy fell back to another node",
            "give the process less memory (heap, cache) or free some; then " + back,
        )
    if all(not context.machine.node_cpus.get(node) for node in away) and clues.demotion:
        return (
            "the kernel moved cold pages to a memory-only node (numa/demotion_enabled)",
            "turn demotion off, or bind the memory",
        )
    balanced = ", or AutoNUMA (numa_balancing is on)" if context.machine.balancing else ""
    return (
        "threads that ran there touched them (before they were pinned, or they run elsewhere now), "
        f"or they were moved since (migrate_pages{balanced}){perhaps_own}",
        back,
    )


def _threads_with_own_policy(
    away: Mapping[int, int], policy: str, threads: Sequence[ThreadLook], context: RuleContext
) -> str:
    """Names those of the threads whose policy may have put pages there; empty if none may have."""
    own = [
        (thread, text)
        for thread in threads
        if (text := context.clues.policies.get(thread.tid, policy)) != policy
        and away.keys() & parse_policy(text).nodes
    ]
    if not own:
        return ""
    (first, text), more = own[0], len(own) - 1
    others = f" and {more} more have policies of their own" if more else " has a policy of its own"
    return f"thread {first.tid} ({first.comm}){others}, {text} (set_mempolicy)"


def _wanted(mapping: MappingLook, policy: str, context: RuleContext) -> tuple[frozenset[int], bool]:
    """The nodes where a mapping's pages belong (empty: anywhere), and whether strictly so."""
    expectation = context.expectation
    if not expectation.planned and mapping.policy and mapping.policy != policy:
        own = parse_policy(mapping.policy)  # its own, and the plan asked for no other
        return own.nodes, own.mode == "bind"
    return expectation.nodes, parse_policy(expectation.policy).mode == "bind"


def _is_own(mapping: MappingLook, context: RuleContext) -> bool:
    """Whether the process's policy governs the mapping's pages, that is, no process elsewhere
    touches it. Unnamed shared memory belongs to a process family; a deployment has one place."""
    if mapping.kind is MappingKind.SHARED:
        names = DEPLOYMENTS_OWN if context.expectation.planned else _FAMILY_S_OWN
        return mapping.name.startswith(names)
    return mapping.kind in _OWN_KINDS


def _uneven(
    memory: MemoryLook, policy: str, context: RuleContext, weights: Mapping[int, int]
) -> list[Finding]:
    wanted = parse_policy(context.expectation.policy)
    if not wanted.interleaves:
        return []
    sizes: Counter[int] = Counter()
    for mapping in memory.mappings:
        if _is_own(mapping, context) and mapping.policy in ("", policy):
            sizes.update(mapping.bytes_by_node)
    total = sum(sizes.values())
    if total < UNEVEN_BYTES * len(wanted.nodes):
        return []
    shares = _shares(wanted, weights)
    off = {
        node
        for node, share in shares.items()
        if abs(sizes[node] / total - share) > UNEVEN_PART * share + memory.share_error
    }
    if not off:
        return []
    full = [
        node for node in off if node in context.clues.free and _is_full(*context.clues.free[node])
    ]
    return [
        context.finding(
            "interleave-uneven",
            Severity.DRIFT,
            expected=", ".join(f"node {node}: {share:.0%}" for node, share in shares.items()),
            found=", ".join(
                f"node {node}: {sizes[node] / total:.0%}"
                for node in sorted(shares.keys() | sizes.keys())
            ),
            cause=(
                f"node {format_cpulist(full)} is full"
                if full
                else "pages were moved since (migrate_pages) or touched before the policy was "
                "set, or a node was full at the time"
            ),
            remedy="restart the process under the policy, or move pages with migratepages",
        )
    ]


def _shares(policy: Policy, weights: Mapping[int, int]) -> dict[int, float]:
    weighted = policy.mode.startswith("weighted")
    parts = {node: (weights.get(node, 1) if weighted else 1) for node in sorted(policy.nodes)}
    total = sum(parts.values()) or 1
    return {node: part / total for node, part in parts.items()}


def _closed(nodes: frozenset[int], threads: Sequence[ThreadLook]) -> frozenset[int]:
    """Those of `nodes` that cpusets close to every thread."""
    lists = [thread.memory_nodes for thread in threads if thread.memory_nodes]
    allowed = frozenset(node for text in set(lists) for node in parse_cpulist(text))
    return nodes - allowed if lists else frozenset()


def _away(mapping: MappingLook, nodes: frozenset[int]) -> dict[int, int]:
    return {node: size for node, size in mapping.bytes_by_node.items() if node not in nodes}


def _is_much(out: int, held: int) -> bool:
    return out > max(SOFT_BYTES, SOFT_SHARE * held)


def _is_full(free: int, total: int) -> bool:
    # On a node of TiBs the kernel reserves some GiB, on a small node much less.
    return free < min(FULL_PART * total, 4 * GIB)


def _by_node(sizes: Mapping[int, int]) -> str:
    return ", ".join(f"{gib(size)} on node {node}" for node, size in sorted(sizes.items()) if size)


def mapping_name(mapping: MappingLook) -> str:
    """'[heap] 0x55..', 'anonymous 0x7f..', '/dev/shm/x 0x7f..'."""
    return f"{mapping.name or mapping.kind} {mapping.start:#x}"
