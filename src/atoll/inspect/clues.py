"""What the system and a process's environment reveal about the cause of a finding.

`NumaSystem` is cheap and read once for all processes. `Clues` are read only for a process with a
finding, since most processes have none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from atoll.host.api import Host
from atoll.inspect.pinning import PinningLibrary, pinning_library
from atoll.inspect.policy import process_policy
from atoll.inspect.processes import environment
from atoll.schema.cpulist import parse_cpulist

_NODES = "/sys/devices/system/node"
_CGROUPS = "/sys/fs/cgroup"
_UNREADABLE = (OSError, ValueError)
# The variables that make an OpenMP runtime pin its threads.
_OPENMP = ("OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY", "KMP_HW_SUBSET")


@dataclass(frozen=True, slots=True)
class NumaSystem:
    """The nodes that have memory, and their CPUs (none if memory-only, for example CXL)."""

    node_cpus: Mapping[int, frozenset[int]]
    online: frozenset[int]
    balancing: bool = False  # AutoNUMA
    thp: str = ""  # 'always', 'madvise', 'never'; empty: unknown

    @property
    def several_nodes(self) -> bool:
        return len(self.node_cpus) > 1


@dataclass(frozen=True, slots=True)
class Clues:
    pinning: PinningLibrary | None = None  # a mapped library that pins its own threads
    libnuma: bool = False  # libnuma is mapped
    openmp: str = ""  # for example 'OMP_PROC_BIND=close', from the environment it was started with
    cpuset: frozenset[int] | None = None  # CPUs of its cgroup
    cpuset_name: str = ""
    # Bytes (free, total) of each node with memory.
    free: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    demotion: bool = False  # the kernel moves cold pages to slower nodes
    policies: Mapping[int, str] = field(default_factory=dict)  # memory policy by thread


NO_CLUES = Clues()


def read_numa_system(host: Host) -> NumaSystem:
    nodes = _node_list(host, "has_memory") or _node_list(host, "online")
    return NumaSystem(
        node_cpus={
            node: frozenset(_list(_text(host, f"{_NODES}/node{node}/cpulist"))) for node in nodes
        },
        online=frozenset(_list(_text(host, "/sys/devices/system/cpu/online"))),
        balancing=_text(host, "/proc/sys/kernel/numa_balancing").strip() not in ("", "0"),
        thp=_chosen(_text(host, "/sys/kernel/mm/transparent_hugepage/enabled")),
    )


def read_clues(host: Host, pid: int, machine: NumaSystem) -> Clues:
    """Raises nothing: whatever is unreadable gives no clue."""
    given = environment(host, pid)
    cpuset_name, cpuset = _cpuset(host, pid)
    maps = _text(host, f"/proc/{pid}/maps")
    return Clues(
        pinning=pinning_library(maps),
        libnuma="/libnuma.so" in maps,
        openmp=next((f"{name}={given[name]}" for name in _OPENMP if given.get(name)), ""),
        cpuset=cpuset,
        cpuset_name=cpuset_name,
        free={
            node: free
            for node in machine.node_cpus
            if (free := parse_free(_text(host, f"{_NODES}/node{node}/meminfo")))
        },
        demotion=_text(host, "/sys/kernel/mm/numa/demotion_enabled").strip() in ("1", "true"),
        policies=_policies(host, pid) if machine.several_nodes else {},
    )


def weights(host: Host, nodes: frozenset[int]) -> dict[int, int]:
    """The weights of weighted interleave by node; 1 if the kernel has no such setting."""
    folder = "/sys/kernel/mm/mempolicy/weighted_interleave"
    by_node = {}
    for node in nodes:
        text = _text(host, f"{folder}/node{node}").strip()
        by_node[node] = int(text) if text.isdecimal() else 1
    return by_node


def parse_free(meminfo: str) -> tuple[int, int] | None:
    """(free, total) bytes from a node's meminfo; droppable page cache counts as free."""
    sizes_kib = dict(re.findall(r"^Node \d+ (\w+):\s+(\d+) kB", meminfo, re.MULTILINE))
    try:
        free = (
            int(sizes_kib["MemFree"])
            + int(sizes_kib.get("FilePages", 0))
            - int(sizes_kib.get("Shmem", 0))
        )
        return free << 10, int(sizes_kib["MemTotal"]) << 10
    except KeyError:
        return None


def _policies(host: Host, pid: int) -> dict[int, str]:
    """Each thread's own policy, which its numa_maps shows for mappings without one."""
    by_thread = {}
    with suppress(OSError):
        for name in host.list_dir(f"/proc/{pid}/task"):
            with suppress(FileNotFoundError, ProcessLookupError):
                by_thread[int(name)] = process_policy(host, int(name))
    return by_thread


def _cpuset(host: Host, pid: int) -> tuple[str, frozenset[int] | None]:
    """The cgroup's cpuset (v1 or v2) if it is narrower than the root's."""
    for line in _text(host, f"/proc/{pid}/cgroup").split("\n"):
        _, _, rest = line.partition(":")
        controllers, _, name = rest.partition(":")
        if "cpuset" in controllers.split(","):
            file = f"{_CGROUPS}/cpuset{name}/cpuset.effective_cpus"
        elif controllers == "" and name:
            file = f"{_CGROUPS}{name}/cpuset.cpus.effective"
        else:
            continue
        text = _text(host, file)
        if name != "/" and text.strip():
            return name, frozenset(_list(text))
    return "", None


def _node_list(host: Host, name: str) -> tuple[int, ...]:
    return _list(_text(host, f"{_NODES}/{name}"))


def _list(text: str) -> tuple[int, ...]:
    try:
        return parse_cpulist(text)
    except ValueError:
        return ()


def _chosen(text: str) -> str:
    """'always [madvise] never' is 'madvise'."""
    match = re.search(r"\[(\w+)\]", text)
    return match[1] if match else ""


def _text(host: Host, path: str) -> str:
    try:
        return host.read_text(path)
    except _UNREADABLE:
        return ""
