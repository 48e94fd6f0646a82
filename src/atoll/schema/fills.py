"""Cache lines, counted by where they came from, in a guest whose caches are simulated.

Format `atoll/fills` 1: what `atoll-fills read` prints, and the difference of two readings. All
figures are simulated: none was measured on hardware (docs/simulated.md has the model).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from atoll.schema.base import Record

Count = Annotated[int, Field(ge=0)]
Mode = Literal["user", "kernel"]
LINE_BYTES = 64


class FillRow(Record):
    """What the CPUs of one chiplet counted in one mode. Lines are of 64 bytes."""

    instructions: Count
    loads: Count  # of a line: an access to two lines counts twice
    stores: Count
    l2_hits: Count  # accesses that L1 missed and L2 had
    taken_away: Count  # copies that other cores lost to these CPUs' stores
    stall_cycles: Count
    queue_cycles: Count  # the part of the stalls that waited for a busy link or memory
    from_chiplets: tuple[Count, ...]  # lines that came from a cache of that chiplet
    from_memory: tuple[Count, ...]  # lines that came from that node's memory
    written: tuple[Count, ...]  # lines that evictions wrote back to that node's memory

    def minus(self, earlier: FillRow) -> FillRow:
        before = earlier.model_dump()
        return FillRow.model_validate(
            {name: _less(value, before[name]) for name, value in self.model_dump().items()}
        )


class FillCounts(Record):
    """What all CPUs counted since the guest was started, or between two readings."""

    format: Literal["atoll/fills"] = "atoll/fills"
    version: Literal[1] = 1
    source: Literal["simulated"] = "simulated"
    quantum_cycles: int = Field(ge=1)  # how far a CPU could run ahead of the slowest
    clock_mhz: int = Field(ge=1)  # of the simulated cores
    cycles: Count  # simulated time: of the CPU that is furthest
    lost_patience: Count  # how often a CPU gave up waiting for the slowest
    node_of_chiplet: tuple[Count, ...]
    package_of_node: tuple[Count, ...]
    user: tuple[FillRow, ...]  # by chiplet
    kernel: tuple[FillRow, ...]

    @model_validator(mode="after")
    def _is_of_one_machine(self) -> Self:
        chiplets, nodes = len(self.node_of_chiplet), len(self.package_of_node)
        if any(node >= nodes for node in self.node_of_chiplet):
            raise ValueError(f"node_of_chiplet: wants nodes below {nodes}")
        for mode in ("user", "kernel"):
            rows = self.rows(mode)
            if len(rows) != chiplets:
                raise ValueError(f"{mode}: wants a row for each of {chiplets} chiplets")
            for row in rows:
                of_nodes = (len(row.from_memory), len(row.written))
                if len(row.from_chiplets) != chiplets or of_nodes != (nodes, nodes):
                    raise ValueError(f"{mode}: a row wants {chiplets} chiplets and {nodes} nodes")
        return self

    def rows(self, mode: Mode) -> tuple[FillRow, ...]:
        return self.user if mode == "user" else self.kernel

    @property
    def simulated_s(self) -> float:
        """Simulated seconds. Never to be put beside measured ones."""
        return self.cycles / (self.clock_mhz * 1e6)

    def since(self, earlier: FillCounts) -> FillCounts:
        """What was counted from an earlier reading of the same count to this one."""

        def rows(mode: Mode) -> tuple[FillRow, ...]:
            pairs = zip(self.rows(mode), earlier.rows(mode), strict=True)
            return tuple(row.minus(before) for row, before in pairs)

        return self.model_copy(
            update={
                "cycles": self.cycles - earlier.cycles,
                "lost_patience": self.lost_patience - earlier.lost_patience,
                "user": rows("user"),
                "kernel": rows("kernel"),
            }
        )

    def sources(self, mode: Mode = "user", chiplets: Sequence[int] | None = None) -> FillSources:
        """The lines that the CPUs of `chiplets` (None: of all) got, by where they came from."""
        found = dict.fromkeys(FillSources.model_fields, 0)
        rows = self.rows(mode)
        for own in range(len(rows)) if chiplets is None else chiplets:
            node = self.node_of_chiplet[own]
            for other, lines in enumerate(rows[own].from_chiplets):
                near = "other_chiplet" if self.node_of_chiplet[other] == node else "other_node"
                found["own_l3" if own == other else near] += lines
            for home, lines in enumerate(rows[own].from_memory):
                found["local_memory" if home == node else "remote_memory"] += lines
        return FillSources.model_validate(found)

    def crossings(self, mode: Mode = "user") -> Crossings:
        """What left its chiplet, its node and its package, of all fills and write-backs."""
        chiplets = nodes = packages = 0
        package_of = self.package_of_node
        for own, row in enumerate(self.rows(mode)):
            node = self.node_of_chiplet[own]
            caches = list(zip(self.node_of_chiplet, row.from_chiplets, strict=True))
            chiplets += sum(lines for home, lines in caches if home == node)
            chiplets -= row.from_chiplets[own]
            for home, lines in (*caches, *enumerate(row.from_memory), *enumerate(row.written)):
                if package_of[home] != package_of[node]:
                    packages += lines
                elif home != node:
                    nodes += lines
        return Crossings(
            chiplet_bytes=chiplets * LINE_BYTES,
            node_bytes=nodes * LINE_BYTES,
            package_bytes=packages * LINE_BYTES,
        )


class Crossings(Record):
    """Simulated bytes. Each counts once, at the widest border that it crossed."""

    chiplet_bytes: Count  # between chiplets of a node
    node_bytes: Count  # between nodes of a package, from caches and memory, and written back
    package_bytes: Count  # between packages, alike


class FillSources(Record):
    """Lines that L2s got, seen from the chiplet of the CPU that got them."""

    own_l3: Count  # the chiplet's L3, or another core's L2 on it
    other_chiplet: Count  # a cache of another chiplet of the node
    other_node: Count  # a cache of another node
    local_memory: Count
    remote_memory: Count

    @property
    def lines(self) -> int:
        lines: dict[str, int] = self.model_dump()
        return sum(lines.values())

    def share(self, name: str) -> float:
        """Of all lines; 0 if there are none."""
        lines: int = getattr(self, name)
        return lines / self.lines if self.lines else 0.0


def _less(value: Any, earlier: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(one - before for one, before in zip(value, earlier, strict=True))
    return value - earlier
