"""Whether the operators of a running program are where a placement says: each thread has the mask
of its one CPU and ran there last, and the memory that can only be its own lies on its node.

A thread that has not run since it was bound still shows the CPU on which it ran before. It counts
as `idle` and not as out of place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from atoll.engines.binding import nodes_of, own_pages, seats_of
from atoll.engines.placeable import OperatorThread
from atoll.host.api import Host
from atoll.inspect.processes import GONE
from atoll.inspect.thread_look import parse_thread
from atoll.schema.cpulist import format_cpulist, parse_cpulist
from atoll.schema.inspection import ThreadLook
from atoll.schema.placement import Placement
from atoll.schema.size import percent
from atoll.schema.text import plural

_MOST_ELSEWHERE = 0.05  # of a process's own pages: some are pinned, or were just made elsewhere
_STEP_S = 0.1


@dataclass(frozen=True, slots=True)
class Verified:
    threads: int
    idle: int  # of those; they have not run since they were bound
    faults: tuple[str, ...]  # a line for each thread, operator or process out of place
    # Share of the pages of processes that are on one node; None: no process has all of its
    # operators on one node, or its pages cannot be read.
    local: float | None


def verify(
    host: Host, threads: Sequence[OperatorThread], placement: Placement, *, wait_s: float = 2.0
) -> Verified:
    """Looks until every thread has run, but no longer than `wait_s`. Raises as `seats_of`."""
    seats = seats_of(threads, placement)
    first = {one: _look(host, one) for one in threads}
    until_s = host.monotonic() + wait_s
    while True:
        now = {one: _look(host, one) for one in threads}
        waiting = [one for one in threads if _waits(first[one], now[one], seats[one])]
        if not waiting or host.monotonic() >= until_s:
            break
        host.sleep(_STEP_S)
    faults = [
        f"{', '.join(one.operators)}: thread {one.tid} {wrong}"
        for one in threads
        if one not in waiting and (wrong := _wrong(now[one], seats[one]))
    ]
    present = Counter(name for one in threads for name in one.operators)
    placed = Counter(name for unit in placement.units for name in unit.operators)
    faults += [
        f"{name}: it has {plural(present[name], 'thread')} for {plural(replicas, 'replica')}"
        if present[name]
        else f"{name}: it has no thread"
        for name, replicas in sorted(placed.items())
        if present[name] < replicas
    ]
    moved, all_pages = 0, 0
    for pid, nodes in nodes_of(seats, placement).items():
        if len(nodes) > 1 or not placement.units:
            continue
        away, pages = _pages(host, pid, min(nodes))
        moved, all_pages = moved + away, all_pages + pages
        if away > _MOST_ELSEWHERE * pages:
            share = percent(away / pages)
            faults.append(f"process {pid}: {share} of its pages are not on node {min(nodes)}")
    local = 1 - moved / all_pages if all_pages else None
    return Verified(len(threads), len(waiting), tuple(faults), local)


def _look(host: Host, thread: OperatorThread) -> ThreadLook | None:
    folder = f"/proc/{thread.pid}/task/{thread.tid}"
    try:
        stat, status = host.read_text(f"{folder}/stat"), host.read_text(f"{folder}/status")
    except GONE:
        return None
    return parse_thread(thread.tid, stat=stat, status=status, sched="")


def _waits(first: ThreadLook | None, now: ThreadLook | None, cpus: frozenset[int]) -> bool:
    """Whether a thread with the right mask may not have run since it got it."""
    if first is None or now is None or _mask(now) != cpus or now.last_cpu in cpus:
        return False
    return now.cpu_seconds == first.cpu_seconds


def _mask(look: ThreadLook) -> frozenset[int]:
    return frozenset(parse_cpulist(look.cpus))


def _wrong(look: ThreadLook | None, cpus: frozenset[int]) -> str:
    """Empty: nothing."""
    if look is None:
        return "has ended"
    if _mask(look) != cpus:
        return f"may run on {look.cpus} and not on {format_cpulist(cpus)} alone"
    return "" if look.last_cpu in cpus else f"ran on {look.last_cpu} last"


def _pages(host: Host, pid: int, node: int) -> tuple[int, int]:
    """Pages elsewhere, and all, of those that are the process's own."""
    away = pages = 0
    for addresses in own_pages(host, pid):
        try:
            nodes = host.page_nodes(pid, addresses)
        except (*GONE, OSError):
            return 0, 0
        pages += int(np.count_nonzero(nodes >= 0))
        away += int(np.count_nonzero((nodes >= 0) & (nodes != node)))
    return away, pages
