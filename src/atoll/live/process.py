"""What is known of one process of a deployment, from three looks of different cost.

- masks: a system call for each thread, 3 us; finds threads that may run elsewhere.
- runs: /proc/PID/task/TID/stat of each thread, 20 us, and of one that has run since, sched; finds
  where threads ran and how often they migrated. It is left out while the process uses no CPU time.
- memory: `atoll.inspect.memory`, milliseconds, for a large process 60.

The rules are those of `atoll verify` that these looks can serve. It also checks malloc, the JVM's
flags, the page cache, thread placement and ports, which the live view does not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from atoll.host.api import Host
from atoll.host.procfs import parse_ran
from atoll.inspect.clues import NO_CLUES, Clues, NumaSystem, read_clues, weights
from atoll.inspect.drift_memory import STRICT_BYTES, memory_findings, policy_findings
from atoll.inspect.drift_threads import thread_findings
from atoll.inspect.expectation import Expectation
from atoll.inspect.memory import local_share, look_at_memory
from atoll.inspect.page_totals import short_totals
from atoll.inspect.policy import parse_policy, process_policy
from atoll.inspect.rule_context import RuleContext
from atoll.inspect.thread_look import migrations_in
from atoll.schema.cpulist import format_cpulist
from atoll.schema.deployment import ProcessId
from atoll.schema.inspection import Finding, MemoryLook, Severity, ThreadLook

_ENDED = (FileNotFoundError, ProcessLookupError)
_STAT_BYTES = 4096


class Run(NamedTuple):
    """A thread's counters, as sums since it began."""

    cpu_s: float
    migrations: int | None


@dataclass(slots=True)
class WatchedProcess:
    """`expectation.exact` is false under thread placement, where masks may be narrower."""

    id: ProcessId
    expectation: Expectation
    cpu_s: float | None = None  # at the last look; None: not known
    threads: int = 0
    outside: int = 0
    thread_drift: tuple[Finding, ...] = ()
    masks_at_s: float | None = None

    runs: dict[int, Run] = field(default_factory=dict)
    ran: bool = True  # since the last look at its runs
    seconds_by_cpu: Mapping[int, float] = field(default_factory=dict)  # between the last two
    ran_s: float = 0.0  # their sum, and the part on the slot's own CPUs
    home_s: float = 0.0
    migrations_per_s: float | None = None
    migrations: int = 0
    runs_at_s: float | None = None

    bytes_by_node: Mapping[int, int] = field(default_factory=dict)
    local_share: float | None = None
    memory_drift: tuple[Finding, ...] = ()
    memory_at_s: float | None = None
    unknown: dict[str, str] = field(default_factory=dict)  # look -> why it failed

    @property
    def pid(self) -> int:
        return self.id.pid

    @contextmanager
    def noting(self, look: str) -> Iterator[None]:
        """Takes note of why a look fails. A process that has ended leaves the process list."""
        self.unknown.pop(look, None)
        try:
            yield
        except OSError as fault:
            if not isinstance(fault, _ENDED):
                self.unknown[look] = f"{look}: {fault.strerror or fault}"

    @property
    def drift(self) -> tuple[Finding, ...]:
        return self.thread_drift + self.memory_drift


def look_at_masks(host: Host, process: WatchedProcess, machine: NumaSystem, now_s: float) -> None:
    expectation = process.expectation
    masks: dict[int, frozenset[int]] = {}
    for name in host.list_dir(f"/proc/{process.pid}/task"):
        with suppress(ProcessLookupError):
            masks[int(name)] = host.affinity(int(name))
    wrong = {
        tid
        for tid, mask in masks.items()
        if not (mask == expectation.cpus or (mask <= expectation.cpus and not expectation.exact))
    }
    process.threads, process.masks_at_s = len(masks), now_s
    process.outside = sum(not masks[tid] <= expectation.cpus for tid in wrong)
    if not wrong:
        process.thread_drift = ()
        return
    looks = [
        ThreadLook(
            tid=tid,
            comm=_comm(host, process.pid, tid) if tid in wrong else "",
            cpus=_cpulist(mask),
            memory_nodes="",
            last_cpu=0,
            cpu_seconds=0,
            migrations=None,
        )
        for tid, mask in sorted(masks.items())
    ]

    def found(clues: Clues) -> list[Finding]:
        return thread_findings(looks, RuleContext(process.pid, expectation, machine, clues))

    process.thread_drift = _explained(host, process, machine, found, process.thread_drift)


