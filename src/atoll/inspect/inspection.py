"""Inspects one process once, from its threads to its allocator (`atoll inspect`).

Read-only. Anything unreadable becomes a line of `unknown`. If the process ends meanwhile or its
pid is reused, the inspection raises `ProcessGone`. Cheap observations come before expensive ones.
The process is not stopped, so they are of slightly different moments.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from atoll.errors import ProcessGone, TopologyError
from atoll.host.api import Host
from atoll.host.procfs import parse_stat, status_field
from atoll.inspect.clues import NO_CLUES, Clues, NumaSystem, read_clues, weights
from atoll.inspect.drift import Looks, find
from atoll.inspect.drift_memory import mapping_name
from atoll.inspect.drift_threads import cpus_of
from atoll.inspect.expectation import Expectation, as_given, pins_itself
from atoll.inspect.jvm import look_at_jvm
from atoll.inspect.malloc import MallocFiles, look_at_malloc
from atoll.inspect.memory import cut_mappings, look_at_memory
from atoll.inspect.pagecache import look_at_page_cache
from atoll.inspect.policy import parse_policy, process_policy
from atoll.inspect.resctrl import L3Monitor
from atoll.inspect.rule_context import RuleContext
from atoll.inspect.spread import SpreadReader
from atoll.inspect.thread_look import look_at_threads
from atoll.schema.deployment import ProcessId
from atoll.schema.inspection import (
    Finding,
    Inspection,
    L3Look,
    MemoryLook,
    PageCacheLook,
    SpreadLook,
    ThreadLook,
)

_T = TypeVar("_T")
_MASK = "Cpus_allowed_list"
_INTERVAL_S = 1.0  # over which bandwidth is measured
_NO_L3: tuple[L3Look, ...] = ()
_NO_MEMORY: tuple[MemoryLook | None, list[str]] = (None, [])
_NO_FILES: tuple[list[PageCacheLook], list[str]] = ([], [])


def inspect_process(
    host: Host,
    pid: int,
    machine: NumaSystem,
    expectation: Expectation | None = None,
    *,
    deep: bool = True,
    l3: L3Monitor | None = None,
    files: MallocFiles | None = None,
    spreads: SpreadReader | None = None,
) -> Inspection:
    """Inspects everything. Without an expectation, the reference is the place in which the process
    was started (see `as_given`).

    Unless `deep`, only threads and memory policy: milliseconds, even if memory is large.
    `l3`, `files`, `spreads`: shared by all processes of a run. Raises ProcessGone.
    """
    return _Look(host, pid, machine, files, l3, spreads).inspection(expectation, deep=deep)


class _Look:
    """The observations of one process and the reasons for those that failed."""

    def __init__(
        self,
        host: Host,
        pid: int,
        machine: NumaSystem,
        files: MallocFiles | None = None,
        l3: L3Monitor | None = None,
        spreads: SpreadReader | None = None,
    ) -> None:
        identity = host.identify(pid)
        if identity is None:
            raise ProcessGone(f"no process has the pid {pid}")
        self._host = host
        self._id: ProcessId = identity
        self._pid = pid
        self._view_tid = pid  # the thread through which the kernel shows memory and files
        self._machine = machine
        self._files = files
        self._l3 = l3 or L3Monitor(host, _INTERVAL_S)
        self._spreads = spreads or SpreadReader()
        self._unknown: list[str] = []

    def inspection(self, expectation: Expectation | None, *, deep: bool) -> Inspection:
        host, pid = self._host, self._pid
        threads: Sequence[ThreadLook] = self._try("threads", lambda: look_at_threads(host, pid), [])
        if not threads:
            raise ProcessGone(f"process {pid} ended during the inspection")
        if all(thread.tid != pid for thread in threads):
            self._view_tid = threads[0].tid  # a main thread that has ended no longer shows them
        policy = self._try("memory policy", lambda: process_policy(host, self._view_tid), "")
        if expectation is None:
            expectation = self._as_given(threads, policy)
        looks = self._deeper(threads, policy) if deep else Looks(threads, policy)
        looks = replace(looks, thp=self._try("huge pages", self._thp, None))
        l3 = self._try("L3", lambda: self._l3.look(pid), _NO_L3) if deep else ()
        spread = self._spread(threads, expectation) if deep else None
        findings = self._findings(looks, expectation)
        self._still_there()
        return Inspection(
            pid=pid,
            process=expectation.process,
            slot=expectation.slot,
            command=self._command(threads),
            expected=expectation.record(),
            memory_policy=policy,
            threads=tuple(threads),
            spread=spread,
            memory=looks.memory and _cut(looks.memory, findings),
            thp=looks.thp,
            page_cache=tuple(looks.page_cache),
            malloc=looks.malloc,
            jvm=looks.jvm,
            l3=l3,
            unknown=tuple(self._unknown),
            findings=tuple(findings),
        )

    def _deeper(self, threads: Sequence[ThreadLook], policy: str) -> Looks:
        host, view_tid, node_cpus = self._host, self._view_tid, self._machine.node_cpus
        usable = frozenset[int]().union(*(cpus_of(thread) for thread in threads))
        memory, unknown = self._try(
            "memory",
            lambda: look_at_memory(
                host,
                view_tid,
                cpu_seconds_by_node=cpu_seconds_by_node(threads, node_cpus),
                own_nodes=[node for node, cpus in node_cpus.items() if cpus & usable],
            ),
            _NO_MEMORY,
        )
        if memory is None and self._is_kernel_thread():
            self._unknown += unknown
            return Looks(threads, policy)
        page_cache, also = self._try(
            "page cache", lambda: look_at_page_cache(host, view_tid), _NO_FILES
        )
        self._unknown += [*unknown, *also]
        malloc = self._try("malloc", lambda: look_at_malloc(host, view_tid, self._files), None)
        jvm = self._try("JVM", lambda: look_at_jvm(host, self._pid), None)
        return Looks(threads, policy, memory, page_cache, malloc, jvm)

    def _spread(self, threads: Sequence[ThreadLook], expectation: Expectation) -> SpreadLook | None:
        try:
            return self._spreads.look(threads, expectation.cpus)
        except TopologyError as fault:
            self._unknown.append(f"spread: {fault}")
            return None

    def _as_given(self, threads: Sequence[ThreadLook], policy: str) -> Expectation:
        stat = self._try(
            "name", lambda: parse_stat(self._host.read_text(f"/proc/{self._pid}/stat")), None
        )
        if stat is None:
            raise ProcessGone(f"process {self._pid} ended during the inspection")
        try:
            parent = self._host.affinity(stat.parent) if stat.parent else self._machine.online
        except OSError:
            parent = self._machine.online
        return as_given(
            stat.comm,
            self._with_leader(threads),
            self._pid,
            policy=policy,
            parent_cpus=parent,
            node_cpus=self._machine.node_cpus,
            pins_itself=self._pins_itself(threads),
        )

    def _with_leader(self, threads: Sequence[ThreadLook]) -> Sequence[ThreadLook]:
        """The threads with an ended main thread, which still has the mask it was started with."""
        if self._view_tid == self._pid:
            return threads
        cpus = self._try(
            "main thread",
            lambda: status_field(self._host.read_text(f"/proc/{self._pid}/status"), _MASK),
            "",
        )
        if not cpus:
            return threads
        return [threads[0].model_copy(update={"tid": self._pid, "cpus": cpus}), *threads]

    def _pins_itself(self, threads: Sequence[ThreadLook]) -> bool:
        if len({thread.cpus for thread in threads}) == 1:
            return False
        clues = self._clues()
        return pins_itself(threads, openmp=bool(clues.openmp), library=clues.pinning is not None)

    def _thp(self) -> bool | None:
        field = status_field(self._text("status"), "THP_enabled")
        return field == "1" if field else None

    def _clues(self) -> Clues:
        return read_clues(self._host, self._view_tid, self._machine)

    def _findings(self, looks: Looks, expectation: Expectation) -> list[Finding]:
        host, machine = self._host, self._machine
        wanted = parse_policy(expectation.policy)
        shares = weights(host, wanted.nodes) if wanted.mode.startswith("weighted") else {}
        findings = find(looks, RuleContext(self._pid, expectation, machine, NO_CLUES), shares)
        if findings:  # only now are clues worth reading
            findings = find(
                looks, RuleContext(self._pid, expectation, machine, self._clues()), shares
            )
        return findings

    def _command(self, threads: Sequence[ThreadLook]) -> str:
        """The command line as typed; for a kernel thread its name, as in ps(1)."""
        text = self._try("command", lambda: self._text("cmdline"), "")
        return " ".join(text.split("\0")).strip() or f"[{threads[0].comm}]"

    def _is_kernel_thread(self) -> bool:
        try:
            return not self._text("maps")
        except OSError:
            return False  # unknown; the observations say why

    def _text(self, name: str) -> str:
        return self._host.read_text(f"/proc/{self._view_tid}/{name}")

    def _try(self, what: str, look: Callable[[], _T], without: _T) -> _T:
        """`look()`, or `without` and a line that gives the reason."""
        try:
            return look()
        except OSError as fault:
            self._still_there()
            self._unknown.append(f"{what}: {_why(fault)}")
            return without

    def _still_there(self) -> None:
        if self._host.identify(self._pid) != self._id:
            raise ProcessGone(f"process {self._pid} ended during the inspection")


def cpu_seconds_by_node(
    threads: Iterable[ThreadLook], node_cpus: Mapping[int, frozenset[int]]
) -> dict[int, float]:
    """The CPU time of the threads, summed on the node where each ran last."""
    seconds: dict[int, float] = {}
    for thread in threads:
        node = next((node for node, cpus in node_cpus.items() if thread.last_cpu in cpus), None)
        if node is not None:
            seconds[node] = seconds.get(node, 0.0) + thread.cpu_seconds
    return seconds


def _cut(memory: MemoryLook, findings: Iterable[Finding]) -> MemoryLook:
    """Keeps the largest mappings and those that the findings name."""
    named = {finding.mapping for finding in findings if finding.mapping}
    starts = [mapping.start for mapping in memory.mappings if mapping_name(mapping) in named]
    return cut_mappings(memory, starts)


def _why(fault: OSError) -> str:
    text, stock = fault.strerror or str(fault), os.strerror(fault.errno or 0)
    if text != stock:
        return text  # Atoll's own text
    if fault.errno in (errno.EPERM, errno.EACCES):
        return "not permitted; run as root or as the process's user"
    return "this kernel does not support it" if fault.errno == errno.ENOSYS else text
