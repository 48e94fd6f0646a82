"""Counts of simulated caches, and a guest that has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from atoll.host.processes import Finished
from atoll.schema.fills import FillCounts, FillRow

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
