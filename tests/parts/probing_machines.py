"""Machines whose caches the system tells, for the tests of what is measured in caches."""

from __future__ import annotations

from typing import Literal

from atoll.schema.machine import Cache, Machine

KIB, MIB = 1 << 10, 1 << 20


def with_caches(machine: Machine) -> Machine:
    """32 KiB and 512 KiB for each core, and the L3s that the machine has."""

    def cache(level: int, size: int, pus: tuple[int, ...]) -> Cache:
        kind: Literal["data", "unified"] = "data" if level == 1 else "unified"
        return Cache(level=level, kind=kind, size_bytes=size, line_bytes=64, ways=8, pus=pus)

    own = [
        cache(level, size, core.pus)
        for core in machine.cores
        for level, size in ((1, 32 * KIB), (2, 512 * KIB))
    ]
    shared = [cache(3, domain.size_bytes, domain.pus) for domain in machine.l3]
    return machine.model_copy(update={"caches": (*own, *shared)})
