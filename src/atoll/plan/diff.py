"""Compares two plans, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from atoll.schema.cpulist import brief_cpulist
from atoll.schema.plan import Plan
from atoll.schema.size import gib
from atoll.schema.text import plural

# Fields that describe the plan itself rather than the deployment, or are compared slot by slot.
_SKIPPED = frozenset({"format", "version", "slots", "reasons", "warnings"})

# The counts of a machine.
_NOUNS = {
    "packages": "package",
    "numa_nodes": "NUMA node",
    "chiplets": "chiplet",
    "l3": "L3",
    "cores": "core",
    "pus": "PU",
}


class Change(NamedTuple):
    """One difference; a slot that only one plan has is None on the other side."""

    where: str  # 'policy', 'slot 3', 'slot 3 heap_bytes'
    before: Any  # a JSON value
    after: Any
    kind: Literal["added", "removed", "changed"]

    def __str__(self) -> str:
        before, after = _shown(self.where, self.before), _shown(self.where, self.after)
        match self.kind:
            case "added":
                return f"+ {self.where}: {after}"
            case "removed":
                return f"- {self.where}: {before}"
            case "changed":
                return f"~ {self.where}: {before} -> {after}"


def compare(old: Plan, new: Plan) -> list[Change]:
    """The differences from `old` to `new`: first the plan's own, then those of each slot."""
    before, after = old.model_dump(mode="json"), new.model_dump(mode="json")
    changes = list(_fields("", before, after, _SKIPPED))
    old_slots, new_slots = before["slots"], after["slots"]
    for index in range(max(len(old_slots), len(new_slots))):
        here = f"slot {index}"
        if index >= len(new_slots):
            changes.append(Change(here, old_slots[index], None, "removed"))
        elif index >= len(old_slots):
            changes.append(Change(here, None, new_slots[index], "added"))
        else:
            changes += _fields(f"{here} ", old_slots[index], new_slots[index], frozenset())
    return changes


def _fields(
    prefix: str, before: dict[str, Any], after: dict[str, Any], skipped: frozenset[str]
) -> Iterator[Change]:
    for name, value in after.items():
        if name not in skipped and before[name] != value:
            yield Change(prefix + name, before[name], value, "changed")


def _shown(where: str, value: Any) -> str:
    match value:
        case {"cpus": cpus, "heap_bytes": heap, "memory_nodes": nodes}:  # a slot, a coordinator
            mask = "no mask" if cpus is None else f"CPUs {brief_cpulist(cpus)}"
            memory = f", memory of node {brief_cpulist(nodes)}" if nodes else ""
            place = f", at {value['address']}" if value["address"] else ""
            return f"{mask}{memory}, heap {gib(heap)}{place}"
        case {"packages": _}:
            return ", ".join(plural(count, _NOUNS.get(name, name)) for name, count in value.items())
        case {"comm": names, "openmp": openmp}:  # the threads that run tasks
            return "those of OpenMP" if openmp else f"named {names}"
        case None:
            return "no mask" if where.endswith("cpus") else "none"
        case int() if where.endswith("_bytes"):
            return gib(value)
        case [int(), *_] if where.endswith("thread_cpus"):
            return ",".join(map(str, value))  # the order matters here
        case [int(), *_]:
            return brief_cpulist(value)
        case []:
            return "none"
        case list():
            return ", ".join(map(str, value))
    return str(value)
