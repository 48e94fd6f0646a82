"""Inspects every thread of a process: CPU mask, last CPU, CPU time, migrations.

The sources (proc(5)): stat has the CPU that a thread ran on last, status its masks, sched (only
with CONFIG_SCHED_DEBUG) the migrations and the CPU time in nanoseconds. Without sched the time
comes from stat, in ticks. Values are sums since the thread began; `runs_between` gives the
difference of two inspections. Each thread takes three reads: 500 threads take some 30 ms.

Threads that end during the inspection are left out, and so is an ended main thread whose other
threads go on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from atoll.host.api import Host
from atoll.host.procfs import parse_stat
from atoll.schema.inspection import ThreadLook

# A name has at most 15 bytes and so cannot forge any of these lines; `^` matches after '\n' only.
_CPUS = re.compile(r"^Cpus_allowed_list:\t(.*)$", re.MULTILINE)
_NODES = re.compile(r"^Mems_allowed_list:\t(.*)$", re.MULTILINE)
_MIGRATIONS = re.compile(r"^se\.nr_migrations\s+:\s+(\d+)$", re.MULTILINE)
_RUNTIME_MS = re.compile(r"^se\.sum_exec_runtime\s+:\s+([\d.]+)$", re.MULTILINE)
_ENDED = (FileNotFoundError, ProcessLookupError)


@dataclass(frozen=True, slots=True)
class ThreadRun:
    """What a thread did between two inspections."""

    tid: int
    comm: str
    last_cpu: int
    cpu_seconds: float
    migrations: int | None


def look_at_threads(host: Host, pid: int) -> list[ThreadLook]:
    """The living threads by tid; empty if the process is gone. Raises PermissionError."""
    try:
        tids = sorted(int(name) for name in host.list_dir(f"/proc/{pid}/task"))
    except _ENDED:
        return []
    has_sched = host.exists(f"/proc/{pid}/sched")
    looks = []
    for tid in tids:
        folder = f"/proc/{pid}/task/{tid}"
        try:
            look = parse_thread(
                tid,
                stat=host.read_text(f"{folder}/stat"),
                status=host.read_text(f"{folder}/status"),
                sched=host.read_text(f"{folder}/sched") if has_sched else "",
            )
        except _ENDED:
            continue
        if look is not None:
            looks.append(look)
    return looks


def parse_thread(tid: int, *, stat: str, status: str, sched: str) -> ThreadLook | None:
    """One thread from the texts of its three files; None if it has ended. Pure."""
    values = parse_stat(stat)
    if values.ended:
        return None
    runtime_ms = _RUNTIME_MS.search(sched)
    return ThreadLook(
        tid=tid,
        comm=values.comm,
        cpus=_first(_CPUS, status),
        memory_nodes=_first(_NODES, status),
        last_cpu=values.last_cpu,
        cpu_seconds=float(runtime_ms[1]) / 1000 if runtime_ms else values.cpu_s,
        migrations=migrations_in(sched),
    )


def migrations_in(sched: str) -> int | None:
    """How often a thread moved to another CPU, from /proc/PID/task/TID/sched; None if this kernel
    does not count it."""
    found = _MIGRATIONS.search(sched)
    return int(found[1]) if found else None


def runs_between(before: Iterable[ThreadLook], after: Iterable[ThreadLook]) -> list[ThreadRun]:
    """What the threads of `after` have done since `before`, the busiest first.

    A new thread did all of it in between. A reused tid shows by its CPU time, which otherwise
    cannot fall.
    """
    earlier = {look.tid: look for look in before}
    runs = []
    for look in after:
        was = earlier.get(look.tid)
        if was is not None and was.cpu_seconds > look.cpu_seconds:
            was = None
        runs.append(
            ThreadRun(
                tid=look.tid,
                comm=look.comm,
                last_cpu=look.last_cpu,
                cpu_seconds=look.cpu_seconds - (was.cpu_seconds if was else 0.0),
                migrations=(
                    None
                    if look.migrations is None
                    else look.migrations - ((was.migrations or 0) if was else 0)
                ),
            )
        )
    return sorted(runs, key=lambda run: (-run.cpu_seconds, run.tid))


def _first(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match[1] if match else ""
