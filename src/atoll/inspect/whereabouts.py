"""Watches where a deployment's threads and pages are from one moment to another.

Beginning and end take three reads per thread, some 30 ms for 500 threads, and the end counts pages
too (`atoll.inspect.memory`). Nothing is read in between, so nothing is disturbed. What threads did
that ended in between is lost.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from atoll.host.api import Host
from atoll.inspect.clues import read_numa_system
from atoll.inspect.expectation import planned
from atoll.inspect.memory import look_at_memory
from atoll.inspect.processes import attribute, process_table
from atoll.inspect.resctrl import memory_traffic
from atoll.inspect.thread_look import ThreadRun, look_at_threads, runs_between
from atoll.schema.deployment import Deployment, ProcessRecord
from atoll.schema.inspection import ThreadLook
from atoll.schema.whereabouts import Whereabouts

_IO = re.compile(r"^(read|write)_bytes: (\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Moment:
    """By pid; a process that may not be read is in `unknown`."""

    origins: Mapping[int, ProcessRecord]
    threads: Mapping[int, list[ThreadLook]]
    io: Mapping[int, tuple[int, int]]  # bytes from and to storage
    traffic: tuple[int, int] | None  # bytes to all memory and to local memory
    unknown: tuple[str, ...]


class Watch:
    """Begins when it is made. What may not be seen is unknown, and no error."""

    def __init__(self, host: Host, deployment: Deployment) -> None:
        self._host, self._deployment = host, deployment
        self._before = self._moment()

    def end(self) -> Whereabouts:
        """What happened since the beginning."""
        host, before, after = self._host, self._before, self._moment()
        machine = read_numa_system(host)
        everything = frozenset[int]().union(*machine.node_cpus.values())
        unknown = dict.fromkeys(after.unknown)
        cpu_s, pages = Counter[int](), Counter[int]()
        ran: list[ThreadRun] = []
        elsewhere, weight_s, local_s = 0, 0.0, 0.0
        for pid, process in after.origins.items():
            runs = [
                run
                for run in runs_between(before.threads.get(pid, ()), after.threads.get(pid, ()))
                if run.cpu_seconds > 0
            ]
            ran += runs
            expected = planned(
                process, self._deployment.plan, everything=everything, node_cpus=machine.node_cpus
            )
            elsewhere += sum(run.last_cpu not in expected.cpus for run in runs)
            by_node = _by_node(runs, machine.node_cpus)
            cpu_s.update(by_node)
            try:
                memory, why = look_at_memory(
                    host, pid, cpu_seconds_by_node=by_node, own_nodes=machine.node_cpus
                )
            except ProcessLookupError:
                continue
            unknown |= dict.fromkeys(why)
            if memory is not None:
                pages.update(memory.bytes_by_node)
                if memory.local_share is not None:
                    weight_s += sum(by_node.values())
                    local_s += memory.local_share * sum(by_node.values())
        migrations = [run.migrations for run in ran]
        return Whereabouts(
            processes=len(after.origins),
            threads=len(ran),
            elsewhere=elsewhere,
            migrations=sum(filter(None, migrations)) if None not in migrations else None,
            cpu_s_by_node=dict(sorted(cpu_s.items())),
            bytes_by_node=dict(sorted(pages.items())),
            local_pages=min(local_s / weight_s, 1.0) if weight_s else None,
            local_resctrl=_local(before.traffic, after.traffic),
            read_bytes=_moved(before, after, 0),
            written_bytes=_moved(before, after, 1),
            unknown=tuple(unknown),
        )

    def _moment(self) -> _Moment:
        host = self._host
        origins = attribute(host, self._deployment, process_table(host))
        threads, io, unknown = {}, {}, []
        for pid in origins:
            try:
                threads[pid] = look_at_threads(host, pid)
                found = dict(_IO.findall(host.read_text(f"/proc/{pid}/io")))
                io[pid] = int(found["read"]), int(found["write"])
            except PermissionError as fault:
                unknown.append(f"{fault.filename or 'a process'}: {fault.strerror}")
            except (OSError, KeyError):
                continue  # it has just ended, or the kernel does not count I/O
        return _Moment(origins, threads, io, memory_traffic(host, origins), tuple(unknown))


def _by_node(runs: list[ThreadRun], node_cpus: Mapping[int, frozenset[int]]) -> dict[int, float]:
    seconds: dict[int, float] = {}
    for run in runs:
        for node, cpus in node_cpus.items():
            if run.last_cpu in cpus:
                seconds[node] = seconds.get(node, 0.0) + run.cpu_seconds
    return seconds


def _moved(before: _Moment, after: _Moment, which: int) -> int | None:
    if not after.io:
        return None
    return sum(now[which] - before.io.get(pid, (0, 0))[which] for pid, now in after.io.items())


def _local(before: tuple[int, int] | None, after: tuple[int, int] | None) -> float | None:
    if before is None or after is None:
        return None
    whole, local = (now - then for then, now in zip(before, after, strict=True))
    # A counter that falls was given to another group meanwhile.
    return local / whole if 0 <= local <= whole and whole > 0 else None
