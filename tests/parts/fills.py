"""Counts of simulated caches, and a guest that has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from atoll.bench.results import Results
from atoll.host.processes import Finished
from atoll.schema.fills import FillCounts, FillRow
from atoll.schema.plan import Policy
from atoll.schema.results import Line, PassDone, PassFills
from tests.parts.bench import FINGERPRINT, entrant, header, lines, results

BOARD = {
    "/sys/bus/pci/devices/0000:00:01.0/vendor": "0x8086\n",
    "/sys/bus/pci/devices/0000:00:01.0/device": "0x7000\n",
    "/sys/bus/pci/devices/0000:00:04.0/vendor": "0x1af4\n",
    "/sys/bus/pci/devices/0000:00:04.0/device": "0x1110\n",
}


def row(
    from_chiplets: tuple[int, ...] = (0, 0, 0), from_memory: tuple[int, ...] = (0, 0)
) -> FillRow:
    names = [name for name, field in FillRow.model_fields.items() if field.annotation is int]
    counted = dict.fromkeys(names, 1)
    return FillRow(**counted, from_chiplets=from_chiplets, from_memory=from_memory, written=(0, 0))


def counts(first: FillRow, cycles: int = 2_000_000) -> FillCounts:
    """Of three chiplets: two on node 0, one on node 1."""
    return FillCounts(
        quantum_cycles=1000,
        clock_mhz=2000,
        cycles=cycles,
        lost_patience=0,
        node_of_chiplet=(0, 0, 1),
        package_of_node=(0, 1),
        user=(first, row(), row()),
        kernel=(row(), row(), row()),
    )


def of_machine(
    packages: int, nodes: int, chiplets: int, *, crossing: float, quantum: int = 10_000
) -> FillCounts:
    """`nodes` in each package, `chiplets` in each node. Of the lines that a chiplet gets, few come
    from elsewhere if `crossing` is small, and none if it is 0."""
    node_of = tuple(n for n in range(packages * nodes) for _ in range(chiplets))
    package_of = tuple(p for p in range(packages) for _ in range(nodes))

    def lines(own: int, node: int, *, chiplet: int | None = None) -> int:
        away = own + node + (chiplet or 0)
        if node != node_of[own]:
            near = 30_000 if package_of[node] == package_of[node_of[own]] else 9_000
            return int(crossing * near * (1 + away % 3))
        if chiplet == own:
            return 2_000_000
        return int(crossing * 120_000 * (1 + away % 4)) if chiplet is not None else 400_000

    def of_chiplet(own: int) -> FillRow:
        caches = tuple(lines(own, node, chiplet=one) for one, node in enumerate(node_of))
        memory = tuple(lines(own, node) for node in range(len(package_of)))
        return FillRow(
            instructions=900_000_000,
            loads=200_000_000,
            stores=90_000_000,
            l2_hits=20_000_000,
            taken_away=int(9_000 * crossing),
            stall_cycles=400_000_000,
            queue_cycles=int(8_000_000 * crossing),
            from_chiplets=caches,
            from_memory=memory,
            written=tuple(found // 4 for found in memory),
        )

    rows = tuple(map(of_chiplet, range(len(node_of))))
    return FillCounts(
        quantum_cycles=quantum,
        clock_mhz=2_450,
        cycles=int(1_700_000_000 * (1 + crossing / 4)),
        lost_patience=3,
        node_of_chiplet=node_of,
        package_of_node=package_of,
        user=rows,
        kernel=rows,
    )


CROSSING = {"duckdb/wim": 1.0, "duckdb/win": 0.4, "duckdb/wicp": 0.002, "duckdb/wic": 0.0}


def counted_run(packages: int = 2, nodes: int = 1, chiplets: int = 8, blocks: int = 2) -> Results:
    """DuckDB under four policies in an emulated guest with simulated caches."""
    policies = (Policy.WIM, Policy.WIN, Policy.WICP, Policy.WIC)
    everyone = [entrant("duckdb", one, 1 if one is Policy.WIM else 4) for one in policies]
    given: list[Line] = []
    for line in lines(everyone, blocks):
        if isinstance(line, PassDone):
            found = of_machine(packages, nodes, chiplets, crossing=CROSSING[line.label])
            given.append(PassFills(block=line.block, label=line.label, fills=found))
        given.append(line)
    mark = FINGERPRINT.model_copy(update={"emulated": True})
    return results(given, header(*everyone, fingerprint=mark))


@dataclass
class FakeFills:
    """An `atoll-fills` that counts 10 lines of the own L3 between two readings."""

    fails: dict[str, Finished | OSError] = field(default_factory=dict)  # by verb
    said: list[str] = field(default_factory=list)
    lines: int = 0

    def __call__(self, argv: Sequence[str]) -> Finished:
        program, verb = argv
        assert program == "atoll-fills"
        self.said.append(verb)
        failed = self.fails.get(verb)
        if isinstance(failed, OSError):
            raise failed
        if failed is not None:
            return failed
        if verb != "read":
            return Finished(0, "", "")
        self.lines += 10
        found = counts(row((self.lines, 0, 0)), cycles=self.lines * 1000)
        return Finished(0, found.model_dump_json() + "\n", "")