def look_at_runs(host: Host, process: WatchedProcess, now_s: float) -> None:
    folder = f"/proc/{process.pid}/task"
    has_sched = host.exists(f"/proc/{process.pid}/sched")
    first = process.runs_at_s is None
    runs: dict[int, Run] = {}
    seconds: defaultdict[int, float] = defaultdict(float)
    moved = 0
    for name in host.list_dir(folder):
        try:
            stat = parse_ran(host.read_bytes(f"{folder}/{name}/stat", size=_STAT_BYTES))
            was = process.runs.get(int(name))
            if was is not None and was.cpu_s > stat.cpu_s:
                was = None  # another thread has the number now
            migrations = was.migrations if was else None
            if has_sched and (was is None or was.cpu_s != stat.cpu_s):
                migrations = migrations_in(host.read_text(f"{folder}/{name}/sched"))
        except _ENDED:
            continue
        if stat.ended:
            continue
        runs[int(name)] = Run(stat.cpu_s, migrations)
        if ran_s := stat.cpu_s - (was.cpu_s if was else 0.0):
            seconds[stat.last_cpu] += ran_s
        if migrations is not None and not first:
            moved += migrations - ((was.migrations or 0) if was else 0)
    if seconds:  # else what is known of the last time it ran stays
        process.seconds_by_cpu, process.ran_s = seconds, sum(seconds.values())
        home = process.expectation.cpus
        process.home_s = sum(used_s for cpu, used_s in seconds.items() if cpu in home)
    if process.runs_at_s is not None and has_sched:
        process.migrations_per_s = moved / max(now_s - process.runs_at_s, 1e-3)
        process.migrations += moved
    process.runs, process.runs_at_s, process.ran = runs, now_s, False


def look_at_pages(host: Host, process: WatchedProcess, machine: NumaSystem, now_s: float) -> None:
    """Its memory policy, and where its pages are.

    If numa_maps is short enough to be read and has nothing that could be drift, its totals are all
    that is needed: building a record for each mapping takes ten times as long.
    """
    pid, expectation = process.pid, process.expectation
    process.memory_at_s = now_s
    # If this look fails, nothing is known: old figures must not look new.
    process.bytes_by_node, process.local_share = {}, None
    policy = process_policy(host, pid)
    wanted = parse_policy(expectation.policy)
    seconds = {
        node: sum(process.seconds_by_cpu.get(cpu, 0.0) for cpu in cpus)
        for node, cpus in machine.node_cpus.items()
    }
    memory: MemoryLook | None = None
    totals = None if wanted.interleaves else short_totals(host, pid, expectation.nodes)
    if totals is not None and totals.own_outside <= STRICT_BYTES:
        process.bytes_by_node = totals.bytes_by_node
        process.local_share = local_share(totals.bytes_by_node, seconds)
    else:
        own = [node for node, cpus in machine.node_cpus.items() if cpus & expectation.cpus]
        memory, unknown = look_at_memory(host, pid, cpu_seconds_by_node=seconds, own_nodes=own)
        if memory is None:
            process.unknown["memory"] = unknown[0]
        process.bytes_by_node = memory.bytes_by_node if memory else {}
        process.local_share = memory.local_share if memory else None
    shares = weights(host, wanted.nodes) if wanted.mode.startswith("weighted") else {}

    def found(clues: Clues) -> list[Finding]:
        context = RuleContext(pid, expectation, machine, clues)
        findings = policy_findings(policy, (), context)
        if memory is not None:
            findings += memory_findings(memory, policy, (), context, shares)
        return findings

    process.memory_drift = _explained(host, process, machine, found, process.memory_drift)


def _explained(
    host: Host,
    process: WatchedProcess,
    machine: NumaSystem,
    find: Callable[[Clues], list[Finding]],
    before: tuple[Finding, ...],
) -> tuple[Finding, ...]:
    """The drift with its causes. Clues take as long as a look, so they are read only if the drift
    is not the same as before."""

    def drift(clues: Clues) -> tuple[Finding, ...]:
        return tuple(one for one in find(clues) if one.severity is Severity.DRIFT)

    found = drift(NO_CLUES)
    if [_what(one) for one in found] == [_what(one) for one in before]:
        return before
    return drift(read_clues(host, process.pid, machine)) if found else ()


def _what(finding: Finding) -> tuple[str, int | None, str, str]:
    return finding.code, finding.tid, finding.mapping, finding.found


def _comm(host: Host, pid: int, tid: int) -> str:
    try:
        return host.read_text(f"/proc/{pid}/task/{tid}/comm").rstrip("\n")
    except _ENDED:
        return ""


@lru_cache(maxsize=4096)
def _cpulist(mask: frozenset[int]) -> str:
    return format_cpulist(mask)
