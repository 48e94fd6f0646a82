"""Does every thread sit where the plan says? (`atoll verify`)

Pinning a process proves nothing: engines move their own threads (DuckDB 1.4 to 1.5 pins
worker i to CPU i whatever the mask) and a thread keeps the mask it was made with. So every
thread of every process of the deployment is looked at, descendants and orphans included:

- a slot without a mask (WIM, a shared coordinator): the mask is all that the supervisor has;
- thread placement none: the mask is the slot's, exactly;
- dense or sparse: the engine may narrow a thread's mask inside the slot, never leave it.

Where the machine has several memory nodes, the process's memory policy is read from
/proc/PID/numa_maps (numa(7)): the policy only, not where the pages are.
"""

from __future__ import annotations

from collections.abc import Mapping

from atoll.errors import EngineFailed
from atoll.host.api import Host
from atoll.host.procfs import Stat, parse_stat, status_field
from atoll.inspect.processes import GONE, PROCESS_MARK, descendants, environment, process_table
from atoll.schema.base import Record
from atoll.schema.cpulist import format_cpulist, parse_cpulist
from atoll.schema.deployment import Deployment, ProcessRecord
from atoll.schema.plan import MemoryPolicy, Placement, Plan

_NODES = "/sys/devices/system/node"
# What numa_maps calls a policy, before the colon and the nodes (mm/mempolicy.c, mpol_to_str).
_KERNEL_WORD = {
    MemoryPolicy.FIRST_TOUCH: "default",
    MemoryPolicy.LOCAL: "local",
    MemoryPolicy.BIND: "bind",
    MemoryPolicy.PREFERRED: "prefer",
    MemoryPolicy.INTERLEAVE: "interleave",
    MemoryPolicy.WEIGHTED_INTERLEAVE: "weighted interleave",
}


class ThreadCheck(Record):
    process: str
    slot: int | None
    pid: int
    tid: int
    comm: str
    expected_cpus: str  # cpulist
    found_cpus: str
    last_cpu: int  # where it ran last; informative
    drifted: bool


class MemoryCheck(Record):
    process: str
    pid: int
    expected: str  # 'bind:0', in the kernel's words
    found: str
    drifted: bool


class Verification(Record):
    deployment: str
    threads: tuple[ThreadCheck, ...]
    memory: tuple[MemoryCheck, ...]  # empty where the machine has one memory node
    missing: tuple[str, ...]  # processes of the record that are gone

    @property
    def drifted(self) -> int:
        threads = sum(check.drifted for check in self.threads)
        return threads + sum(check.drifted for check in self.memory) + len(self.missing)


def verify(host: Host, deployment: Deployment) -> Verification:
    """Look at everything once. Raises EngineFailed if the supervisor is gone."""
    supervisor = deployment.supervisor
    if supervisor is None or host.identify(supervisor.pid) != supervisor:
        raise EngineFailed(f"{deployment.name}: is not up; see 'atoll ps'")
    try:
        everything = host.affinity(supervisor.pid)
    except ProcessLookupError:
        raise EngineFailed(f"{deployment.name}: has just ended; see 'atoll ps'") from None
    table = process_table(host)
    by_name = {process.spec.name: process for process in deployment.processes}
    several_nodes = len(_memory_nodes(host)) > 1
    threads: list[ThreadCheck] = []
    memory: list[MemoryCheck] = []
    for pid, process in sorted(attribute(host, deployment, table).items()):
        threads += _check_threads(host, pid, process, deployment.plan, everything)
        if several_nodes and process.spec.name in by_name:
            memory += _check_memory(host, pid, process, deployment.plan)
    missing = tuple(
        process.spec.name
        for process in deployment.processes
        # One of a later stage has no id yet while the deployment starts.
        if process.id is not None and host.identify(process.id.pid) != process.id
    )
    return Verification(
        deployment=deployment.name, threads=tuple(threads), memory=tuple(memory), missing=missing
    )


