"""Judges whether a plan is right for a machine, and whether what was started landed as planned.

Pure. The rules are written independently, from docs/plan.md and the kernel's documentation of
memory policies (admin-guide/mm/numa_memory_policy), in terms of the expected machine, and call
nothing of `atoll`: a fault of the planner cannot hide here.

For page placement the judge counts on this (mm/mempolicy.c, Linux 6.12): for an anonymous page
the node of `interleave` and `weighted-interleave` follows from the page's address alone, so in
any run of neighbouring pages the shares are exact, up to where the run begins in the cycle. For
`first-touch` and `local` it is the node that the touching thread was on; the subject notes it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from atoll.guest.seen import cpu_list

_POLICY_WORD = {  # in numa_maps
    "first-touch": "default",
    "local": "local",
    "bind": "bind",
    "preferred": "prefer",
    "interleave": "interleave",
    "weighted-interleave": "weighted",  # "weighted interleave:0-1" is split at the blank
}


@dataclass(frozen=True)
class Layout:
    """The expected machine, in the kernel's numbers."""

    cores: tuple[tuple[int, ...], ...]  # CPUs of each core that may be used
    node_of: Mapping[int, int]  # CPU -> node
    package_of: Mapping[int, int]
    chiplets: tuple[frozenset[int], ...]  # CPUs of each; empty: none to be seen
    chiplet_source: str  # ''; l3, die or sub-numa
    memory_nodes: tuple[int, ...]  # nodes with memory, those without CPUs (CXL) too
    distances: Mapping[tuple[int, int], int]  # between nodes

    @property
    def cpus(self) -> tuple[int, ...]:
        return tuple(sorted(cpu for core in self.cores for cpu in core))

    @property
    def home_nodes(self) -> tuple[int, ...]:
        """Nodes with memory and CPUs."""
        return tuple(sorted(set(self.memory_nodes) & set(self.node_of.values())))

    def memory_for(self, cpu: int) -> int:
        """The node that the memory of a CPU comes from: its own, or the nearest that is left."""
        own = self.node_of[cpu]
        if own in self.memory_nodes:
            return own
        return min(self.memory_nodes, key=lambda node: (self.distances[own, node], node))

    def nodes_of(self, cpus: Iterable[int]) -> tuple[int, ...]:
        return tuple(sorted({self.memory_for(cpu) for cpu in cpus}))

    def limited(self, cpus: Collection[int], memory_nodes: Collection[int]) -> Layout:
        """What a cgroup or CPUs that went offline leave of it. Chiplets stay what they are."""
        kept = tuple(tuple(cpu for cpu in core if cpu in cpus) for core in self.cores)
        return replace(
            self,
            cores=tuple(core for core in kept if core),
            memory_nodes=tuple(node for node in self.memory_nodes if node in memory_nodes),
        )

    def used(self, *, smt: bool) -> tuple[tuple[int, ...], ...]:
        """The CPUs that a plan takes of each core."""
        return self.cores if smt else tuple((min(core),) for core in self.cores)


@dataclass
class Verdict:
    """What was looked at, and what is wrong with it."""

    faults: list[str] = field(default_factory=list)
    threads: int = 0
    pages: int = 0  # asked for by move_pages, from inside
    uncertain: int = 0  # of them, where the toucher moved in between: only roughly judged
    outside_pages: int = 0  # counted in numa_maps, from outside

    def __iadd__(self, other: Verdict) -> Verdict:
        self.faults += other.faults
        self.threads += other.threads
        self.pages += other.pages
        self.uncertain += other.uncertain
        self.outside_pages += other.outside_pages
        return self


# ---- The plan -----------------------------------------------------------------------------


def plan_faults(
    plan: Mapping[str, Any], layout: Layout, policy: str, memory: str, *, smt: bool
) -> list[str]:
    """What is wrong with the plan of `policy` and `memory` ('' for the default) on this machine."""
    slots = plan["slots"]
    used = layout.used(smt=smt)
    faults: list[str] = []
    if policy == "wim":
        groups = [frozenset(cpu for core in used for cpu in core)]
        if len(slots) != 1 or slots[0]["cpus"] is not None:
            faults.append("wim must be one slot without a mask")
    else:
        groups = [frozenset(slot["cpus"]) for slot in slots]
        taken = Counter(cpu for group in groups for cpu in group)
        if taken != Counter(cpu for core in used for cpu in core):
            faults.append(f"the slots' CPUs {sorted(taken.elements())} are not the usable ones")
        faults += _shape_faults(policy, groups, layout, used)
    for slot, group in zip(slots, groups, strict=True):
        where = f"slot {slot['index']}"
        if slot["threads"] != len(group):
            faults.append(f"{where}: {slot['threads']} threads for {len(group)} CPUs")
        expected = _memory_of(policy, memory, group, layout)
        planned = (slot["memory_policy"], tuple(slot["memory_nodes"]))
        if planned != expected:
            faults.append(f"{where}: memory {planned}, expected {expected}")
    if plan["total_threads"] != sum(map(len, used)):
        faults.append(f"{plan['total_threads']} threads in all, not one per CPU in use")
    return faults


