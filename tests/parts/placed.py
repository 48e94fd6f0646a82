"""A made-up program whose operators run on threads of one process, and placements for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from atoll.engines.binding import bind
from atoll.engines.placeable import OperatorThread, Throughput
from atoll.host.api import Host
from atoll.schema.cpulist import format_cpulist, parse_cpulist
from atoll.schema.operator_graph import Activity, GraphOperator, Known, OperatorGraph, Source
from atoll.schema.placement import PlacedCore, PlacedNode, PlacedUnit, Placement
from tests.parts.proc import Proc, stat

PID = 500


def placement(cpu_of: Mapping[str, int], node_of: Mapping[int, int] | None = None) -> Placement:
    """Packed; `node_of`: by CPU, all 0 without it."""
    cpus = sorted(set(cpu_of.values()))
    nodes = [(node_of or {}).get(cpu, 0) for cpu in cpus]
    return Placement(
        engine="made-up",
        deployment="packed",
        headroom=0.2,
        units=tuple(
            PlacedUnit(operators=(name,), cpu=cpu, duty=0.1, reason="r")
            for name, cpu in cpu_of.items()
        ),
        cores=tuple(
            PlacedCore(cpu=cpu, chiplet=None, node=node, duty=0.1)
            for cpu, node in zip(cpus, nodes, strict=True)
        ),
        nodes=tuple(PlacedNode(node=one, cores=nodes.count(one)) for one in sorted(set(nodes))),
    )


def pagemap(shown: Mapping[int, bool]) -> bytes:
    """Address of a page -> whether only this process maps it."""
    entries = np.zeros(max(shown) // 4096 + 1, dtype=np.uint64)
    for address, exclusive in shown.items():
        entries[address // 4096] = (1 << 63) | (exclusive << 56)
    return entries.tobytes()


def graph(duties: Mapping[str, float]) -> OperatorGraph:
    return OperatorGraph(
        engine="made-up",
        rate=None,
        operators=tuple(
            GraphOperator(
                id=name, activity=Activity(duty=Known(value=duty, source=Source.MEASURED))
            )
            for name, duty in duties.items()
        ),
    )


class ProgramHost(Proc):
    """A thread that is bound runs there at once; those in `asleep` keep the CPU that they had."""

    def __init__(self, operators: Sequence[str]) -> None:
        super().__init__()
        self.files["/proc/sys/kernel/random/boot_id"] = "this-boot\n"
        self.asleep: set[int] = set()
        self.barred: set[int] = set()  # threads of another user
        self.add(PID)
        self.operators: dict[int, str] = {}
        for k, name in enumerate(operators):
            self.begin_thread(PID + 1 + k, name)

    def set_affinity(self, tid: int, cpus: frozenset[int]) -> None:
        if tid not in self.operators:
            raise ProcessLookupError(3, "no such thread", str(tid))
        if tid in self.barred:
            raise PermissionError(1, "Operation not permitted", str(tid))
        super().set_affinity(tid, cpus)
        self.add_thread(PID, tid, format_cpulist(cpus))
        if tid not in self.asleep:
            self.files[f"/proc/{PID}/task/{tid}/stat"] = stat(tid, 1, cpu=min(cpus))

    def begin_thread(self, tid: int, operator: str, cpus: str = "0-7") -> None:
        self.operators[tid] = operator
        self.add_thread(PID, tid, cpus)
        self.masks[tid] = frozenset(parse_cpulist(cpus))

    def end_thread(self, tid: int) -> None:
        del self.operators[tid]
        for name in ("stat", "status"):
            del self.files[f"/proc/{PID}/task/{tid}/{name}"]


class Program:
    """A `Placeable`, and what runs of it. Each measurement takes the next of `gives`."""

    name = "made-up"

    def __init__(self, host: ProgramHost, gives: Sequence[Throughput] = ()) -> None:
        self.host = host
        self.gives = list(gives)
        self.placed: list[Placement] = []

    @contextmanager
    def start(self, host: Host, folder: Path, cpus: Sequence[int]) -> Iterator[Program]:
        assert folder.is_dir() and cpus
        yield self

    def threads(self) -> list[OperatorThread]:
        return [OperatorThread((name,), PID, tid) for tid, name in self.host.operators.items()]

    def place(self, placement: Placement) -> None:
        self.placed.append(placement)
        bind(self.host, self.threads, placement)

    def profile(self, seconds: float) -> OperatorGraph:
        self.host.sleep(seconds)
        return graph(dict.fromkeys(self.host.operators.values(), 0.1))

    def measure(self, seconds: float) -> Throughput:
        self.host.sleep(seconds)
        return self.gives.pop(0)
