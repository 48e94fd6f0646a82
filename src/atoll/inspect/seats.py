"""Which thread runs on which CPU under thread placement (`--placement dense` and `sparse`). Pure.

Thread k gets CPU k of the slot's order, and after the last CPU the order begins again. No CPU has
two threads more than another, and as few threads as possible move for that. If a thread ends, its
CPU is free until the next thread comes, or until the gap is closed: then the CPUs in use are the
first of the order again.

The supervisor binds the threads by this rule, and `atoll verify` checks that it would move none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")


def seats(
    threads: Mapping[T, int | None], order: Sequence[int], *, close_gaps: bool = False
) -> dict[T, int]:
    """Thread -> its CPU. `threads`: in the order in which they began, each with the CPU that it is
    bound to; None: it is not bound to one CPU. `order`: the CPUs of the slot, each once."""
    least, more = divmod(len(threads), len(order))
    crowd = Counter(threads.values())
    # The CPUs that have one more: those that have it already, or the first.
    preferred = order if close_gaps else sorted(order, key=lambda cpu: crowd[cpu] <= least)
    room = dict.fromkeys(order, least) | dict.fromkeys(preferred[:more], least + 1)
    kept = {}
    taken: Counter[int] = Counter()
    for thread, cpu in threads.items():
        if cpu is not None and taken[cpu] < room.get(cpu, 0):
            taken[cpu] += 1
            kept[thread] = cpu
    vacant = iter(
        [cpu for turn in range(least + 1) for cpu in order if taken[cpu] <= turn < room[cpu]]
    )
    return {thread: kept[thread] if thread in kept else next(vacant) for thread in threads}
