"""Which cores a program's threads use, from where each of them is seen again and again.

The kernel counts the time of a thread and the CPU that it ran on last, not the time on each CPU. So
every 100 ms the time since the last look counts for the CPU on which the thread is now. That is
exact for bound threads. A free thread that moves within a window counts for one CPU of several.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from atoll.host.api import Host
from atoll.host.procfs import parse_stat
from atoll.inspect.duty import WINDOW_S, Moment, look
from atoll.inspect.processes import GONE
from atoll.inspect.tasks import Thread
from atoll.schema.machine import Machine

LEAST_SHARE = 0.01  # of the program's CPU time; a core with less is not used


def cores_used(cpu_s: Mapping[int, float], machine: Machine) -> int:
    """Cores with over 1 % of the CPU time, which is given by CPU. Pure."""
    by_core: dict[int, float] = {}
    core_of = {cpu: core.index for core in machine.cores for cpu in core.pus}
    for cpu, seconds in cpu_s.items():
        core = core_of.get(cpu, cpu)
        by_core[core] = by_core.get(core, 0.0) + seconds
    least = LEAST_SHARE * sum(cpu_s.values())
    return sum(seconds > least for seconds in by_core.values())


@contextmanager
def watching(host: Host, pids: Sequence[int]) -> Iterator[Mapping[int, float]]:
    """CPU -> seconds of these processes' threads on it, complete when the context has ended."""
    seconds: dict[int, float] = {}
    over = threading.Event()
    last = _moment(host, pids)

    def step() -> None:
        nonlocal last
        now = _moment(host, pids)
        for thread, cpu_s in now.cpu_s.items():
            used_s = cpu_s - last.cpu_s.get(thread, cpu_s)
            cpu = _cpu(host, thread) if used_s > 0 else None
            if cpu is not None:
                seconds[cpu] = seconds.get(cpu, 0.0) + used_s
        last = now

    def watch() -> None:
        while not over.wait(WINDOW_S):
            step()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield seconds
    finally:
        over.set()
        watcher.join()
        step()


def _moment(host: Host, pids: Sequence[int]) -> Moment:
    threads = []
    for pid in pids:
        try:
            threads += [Thread(pid, int(tid)) for tid in host.list_dir(f"/proc/{pid}/task")]
        except GONE:
            continue
    return look(host, threads)


def _cpu(host: Host, thread: Thread) -> int | None:
    try:
        text = host.read_text(f"/proc/{thread.pid}/task/{thread.tid}/stat")
    except GONE:
        return None
    return parse_stat(text).last_cpu
