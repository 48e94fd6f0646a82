"""Finds the threads that run an engine's tasks, among all threads of a deployment's slots.

They are known by name (`atoll.schema.plan.TaskThreads`). The kernel keeps 15 bytes of a name. Where
these are ambiguous, a JVM's thread dump has the full name and the native id. A dump stops the JVM
for milliseconds, so the JVM is asked only when there are new threads with such a name. Where each
session has a process of its own, the name is the process's title.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from atoll.host.api import Host
from atoll.inspect.jvm import is_jvm, parse_thread_names
from atoll.inspect.processes import GONE
from atoll.inspect.seats import seats
from atoll.schema.deployment import ProcessRecord
from atoll.schema.plan import TaskThreads

_ASK_TIMEOUT_S = 30.0  # a busy JVM reaches a safepoint late


class Thread(NamedTuple):
    pid: int
    tid: int


@dataclass(frozen=True, slots=True)
class SlotThreads:
    """The threads of all processes of a slot, each with its mask, in the order of their ids."""

    tasks: dict[Thread, frozenset[int]] = field(default_factory=dict)
    idle: dict[Thread, frozenset[int]] = field(default_factory=dict)
    others: dict[Thread, frozenset[int]] = field(default_factory=dict)

    @property
    def masks(self) -> dict[Thread, frozenset[int]]:
        return {**self.tasks, **self.idle, **self.others}

    def seats(self, order: Sequence[int], *, close_gaps: bool = False) -> dict[Thread, int]:
        """The threads that should be bound to one CPU, and to which."""
        bound = {thread: _cpu(cpus) for thread, cpus in self.tasks.items()}
        found = seats(bound, order, close_gaps=close_gaps)
        crowd = Counter(found.values())
        for thread, cpus in self.idle.items():
            cpu = _cpu(cpus)
            if cpu is None or cpu not in order:
                continue
            emptiest = min(order, key=crowd.__getitem__)
            found[thread] = emptiest if crowd[emptiest] < crowd[cpu] else cpu
            crowd[found[thread]] += 1
        return found


def _cpu(mask: frozenset[int]) -> int | None:
    """Its only CPU; None if it has several."""
    return min(mask) if len(mask) == 1 else None


class TaskFinder:
    """Looks at the processes of a plan with thread placement, again and again."""

    def __init__(self, host: Host, threads: TaskThreads) -> None:
        self._host = host
        self._threads = threads
        self._in_dump: dict[Thread, bool] = {}  # thread -> whether its full name matched
        self.faults: dict[int, str] = {}  # pid -> why its JVM could not be asked, at the last look

    def look(self, origins: Mapping[int, ProcessRecord]) -> Mapping[int, SlotThreads]:
        """The threads by slot. `origins`: pid -> the planned process that it comes from."""
        found: dict[int, SlotThreads] = {}
        self.faults = {}
        for pid, process in sorted(origins.items()):
            if process.spec.slot is not None:
                self._add(pid, found.setdefault(process.spec.slot, SlotThreads()))
        alive = {thread for slot in found.values() for thread in slot.masks}
        self._in_dump = {
            thread: matched for thread, matched in self._in_dump.items() if thread in alive
        }
        return found

    def _add(self, pid: int, slot: SlotThreads) -> None:
        host = self._host
        threads: dict[Thread, frozenset[int]] = {}
        named: dict[Thread, str] = {}
        try:
            tids = sorted(int(name) for name in host.list_dir(f"/proc/{pid}/task"))
        except GONE:
            return
        for tid in tids:
            thread = Thread(pid, tid)
            try:
                named[thread] = host.read_text(f"/proc/{pid}/task/{tid}/comm").rstrip("\n")
                threads[thread] = host.affinity(tid)
            except GONE:
                continue  # it has ended
        title = self._title(pid) if self._threads.title else ""
        tasks = self._tasks(pid, named, title)
        for thread, cpus in threads.items():
            if thread not in tasks:
                slot.others[thread] = cpus
            elif self._threads.idle and re.match(self._threads.idle, title or named[thread]):
                slot.idle[thread] = cpus
            else:
                slot.tasks[thread] = cpus

    def _tasks(self, pid: int, named: Mapping[Thread, str], title: str) -> set[Thread]:
        wanted = self._threads
        if wanted.openmp:
            return set(named)
        tasks = {thread for thread, name in named.items() if re.match(wanted.comm, name)}
        if wanted.title and not re.match(wanted.title, title):
            return set()
        if wanted.java:
            shortened = {thread for thread in tasks if not re.match(wanted.java, named[thread])}
            if new := shortened - self._in_dump.keys():
                self._ask(pid, new)
            tasks -= {thread for thread in shortened if not self._in_dump.get(thread)}
        return tasks

    def _title(self, pid: int) -> str:
        try:
            return self._host.read_text(f"/proc/{pid}/cmdline").replace("\0", " ")
        except GONE:
            return ""

    def _ask(self, pid: int, threads: set[Thread]) -> None:
        try:
            if not is_jvm(self._host.read_text(f"/proc/{pid}/maps")):
                return
            names = parse_thread_names(
                self._host.ask_jvm(pid, "Thread.print", timeout_s=_ASK_TIMEOUT_S)
            )
        except (FileNotFoundError, ProcessLookupError):
            return  # it has ended
        except OSError as fault:
            self.faults[pid] = fault.strerror or str(fault)
            return
        for thread in threads:
            name = names.get(thread.tid, "")
            self._in_dump[thread] = re.match(self._threads.java, name) is not None