def attribute(
    host: Host, deployment: Deployment, table: Mapping[int, Stat]
) -> dict[int, ProcessRecord]:
    """Every living process below the supervisor, and which process of the plan it comes from.

    By descent; one whose parent has died by the mark that it was started with.
    """
    assert deployment.supervisor is not None
    by_pid = {process.id.pid: process for process in deployment.processes if process.id}
    by_name = {process.spec.name: process for process in deployment.processes}
    found: dict[int, ProcessRecord] = {}
    for process in descendants(table, deployment.supervisor.pid):  # parents come first
        origin = (
            by_pid.get(process.pid)
            or found.get(table[process.pid].parent)
            or by_name.get(environment(host, process.pid).get(PROCESS_MARK, ""))
        )
        if origin is not None:
            found[process.pid] = origin
    return found


def expected_cpus(process: ProcessRecord, plan: Plan) -> tuple[int, ...] | None:
    """The place's CPUs; None where no mask is set."""
    if process.spec.slot is not None:
        return plan.slots[process.spec.slot].cpus
    return plan.coordinator.cpus if plan.coordinator is not None else None


def expected_memory(process: ProcessRecord, plan: Plan) -> str:
    """The place's memory policy in the kernel's words."""
    if process.spec.slot is not None:
        slot = plan.slots[process.spec.slot]
        nodes = format_cpulist(slot.memory_nodes)
        word = _KERNEL_WORD[slot.memory_policy]
        return f"{word}:{nodes}" if nodes else word
    if plan.coordinator is not None and plan.coordinator.memory_nodes:
        return f"bind:{format_cpulist(plan.coordinator.memory_nodes)}"
    return _KERNEL_WORD[MemoryPolicy.FIRST_TOUCH]


def is_drift(
    found: frozenset[int],
    place: tuple[int, ...] | None,
    everything: frozenset[int],
    placement: Placement,
) -> bool:
    if place is None:
        return found != everything
    if placement is Placement.NONE:
        return found != frozenset(place)
    return not found <= frozenset(place)


def _check_threads(
    host: Host, pid: int, process: ProcessRecord, plan: Plan, everything: frozenset[int]
) -> list[ThreadCheck]:
    place = expected_cpus(process, plan)
    expected = format_cpulist(everything if place is None else place)
    checks = []
    for tid in _numbers(host, f"/proc/{pid}/task"):
        try:
            stat = parse_stat(host.read_text(f"/proc/{pid}/task/{tid}/stat"))
            status = host.read_text(f"/proc/{pid}/task/{tid}/status")
        except GONE:
            continue  # it has ended since
        found = status_field(status, "Cpus_allowed_list")
        checks.append(
            ThreadCheck(
                process=process.spec.name,
                slot=process.spec.slot,
                pid=pid,
                tid=tid,
                comm=stat.comm,
                expected_cpus=expected,
                found_cpus=found,
                last_cpu=stat.last_cpu,
                drifted=is_drift(
                    frozenset(parse_cpulist(found)), place, everything, plan.placement
                ),
            )
        )
    return checks


def _check_memory(host: Host, pid: int, process: ProcessRecord, plan: Plan) -> list[MemoryCheck]:
    expected = expected_memory(process, plan)
    try:
        found = main_policy(host.read_text(f"/proc/{pid}/numa_maps"))
    except GONE:
        return []
    return [
        MemoryCheck(
            process=process.spec.name,
            pid=pid,
            expected=expected,
            found=found,
            drifted=found != expected,
        )
    ]


def main_policy(numa_maps: str) -> str:
    """The process's own policy: that of its stack, which nobody maps with another."""
    lines = [line for line in numa_maps.splitlines() if line.strip()]
    chosen = next((line for line in lines if " stack" in line), lines[0] if lines else "")
    rest = chosen.partition(" ")[2]
    # 'weighted interleave:0-1' is the one policy with a space in its name.
    words = rest.split()
    if not words:
        return ""
    return " ".join(words[:2]) if words[0] == "weighted" else words[0]


def _memory_nodes(host: Host) -> list[str]:
    try:
        return [name for name in host.list_dir(_NODES) if name[:4] == "node" and name[4:].isdigit()]
    except FileNotFoundError:
        return []


def _numbers(host: Host, folder: str) -> list[int]:
    try:
        return sorted(int(name) for name in host.list_dir(folder))
    except GONE:
        return []
