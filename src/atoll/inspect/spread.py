"""On how many chiplets the bound threads of a process sit.

A thread is bound here if its mask lies within one chiplet and is not that of the process: it may
run on a core, or anywhere on the chiplet. Where the machine shows no chiplets its nodes stand for
them, as they do for Atoll's runtime. A process that may use one of them alone has no spread.
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

_FEWEST = 2  # one thread, or one chiplet, leaves no room for a spread


@dataclass(frozen=True, slots=True)
class Islands:
    """The CPUs of each chiplet, or of each node; by the numbers that `atoll topo` shows."""

    kind: Literal["chiplet", "node"]
    cpus: Mapping[int, frozenset[int]]


class SpreadEye:
    """For all processes of a run: the machine is read once, and only if a thread is bound."""

    def __init__(self, read: Callable[[], Machine] = read_machine) -> None:
        self._read = read

    def look(self, threads: Sequence[ThreadLook], given: frozenset[int]) -> SpreadLook | None:
        """`given`: the CPUs of the process. Raises TopologyError."""
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
    """None where fewer than two threads are bound, or two chiplets there. Pure."""
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
    """'atoll-duck-7' is one of the 'atoll-duck'."""
    return comm.rstrip("0123456789").rstrip("-_/:# ") or comm
