"""The task runtime's places and profiles, for notebooks and tests (docs/runtime-python.md).

    from atoll import runtime

    places = runtime.places_here()
    profile = runtime.read_profile("profile.json")  # a program wrote it
    runtime.totals(profile).tasks                   # what its workers did
    runtime.seats(profile, places)                  # where they sit, while it runs

Starts no thread and moves none.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from atoll import _runtime
from atoll._runtime import Core, Places
from atoll.errors import UsageError
from atoll.schema.base import parse
from atoll.schema.runtime_profile import RuntimeProfile, WorkerCounts

__all__ = [
    "Core",
    "Places",
    "RuntimeProfile",
    "Seat",
    "WorkerCounts",
    "places_from_machine",
    "places_here",
    "read_profile",
    "seats",
    "section_totals",
    "spread_cores",
    "synthetic_places",
    "totals",
]


@dataclass(frozen=True)
class Seat:
    """Where a worker's thread may run now."""

    worker: int
    tid: int
    cpus: tuple[int, ...]
    chiplets: tuple[int, ...]  # indices into the places; one if the worker is bound to its core
    nodes: tuple[int, ...]  # OS indices


def places_here() -> Places:
    """This machine, restricted to the CPUs that this process may use. Takes tens of milliseconds.
    Raises UsageError if it cannot be read."""
    try:
        return _runtime.places_here()
    except RuntimeError as fault:
        raise UsageError(str(fault)) from None


def synthetic_places(words: str, cpus: Sequence[int] = ()) -> Places:
    """Made-up places: "package:2 node:2 chiplet:4 core:8 pu:2". PUs take `cpus` in turn; without
    any they are numbered from 0. Raises UsageError, which names the column."""
    try:
        return _runtime.synthetic_places(words, cpus)
    except RuntimeError as fault:
        raise UsageError(str(fault)) from None


def places_from_machine(machine: str) -> Places:
    """The places of a machine file's text (`atoll topo --json`). Raises UsageError."""
    try:
        return _runtime.places_from_machine(machine)
    except RuntimeError as fault:
        raise UsageError(str(fault)) from None


def spread_cores(places: Places, threads: int, spread: int) -> tuple[int, ...]:
    """The core of each of `threads` workers on `spread` chiplets, as a runtime seats them. Raises
    UsageError if these chiplets have no room."""
    try:
        return tuple(_runtime.spread_cores(places, threads, spread))
    except RuntimeError as fault:
        raise UsageError(str(fault)) from None


def read_profile(path: str | os.PathLike[str]) -> RuntimeProfile:
    """A profile that a program wrote. Raises UsageError if the file is no such profile."""
    try:
        return parse(RuntimeProfile, Path(path).read_bytes(), where=os.fspath(path))
    except OSError as fault:
        raise UsageError(f"{os.fspath(path)}: cannot be read ({fault.strerror})") from None


def totals(profile: RuntimeProfile) -> WorkerCounts:
    """What all workers counted, added up."""
    return _sum([worker.counts for worker in profile.workers])


def section_totals(profile: RuntimeProfile) -> dict[str, WorkerCounts]:
    """The counts of each code section, all workers together, by name."""
    found: dict[str, list[WorkerCounts]] = {}
    for worker in profile.workers:
        for section in worker.sections:
            found.setdefault(section.name, []).append(section.counts)
    return {name: _sum(counts) for name, counts in sorted(found.items())}


def seats(profile: RuntimeProfile, places: Places) -> tuple[Seat, ...]:
    """Where the workers of a profile sit now: the masks of their threads, on these places. Raises
    UsageError if their process has ended."""
    found = []
    for worker in profile.workers:
        if worker.tid == 0:
            continue  # it never ran
        try:
            cpus = os.sched_getaffinity(worker.tid)
        except OSError as fault:
            raise UsageError(
                f"worker {worker.worker} (thread {worker.tid}): {fault.strerror}; the program must "
                "still run, in this PID namespace"
            ) from None
        cores = [core for core in places.cores if not cpus.isdisjoint(core.cpus)]
        found.append(
            Seat(
                worker.worker,
                worker.tid,
                tuple(sorted(cpus)),
                tuple(sorted({core.chiplet for core in cores})),
                tuple(sorted({core.node for core in cores})),
            )
        )
    return tuple(found)


def _sum(counts: Sequence[WorkerCounts]) -> WorkerCounts:
    names = WorkerCounts.model_fields
    return WorkerCounts(**{name: sum(getattr(one, name) for one in counts) for name in names})