def _shape_faults(
    policy: str,
    groups: Sequence[frozenset[int]],
    layout: Layout,
    used: Sequence[tuple[int, ...]],
) -> list[str]:
    cpus = frozenset(cpu for core in used for cpu in core)
    by_node = _split(cpus, [layout.node_of])
    chiplet_of = {cpu: n for n, chiplet in enumerate(layout.chiplets) for cpu in chiplet}
    by_chiplet = _split(cpus, [chiplet_of, layout.node_of]) if layout.chiplets else by_node
    exact = {"win": by_node, "wicp": by_chiplet, "wic": {frozenset(core) for core in used}}
    if policy in exact:
        if set(groups) != exact[policy]:
            return [f"{policy}: slots {_sorted(groups)}, expected {_sorted(exact[policy])}"]
        return []
    if policy == "spmwin":
        expected, spread_over = len(by_node), by_node
        regions = [cpus]
    else:
        expected, spread_over = len(by_chiplet), by_chiplet
        regions = list(by_node)
    faults = []
    if len(groups) != expected:
        faults.append(f"{policy}: {len(groups)} slots, expected {expected}")
    core_of = {cpu: core for core in used for cpu in core}
    for region in regions:
        inside = [group for group in groups if group & region]
        islands = [island for island in spread_over if island <= region]
        if any(not group <= region for group in inside):
            faults.append(f"{policy}: a slot leaves its node: {_sorted(groups)}")
        if len(inside) != len(islands):
            faults.append(f"{policy}: {len(inside)} slots on {len(islands)} islands")
        for island in islands:
            shares = [len({core_of[cpu] for cpu in group & island}) for group in inside]
            if shares and max(shares) - min(shares) > 1:
                faults.append(f"{policy}: {sorted(island)} is dealt unevenly: {shares}")
    return faults


def _split(cpus: Collection[int], keys: Sequence[Mapping[int, int]]) -> set[frozenset[int]]:
    """CPUs by the first key that knows them; CPUs in no chiplet by their node."""
    parts: dict[tuple[int, int], set[int]] = {}
    for cpu in cpus:
        level = next(level for level, key in enumerate(keys) if cpu in key)
        parts.setdefault((level, keys[level][cpu]), set()).add(cpu)
    return set(map(frozenset, parts.values()))


def _sorted(groups: Iterable[frozenset[int]]) -> list[list[int]]:
    return sorted(map(sorted, groups))


def _memory_of(
    policy: str, asked: str, cpus: Collection[int], layout: Layout
) -> tuple[str, tuple[int, ...]]:
    """docs/plan.md, Memory."""
    own = layout.nodes_of(cpus)
    if not asked:
        if policy == "wim" or len(layout.home_nodes) == 1:
            return "first-touch", ()
        return ("bind" if len(own) == 1 else "interleave"), own
    if asked in ("first-touch", "local"):
        return asked, ()
    if asked == "interleave":
        return asked, layout.home_nodes
    if asked == "weighted-interleave":
        return asked, layout.memory_nodes
    if asked == "preferred":
        cores = Counter(layout.memory_for(min(c)) for c in layout.cores if set(c) & set(cpus))
        return asked, (min(own, key=lambda node: (-cores[node], node)),)
    return asked, own


# ---- The landing ---------------------------------------------------------------------------


