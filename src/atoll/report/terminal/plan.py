"""A plan as a table for a terminal, with the rules behind it. Pure.

If the slots would fill more than a screen, those that differ only in their CPUs share a line; the
plan file has them all.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import groupby

from rich import box
from rich.table import Table
from rich.text import Text

from atoll.report.terminal.grid import printed
from atoll.schema.cpulist import brief_cpulist, format_cpulist
from atoll.schema.plan import (
    LOOPBACK,
    CoordinatorPlace,
    HugePages,
    Malloc,
    MemoryPolicy,
    Plan,
    Reason,
    Slot,
)
from atoll.schema.size import gib
from atoll.schema.text import plural

MOST_LINES = 32
# Reasons that are always shown: the choice, that other policies lead to the same plan, and what
# Atoll does to threads.
_LEADING = (
    *("auto picks", "no choice", "only the mask differs", "copies"),
    *("one NIC for all", "thread placement", "one engine over machines"),
)


def plan_text(plan: Plan, *, explain: bool, colour: bool, width: int = 80) -> str:
    """The plan in at most `width` columns."""
    auto = " (chosen by auto)" if plan.asked == "auto" else ""
    totals = [
        plural(len(plan.slots), "instance"),
        plural(plan.total_threads, "thread"),
        f"{gib(plan.total_heap_bytes)} of heap",
    ]
    lines = []
    if plan.shuffle_partitions is not None:
        totals.append(plural(plan.shuffle_partitions, "shuffle partition"))
    if plan.smt:
        totals.append("all threads of each core")
    if plan.malloc is not Malloc.SYSTEM:
        totals.append(f"malloc {plan.malloc}")
    if plan.thp is HugePages.NEVER:
        totals.append("no transparent huge pages")
    if plan.coordinator is not None:
        lines.append(f"coordinator: {_coordinator(plan.coordinator)}")
    lines += [
        _reason(reason, width)
        for reason in plan.reasons
        if explain or reason.rule.startswith(_LEADING)
    ]
    head = Text(f"{plan.engine} under {plan.policy}{auto}", style="bold")
    table = _table(plan.slots)
    return printed(head, ", ".join(totals), table, *lines, width=width, colour=colour)


def _table(slots: Sequence[Slot]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("slot", justify="right", no_wrap=True)
    table.add_column("cores", justify="right")
    table.add_column("CPUs", overflow="fold")
    table.add_column("node", no_wrap=True)
    table.add_column("chiplet", overflow="fold")
    table.add_column("memory", overflow="fold")
    table.add_column("heap", justify="right", no_wrap=True)
    table.add_column("reserved", justify="right", no_wrap=True)
    with_nic = any(slot.address for slot in slots)
    if with_nic:
        table.add_column("listens at", overflow="fold")
    for group in _grouped(slots):
        first, last = group[0], group[-1]
        name = str(first.index) if first is last else f"{first.index}-{last.index}"
        each = "" if first is last else " each"
        row = [
            name,
            f"{first.cores}{each}",
            _cpus(group),
            format_cpulist(first.nodes) or "-",
            format_cpulist(chiplet for slot in group for chiplet in slot.chiplets) or "-",
            _memory(first),
            f"{gib(first.heap_bytes)}{each}",
            # Off-heap memory and the page cache; --explain says how much is for which.
            gib(first.memory_bytes - first.heap_bytes),
        ]
        listens = f"{first.address or LOOPBACK} {first.nic or ''}".rstrip()
        table.add_row(*row, *([listens] if with_nic else []))
    return table


def _grouped(slots: Sequence[Slot]) -> list[list[Slot]]:
    """Each slot by itself, or runs of similar slots if there would be too many lines."""
    if len(slots) <= MOST_LINES:
        return [[slot] for slot in slots]

    def alike(slot: Slot) -> tuple[object, ...]:
        memory = (slot.memory_policy, slot.memory_nodes, gib(slot.heap_bytes))
        return slot.cores, slot.nodes, slot.chiplets, memory, slot.nic, slot.address

    runs = [list(run) for _, run in groupby(slots, alike)]
    if len(runs) <= MOST_LINES:
        return runs
    return [list(run) for _, run in groupby(slots, lambda slot: (slot.cores, slot.nodes))]


def _cpus(group: Sequence[Slot]) -> str:
    if group[0].cpus is None:
        return "no mask"
    return brief_cpulist(cpu for slot in group for cpu in slot.cpus or ())


def _memory(slot: Slot) -> str:
    if slot.memory_policy is MemoryPolicy.FIRST_TOUCH:
        return "first-touch"
    nodes = f" {format_cpulist(slot.memory_nodes)}" if slot.memory_nodes else ""
    return f"{slot.memory_policy}{nodes}"


def _coordinator(place: CoordinatorPlace) -> str:
    where = "no mask" if place.cpus is None else f"CPUs {format_cpulist(place.cpus)}"
    return f"{place.kind}, {where}, heap {gib(place.heap_bytes)}"


def _reason(reason: Reason, width: int) -> str:
    text = f"{reason.rule}: {reason.text} [{reason.source}]"
    return textwrap.fill(
        text, width, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False
    )
