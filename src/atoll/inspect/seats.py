"""Which thread runs on which CPU under thread placement (`--placement dense` and `sparse`). Pure.

Thread k has CPU k of the slot's order, and after the last CPU the order begins again. If a thread
ends, the rest close the gap with as few moves as possible. So the CPUs in use are always the first
of the order, and no CPU has two threads more than another.

The supervisor binds the threads by this rule, and `atoll verify` checks that it would move none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import cycle, islice
from typing import TypeVar

T = TypeVar("T")


def seats(threads: Mapping[T, int | None], order: Sequence[int]) -> dict[T, int]:
    """Thread -> its CPU. `threads`: in the order in which they began, each with the CPU that it is
    bound to; None: it is not bound to one CPU. `order`: the CPUs of the slot, each once."""
    places = list(islice(cycle(order), len(threads)))
    free = Counter(places)
    kept = {}
    for thread, cpu in threads.items():
        if cpu is not None and free[cpu]:
            free[cpu] -= 1
            kept[thread] = cpu
    taken = Counter(kept.values())
    vacant = []
    for cpu in places:
        if taken[cpu]:
            taken[cpu] -= 1
        else:
            vacant.append(cpu)
    rest = iter(vacant)
    return {thread: kept[thread] if thread in kept else next(rest) for thread in threads}
