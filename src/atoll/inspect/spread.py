"""Counts the chiplets over which the bound threads of a process are spread.

A thread counts as bound if its mask lies within one chiplet and differs from that of the process.
It may be bound to a core or to the whole chiplet. On a machine without visible chiplets the nodes
take their place, as in Atoll's runtime. A process confined to one chiplet has no spread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from atoll.host.topology import read_machine
from atoll.inspect.drift_threads import cpus_of
from atoll.schema.inspection import SpreadLook, ThreadLook
from atoll.schema.machine import Machine

_FEWEST = 2  # one thread or one chiplet has no spread


@dataclass(frozen=True, slots=True)
class Islands:
    """The CPUs of each chiplet or of each node, by the numbers that `atoll topo` shows."""

    kind: Literal["chiplet", "node"]
    cpus: Mapping[int, frozenset[int]]


class SpreadReader:
    """Shared by all processes of a run; reads the machine once, and only if a thread is bound."""

    def __init__(self, read: Callable[[], Machine] = read_machine) -> None:
        self._read = read

    def look(self, threads: Sequence[ThreadLook], given: frozenset[int]) -> SpreadLook | None:
        """The spread of the threads. `given`: the CPUs of the process. Raises TopologyError."""
        if sum(cpus_of(thread) != given for thread in threads) < _FEWEST:
            return None
        return spread(threads, given, self._islands)

    @cached_property
    def _islands(self) -> Islands:
        return islands_of(self._read())


def islands_of(machine: Machine) -> Islands:
    if machine.chiplets:
        return Islands(
            "chiplet", {chiplet.index: frozenset(chiplet.pus) for chiplet in machine.chiplets}
        )
    return Islands("node", {node.os_index: frozenset(node.pus) for node in machine.nodes})


def spread(
    threads: Sequence[ThreadLook], given: frozenset[int], islands: Islands
) -> SpreadLook | None:
    """None if fewer than two threads are bound or fewer than two chiplets are usable. Pure."""
    reach = given.union(*(cpus_of(thread) for thread in threads))
    usable = {index: cpus for index, cpus in islands.cpus.items() if cpus & reach}
    bound = [
        (thread, index)
        for thread in threads
        if cpus_of(thread) != given
        for index, cpus in usable.items()
        if cpus_of(thread) <= cpus
    ]
    if len(usable) < _FEWEST or len(bound) < _FEWEST:
        return None
    return SpreadLook(
        over=islands.kind,
        usable=len(usable),
        threads_on=dict(sorted(Counter(index for _, index in bound).items())),
        threads_named=dict(Counter(_stem(thread.comm) for thread, _ in bound).most_common()),
    )


def _stem(comm: str) -> str:
    """The family of a thread: 'atoll-duck-7' belongs to 'atoll-duck'."""
    return comm.rstrip("0123456789").rstrip("-_/:# ") or comm
