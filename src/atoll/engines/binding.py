"""Binds the threads of operators to the CPUs of a placement, and moves their memory after them.

Every thread of a unit gets a mask of its unit's one CPU, and no other thread is touched. A page
that a bound thread touches first comes to its node. What was there before is moved, where it can be
known whose it is: the pages that only one process maps, if all of its operators run on one node.
The rest stays: pages that processes share, and those of a process with operators on several nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from atoll.engines.placeable import OperatorThread
from atoll.errors import NotPermitted, ProcessGone, UsageError
from atoll.host.api import Host
from atoll.inspect.clues import read_numa_system
from atoll.inspect.mappings import kind_of, parse_maps
from atoll.schema.inspection import MappingKind
from atoll.schema.placement import Placement
from atoll.schema.text import first_of

if TYPE_CHECKING:
    import numpy.typing as npt

_OWN = (MappingKind.HEAP, MappingKind.STACK, MappingKind.ANONYMOUS)
_PAGE_BYTES = 4096
_MOST_PAGES = 1 << 18  # looked at in one go: 1 GiB
_PRESENT_AND_EXCLUSIVE = np.uint64(1 << 63 | 1 << 56)
_LOOKS = 3  # at the threads of a program, of which some end and others begin meanwhile


def lacking(threads: Sequence[OperatorThread], placement: Placement) -> set[str]:
    """The operators of these threads that the placement does not have. Pure. The deployment os has
    all of them."""
    if not placement.units:
        return set()
    placed = {name for unit in placement.units for name in unit.operators}
    return {name for thread in threads for name in thread.operators} - placed


def seats_of(
    threads: Sequence[OperatorThread], placement: Placement
) -> dict[OperatorThread, frozenset[int]]:
    """The mask of each thread. Pure. The replicas of an operator go to its threads in turn.

    Raises UsageError for an operator that the placement does not have, and for a thread whose
    operators it has on different CPUs.
    """
    if not placement.units:
        return dict.fromkeys(threads, frozenset(core.cpu for core in placement.cores))
    cpus: dict[str, list[int]] = {}
    for unit in sorted(placement.units, key=lambda unit: unit.replica):
        for operator in unit.operators:
            cpus.setdefault(operator, []).append(unit.cpu)
    found: dict[OperatorThread, frozenset[int]] = {}
    turns = Counter[tuple[str, ...]]()
    if unknown := lacking(threads, placement):
        raise UsageError(
            f"the placement lacks {first_of(sorted(unknown), 3, ', ')}, which the program runs; "
            "make a graph of the program as it is: atoll operators profile"
        )
    for thread in threads:
        turn = turns[thread.operators]
        turns[thread.operators] += 1
        seats = {cpus[name][turn % len(cpus[name])] for name in thread.operators}
        if len(seats) > 1:
            raise UsageError(
                f"thread {thread.tid} runs {' and '.join(thread.operators)}, which the placement "
                "has on different CPUs; place them together"
            )
        found[thread] = frozenset(seats)
    return found


def nodes_of(
    seats: Mapping[OperatorThread, frozenset[int]], placement: Placement
) -> dict[int, frozenset[int]]:
    """The nodes on which the operators of each process run. Pure."""
    node_of = {core.cpu: core.node for core in placement.cores}
    found: dict[int, frozenset[int]] = {}
    for thread, cpus in seats.items():
        nodes = frozenset(node_of[cpu] for cpu in cpus)
        found[thread.pid] = found.get(thread.pid, frozenset()) | nodes
    return found


def bind(
    host: Host,
    threads: Callable[[], Sequence[OperatorThread]],
    placement: Placement,
    save: Callable[[Sequence[OperatorThread]], None] = lambda _: None,
) -> None:
    """Binds the threads that a program has, and looks again for those that it has made meanwhile.

    `save` gets the threads before each of them is bound. Raises as `seats_of`, ProcessGone if
    threads keep ending, NotPermitted.
    """
    seats: dict[OperatorThread, frozenset[int]] = {}
    for look in range(1, _LOOKS + 1):
        found = threads()
        if set(found) <= seats.keys():
            break
        seats = seats_of(found, placement)
        save(found)
        try:
            _bind(host, seats)
        except ProcessGone:
            if look == _LOOKS:
                raise
            seats = {}
    if read_numa_system(host).several_nodes:
        for pid, nodes in nodes_of(seats, placement).items():
            if len(nodes) == 1:
                _move(host, pid, min(nodes))


def _bind(host: Host, seats: Mapping[OperatorThread, frozenset[int]]) -> None:
    for thread, cpus in seats.items():
        try:
            host.set_affinity(thread.tid, cpus)
        except ProcessLookupError:
            raise ProcessGone(
                f"thread {thread.tid} of {', '.join(thread.operators)} has ended; apply the "
                "placement again"
            ) from None
        except OSError as fault:
            raise NotPermitted(
                f"thread {thread.tid} of {', '.join(thread.operators)} cannot be bound to CPU "
                f"{min(cpus)} ({fault.strerror}); is the CPU in its cpuset, and are you its user?"
            ) from None


def own_pages(host: Host, pid: int) -> Iterator[npt.NDArray[np.uint64]]:
    """The addresses of pages of a process that no other process maps, in pieces of at most 1 GiB.
    Without the pages of files. Nothing for a process that has ended, or that may not be read."""
    try:
        mappings = parse_maps(host.read_text(f"/proc/{pid}/maps"))
        for each in mappings:
            if kind_of(each, {}) in _OWN:
                for start in range(each.start, each.end, _MOST_PAGES * _PAGE_BYTES):
                    pages = min(_MOST_PAGES, (each.end - start) // _PAGE_BYTES)
                    if len(found := _exclusive(host, pid, start, pages)):
                        yield found
    except OSError:
        return


def _exclusive(host: Host, pid: int, start: int, pages: int) -> npt.NDArray[np.uint64]:
    """By /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst). After a fork, parent and
    child map the same pages until one of them writes."""
    path = f"/proc/{pid}/pagemap"
    content = host.read_bytes(path, offset=8 * (start // _PAGE_BYTES), size=8 * pages)
    entries = np.frombuffer(content[: len(content) // 8 * 8], dtype=np.uint64)
    own = (entries & _PRESENT_AND_EXCLUSIVE) == _PRESENT_AND_EXCLUSIVE
    return np.uint64(start) + np.flatnonzero(own).astype(np.uint64) * np.uint64(_PAGE_BYTES)


def _move(host: Host, pid: int, node: int) -> None:
    """What cannot be moved stays: `verify` counts it."""
    for addresses in own_pages(host, pid):
        try:
            nodes = host.page_nodes(pid, addresses)
            elsewhere = addresses[(nodes >= 0) & (nodes != node)]
            if len(elsewhere):
                host.move_pages(pid, elsewhere, node)
        except OSError:  # it has ended, or the node is not in its cpuset
            return
