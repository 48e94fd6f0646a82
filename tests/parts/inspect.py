"""Observations and contexts for the tests of inspect's rules, with one thing changed at a time."""

from __future__ import annotations

from dataclasses import replace

from atoll.inspect.clues import NO_CLUES, Clues, NumaSystem
from atoll.inspect.expectation import Expectation
from atoll.inspect.rule_context import RuleContext
from atoll.schema.inspection import (
    MappingKind,
    MappingLook,
    MemoryLook,
    PageCacheLook,
    ThreadLook,
)

PID = 100
MIB = 1 << 20
# Two nodes of four CPUs.
NODE_CPUS = {0: frozenset(range(4)), 1: frozenset(range(4, 8))}
MACHINE = NumaSystem(node_cpus=NODE_CPUS, online=frozenset(range(8)))
ONE_NODE = NumaSystem(node_cpus={0: frozenset(range(8))}, online=frozenset(range(8)))
# A worker on node 0, bound.
PLANNED = Expectation(
    source="plan",
    process="worker-0",
    slot=0,
    cpus=frozenset(range(4)),
    exact=True,
    policy="bind:0",
    nodes=frozenset({0}),
)
# Any process, started under taskset and numactl with the same.
GIVEN = replace(PLANNED, source="process", process="server", slot=None, exact=False)


def thread(
    tid: int = PID, cpus: str = "0-3", *, comm: str = "server", nodes: str = "0-1", ran: float = 1
) -> ThreadLook:
    return ThreadLook(
        tid=tid,
        comm=comm,
        cpus=cpus,
        memory_nodes=nodes,
        last_cpu=0,
        cpu_seconds=ran,
        migrations=0,
    )


def team(*masks: str) -> list[ThreadLook]:
    """The main thread and more, one for each mask."""
    return [thread(PID + number, cpus) for number, cpus in enumerate(masks)]


def context(
    expectation: Expectation = PLANNED, machine: NumaSystem = MACHINE, clues: Clues = NO_CLUES
) -> RuleContext:
    return RuleContext(PID, expectation, machine, clues)


def mapping(
    bytes_by_node: dict[int, int],
    *,
    kind: MappingKind = MappingKind.ANONYMOUS,
    policy: str = "bind:0",
    name: str = "",
    start: int = 0x7F0000000000,
) -> MappingLook:
    return MappingLook(
        start=start,
        size_bytes=sum(bytes_by_node.values()),
        kind=kind,
        name=name,
        policy=policy,
        bytes_by_node=bytes_by_node,
    )


def memory(*mappings: MappingLook, sampled: bool = False) -> MemoryLook:
    by_node: dict[int, int] = {}
    by_kind: dict[MappingKind, dict[int, int]] = {}
    for each in mappings:
        for node, size in each.bytes_by_node.items():
            by_node[node] = by_node.get(node, 0) + size
            kinds = by_kind.setdefault(each.kind, {})
            kinds[node] = kinds.get(node, 0) + size
    return MemoryLook(
        method="move_pages" if sampled else "numa_maps",
        sampled_pages=1000 if sampled else 0,
        resident_bytes=sum(by_node.values()),
        bytes_by_node=by_node,
        bytes_by_kind=by_kind,
        share_error=0.02 if sampled else 0,
        huge_bytes=0,
        mappings=mappings,
        local_share=None,
        own_nodes_share=None,
    )


def cached(bytes_by_node: dict[int, int]) -> PageCacheLook:
    size = sum(bytes_by_node.values())
    return PageCacheLook(
        path="/data/lineitem.parquet",
        size_bytes=size,
        cached_bytes=size,
        bytes_by_node=bytes_by_node,
        sampled=False,
    )
