"""A small machine and plans for it, for tests of the bench and the report."""

from __future__ import annotations

from typing import Any

from atoll.schema.machine import (
    Allowed,
    Chiplet,
    ChipletSource,
    Core,
    L3Domain,
    Machine,
    NumaNode,
    Origin,
    Package,
    Summary,
)
from atoll.schema.plan import MemoryPolicy, Placement, Plan, Policy, Reason, Slot

GIB = 1 << 30


def machine() -> Machine:
    """One package, one node, two chiplets of two cores."""
    return Machine(
        summary=Summary(packages=1, numa_nodes=1, chiplets=2, l3=2, cores=4, pus=4),
        chiplets=tuple(
            Chiplet(
                index=index,
                pus=(2 * index, 2 * index + 1),
                cores=(2 * index, 2 * index + 1),
                node=0,
                package=0,
                source=ChipletSource.L3,
            )
            for index in range(2)
        ),
        origin=Origin(kind="synthetic", where="test"),
        cpu_model="Test <CPU> & Co",
        memory_bytes=16 * GIB,
        smt=False,
        packages=(Package(index=0, os_index=0, pus=(0, 1, 2, 3)),),
        dies=(),
        nodes=(NumaNode(index=0, os_index=0, package=0, pus=(0, 1, 2, 3), memory_bytes=16 * GIB),),
        l3=tuple(
            L3Domain(index=index, size_bytes=32 << 20, pus=(2 * index, 2 * index + 1))
            for index in range(2)
        ),
        cores=tuple(
            Core(index=pu, os_index=pu, pus=(pu,), package=0, die=None, l3=pu // 2, node=0)
            for pu in range(4)
        ),
        caches=(),
        allowed=Allowed(pus=(0, 1, 2, 3), nodes=(0,)),
    )


def plan(engine: str = "spark", policy: Policy = Policy.WIM, slots: int = 1, **more: Any) -> Plan:
    cores = 4 // slots
    values: dict[str, Any] = {
        "engine": engine,
        "policy": policy,
        "asked": policy.value,
        "placement": Placement.NONE,
        "smt": False,
        "slots": tuple(
            Slot(
                index=index,
                cpus=(
                    None
                    if policy is Policy.WIM
                    else tuple(range(cores * index, cores * (index + 1)))
                ),
                cores=cores,
                threads=cores,
                memory_policy=MemoryPolicy.FIRST_TOUCH,
                nodes=(0,),
                chiplets=(0,) if policy is not Policy.WIM else (0, 1),
                packages=(0,),
                memory_bytes=8 * GIB // slots,
                heap_bytes=4 * GIB // slots,
            )
            for index in range(slots)
        ),
        "coordinator": None,
        "total_threads": 4,
        "total_heap_bytes": 4 * GIB,
        "shuffle_partitions": 8,
        "reasons": (Reason(rule="r", text="t", source="s"),),
        "machine": machine().summary,
        "machine_id": "m1",
    }
    return Plan(**{**values, **more})
