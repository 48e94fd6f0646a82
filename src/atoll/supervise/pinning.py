"""Binds the threads that run tasks to CPUs, one by one, while a deployment is up.

It carries out `--placement dense` and `sparse`, unless the OpenMP runtime of the engine does that
(`atoll.engines.calls.laid_out`). Threads come and go, so the supervisor looks at all of them again
and again. A thread that runs tasks gets its CPU by the rule of `atoll.inspect.seats`. Any other
thread gets the slot's CPUs back, because a thread inherits the mask of its creator.

A look at 1,000 threads takes 20 ms. The pauses in between are so long that looks take at most a
twentieth of one CPU, and at most a second.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable

from atoll.host.api import Host
from atoll.inspect.processes import attribute, process_table
from atoll.inspect.tasks import TaskFinder, Thread
from atoll.schema.deployment import Deployment
from atoll.schema.plan import TaskThreads

_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 1.0
_PAUSE_PER_LOOK = 20.0
_CALM_S = 1.0


class Pinner(threading.Thread):
    """A thread of the supervisor, because a JVM may take seconds to answer. It ends with `stop`, or
    with the process."""

    def __init__(
        self, host: Host, threads: TaskThreads, deployment: Callable[[], Deployment]
    ) -> None:
        super().__init__(name="pinner", daemon=True)
        self._host = host
        self._deployment = deployment
        self._finder = TaskFinder(host, threads)
        self._stopped = threading.Event()
        self._reported: set[str] = set()
        # Slot -> the threads that ran tasks at the last look, and since when these.
        self._since: dict[int, tuple[frozenset[Thread] | None, float]] = {}

    def run(self) -> None:
        while True:
            began_s = self._host.monotonic()
            self.look()
            took_s = self._host.monotonic() - began_s
            pause_s = min(max(_PAUSE_PER_LOOK * took_s, _SHORTEST_PAUSE_S), _LONGEST_PAUSE_S)
            if self._stopped.wait(pause_s):
                return

    def stop(self) -> None:
        self._stopped.set()

    def look(self) -> None:
        """Bind every thread that is not where it should be."""
        deployment = self._deployment()
        origins = attribute(self._host, deployment, process_table(self._host))
        for index, threads in self._finder.look(origins).items():
            slot = deployment.plan.slots[index]
            seats = threads.seats(slot.thread_cpus, close_gaps=self._is_calm(index, threads.tasks))
            for thread, cpus in threads.masks.items():
                wanted = frozenset({seats[thread]} if thread in seats else slot.cpus or ())
                if cpus != wanted:
                    self._bind(thread, wanted)
        for pid, why in self._finder.faults.items():
            self._report(f"process {pid}: cannot ask for the names of its threads: {why}")

    def _is_calm(self, slot: int, tasks: Iterable[Thread]) -> bool:
        """Whether the same threads have run tasks in the slot for a while. Threads that wait for a
        moment between two tasks must not make others move."""
        now_s, running = self._host.monotonic(), frozenset(tasks)
        before, since_s = self._since.get(slot, (None, now_s))
        if running != before:
            since_s = now_s
        self._since[slot] = running, since_s
        return now_s - since_s >= _CALM_S

    def _bind(self, thread: Thread, cpus: frozenset[int]) -> None:
        try:
            self._host.set_affinity(thread.tid, cpus)
        except ProcessLookupError:
            return  # it has ended
        except OSError as fault:
            self._report(f"process {thread.pid}: cannot bind a thread ({fault.strerror})")

    def _report(self, line: str) -> None:
        """Once, in the supervisor's log."""
        if line not in self._reported:
            self._reported.add(line)
            print(line, file=sys.stderr, flush=True)