def judge_slot(
    slot: Mapping[str, Any],
    seen: Mapping[str, Any],
    layout: Layout,
    weights: Mapping[int, int],
) -> Verdict:
    """What the subject of a slot said, and what /proc showed of it, against the slot."""
    verdict = Verdict()
    where = f"slot {slot['index']}"
    try:
        said = json.loads(seen["said"])
    except ValueError:
        verdict.faults.append(f"{where}: did not report, but said: {seen['said']!r}")
        return verdict
    cpus = frozenset(layout.cpus if slot["cpus"] is None else slot["cpus"])
    if {thread["tid"] for thread in said["threads"]} != {task["tid"] for task in seen["tasks"]}:
        verdict.faults.append(f"{where}: the threads inside are not those in /proc")
    if len(said["threads"]) < slot["threads"]:
        verdict.faults.append(f"{where}: only {len(said['threads'])} threads")
    for thread in said["threads"]:
        verdict.threads += 1
        who = f"{where} thread {thread['tid']}"
        if frozenset(thread["affinity"]) != cpus:
            verdict.faults.append(f"{who}: mask {thread['affinity']}, planned {sorted(cpus)}")
        if not cpus.issuperset(thread["ran_on"]):
            verdict.faults.append(f"{who}: ran on {thread['ran_on']}, planned {sorted(cpus)}")
    for task in seen["tasks"]:
        mask = cpu_list(_status(task["status"], "Cpus_allowed_list"))
        last_cpu = int(task["stat"].rpartition(")")[2].split()[36])
        if slot["cpus"] is None:  # the kernel names CPUs too that are offline
            mask &= frozenset(layout.cpus)
        if mask != cpus or last_cpu not in cpus:
            verdict.faults.append(
                f"{where} task {task['tid']}: from outside mask {sorted(mask)}, last on {last_cpu}"
            )
    verdict += _judge_pages(where, slot, said, layout, weights)
    verdict += _judge_numa_maps(where, slot, said, seen["numa_maps"])
    return verdict


def _judge_pages(
    where: str,
    slot: Mapping[str, Any],
    said: Mapping[str, Any],
    layout: Layout,
    weights: Mapping[int, int],
) -> Verdict:
    verdict = Verdict()
    policy, nodes = slot["memory_policy"], tuple(slot["memory_nodes"])
    own = layout.home_nodes if slot["cpus"] is None else layout.nodes_of(slot["cpus"])
    for thread in said["threads"]:
        for region in thread["regions"]:
            verdict.pages += len(region["nodes"])
            what = f"{where} thread {thread['tid']} {region['kind']} ({policy} {nodes or ''})"
            if policy in ("first-touch", "local"):
                pairs = list(zip(region["touched_on"], region["nodes"], strict=True))
                verdict.uncertain += sum(touched < 0 for touched, _ in pairs)
                local = set(layout.memory_nodes)  # where a node is closed, its neighbour serves
                wrong = [p for p in pairs if p[1] not in own or (p[0] in local and p[0] != p[1])]
                if wrong:
                    verdict.faults.append(f"{what}: (touched on, lies on) {wrong[:5]}")
            elif not set(nodes).issuperset(region["nodes"]):
                verdict.faults.append(f"{what}: lies on {sorted(set(region['nodes']))}")
            elif "interleave" in policy:
                shares = weights if policy.startswith("weighted") else {}
                fault = _uneven(region["nodes"], {node: shares.get(node, 1) for node in nodes})
                if fault:
                    verdict.faults.append(f"{what}: {fault}")
    return verdict


def _uneven(found: Sequence[int], weights: Mapping[int, int]) -> str:
    """Whether a run of neighbouring pages was not dealt by the weights, cycle after cycle."""
    cycles, rest = divmod(len(found), sum(weights.values()))
    counts = Counter(found)
    for node, weight in weights.items():
        least, most = cycles * weight, cycles * weight + min(weight, rest)
        if not least <= counts[node] <= most:
            return f"{counts[node]} of {len(found)} pages on node {node}, not {least} to {most}"
    return ""


def _judge_numa_maps(
    where: str, slot: Mapping[str, Any], said: Mapping[str, Any], text: str
) -> Verdict:
    """From outside: the policy of every mapping, and where the anonymous pages lie."""
    verdict = Verdict()
    policy, nodes = slot["memory_policy"], set(slot["memory_nodes"])
    outside: Counter[int] = Counter()
    for line in text.splitlines():
        words = line.split()
        word, _, listed = words[1].partition(":")
        if word == "weighted":
            listed = words[2].partition(":")[2]
        if word != _POLICY_WORD[policy] or cpu_list(listed) != nodes:
            verdict.faults.append(f"{where}: numa_maps: not {policy} {sorted(nodes)}: {line}")
        if any(w.startswith("file=") and not w.startswith("file=/dev/zero") for w in words):
            continue  # pages of files lie where whoever read them first had them
        for item in words[2:]:
            name, _, count = item.partition("=")
            if name[0] == "N" and name[1:].isdigit():
                outside[int(name[1:])] += int(count)
    verdict.outside_pages = sum(outside.values())
    inside = Counter(
        node
        for thread in said["threads"]
        for region in thread["regions"]
        for node in region["nodes"]
    )
    if inside - outside:
        verdict.faults.append(f"{where}: numa_maps shows {outside}, move_pages {inside}")
    if nodes and not nodes.issuperset(outside):
        verdict.faults.append(f"{where}: numa_maps shows pages on {sorted(outside)}")
    return verdict


def _status(text: str, name: str) -> str:
    return next(line.split(":")[1] for line in text.splitlines() if line.startswith(name + ":"))
