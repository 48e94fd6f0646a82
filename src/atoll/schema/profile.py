"""A machine's measured performance. Format `atoll/profile` 1.

Made by `atoll measure` (atoll.probing), read by topo, plan, `atoll profile` and predictions. CPUs
and nodes are the kernel's numbers (OS indices). Latencies are nanoseconds one way, bandwidths are
1e9 bytes/s, intervals are 95 % intervals of the median. A figure that was not measured is None, and
`left_out` has a line with the reason. A figure that did not settle is kept as measured, with
`settled` false; nothing is smoothed. The `*_array` methods give NumPy arrays with NaN for None.

Kinds follow olap-on-chiplets 2.3 to 2.5 and 4.4, arcas-runtime 2.1 to 2.3 and
numa-query-tuning III-A8; docs/measure.md describes how each is measured.
"""

from __future__ import annotations

import math
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

from atoll.schema.base import Record
from atoll.schema.environment import Environment as Environment  # part of the format

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


# The upper bounds are far above any real value: a file that exceeds them is damaged.
Measured = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)]
Count = Annotated[int, Field(gt=0, lt=1 << 50)]
Grid = tuple[tuple[Measured | None, ...], ...]


class Kind(StrEnum):
    """The values of `--only`, in the order in which they are measured."""

    LATENCY = "latency"  # core to core
    BANDWIDTH = "bandwidth"  # core to core
    NODES = "nodes"  # node matrix and loaded latency
    CACHE = "cache"  # latency and bandwidth over the working set
    STREAM = "stream"
    SHARING = "sharing"  # local against distributed cache
    CHURN = "churn"  # allocators


class Mode(StrEnum):
    QUICK = "quick"
    FULL = "full"


class Figure(Record):
    """A median with its interval."""

    value: Measured
    low: Measured
    high: Measured
    samples: int
    settled: bool  # the interval is as narrow as requested, and the measurement was undisturbed

    @property
    def spread(self) -> float:
        """Half the interval's width over the median."""
        return (self.high - self.low) / 2 / self.value if self.value else 0.0


class PairMatrix(Record):
    """One figure for every ordered pair of PUs.

    Latency: `values[i][j]` is one way between pus[i] and pus[j] with the line homed at pus[i]
    (pus[i] touched the line first), so [i][j] and [j][i] differ only by the home. Bandwidth: pus[i]
    produces, pus[j] consumes, the buffer is homed at pus[i]. The diagonal is None.
    """

    pus: tuple[int, ...]
    values: Grid
    spreads: Grid  # Figure.spread of each value
    unsettled: tuple[tuple[int, int], ...]  # pairs of PUs, (i, j) as in values
    samples: int  # per pair and home, the median over the pairs
    pair_ms: Measured  # time per pair and home, the median over the pairs

    @model_validator(mode="after")
    def _square(self) -> Self:
        if len(set(self.pus)) != len(self.pus):
            raise ValueError("a PU is listed twice")
        for name, grid in (("values", self.values), ("spreads", self.spreads)):
            _check_shape(name, grid, len(self.pus), len(self.pus))
        strange = {pu for pair in self.unsettled for pu in pair} - set(self.pus)
        if strange:
            raise ValueError(f"unsettled: PU {min(strange)} is not one of the matrix's")
        return self

    def array(self) -> npt.NDArray[np.float64]:
        """`values` with NaN for None, shape (n, n)."""
        import numpy as np

        return np.array(self.values, dtype=np.float64).reshape(len(self.pus), len(self.pus))


def _check_shape(name: str, grid: tuple[tuple[object, ...], ...], rows: int, columns: int) -> None:
    if len(grid) != rows or any(len(row) != columns for row in grid):
        raise ValueError(f"{name}: is not {rows} by {columns}")


class NodeMatrix(Record):
    """Idle latency and bandwidth from the CPUs of a node to the memory of a node.

    `latency_ns[i][j]` is from cpu_nodes[i] to memory_nodes[j]: a pointer chase of dependent
    loads by one PU. `bandwidth_gbs[i][j]` is reading by one PU of each core of that node.
    """

    cpu_nodes: tuple[int, ...]
    memory_nodes: tuple[int, ...]
    working_set_bytes: Count
    huge_pages: bool
    latency_ns: tuple[tuple[Figure | None, ...], ...]
    bandwidth_gbs: tuple[tuple[Figure | None, ...], ...]

    @model_validator(mode="after")
    def _rectangular(self) -> Self:
        rows, columns = len(self.cpu_nodes), len(self.memory_nodes)
        _check_shape("latency_ns", self.latency_ns, rows, columns)
        _check_shape("bandwidth_gbs", self.bandwidth_gbs, rows, columns)
        return self


class LoadedPoint(Record):
    """The latency of one PU while the other PUs of its node load the memory."""

    bandwidth_gbs: Measured  # moved by the others
    latency_ns: Figure


class LoadedCurve(Record):
    cpu_node: int
    memory_node: int
    loaders: int  # threads that load
    points: tuple[LoadedPoint, ...]  # by rising load; the first is idle


class CachePoint(Record):
    working_set_bytes: Count
    latency_ns: Figure
    bandwidth_gbs: Figure | None


class CacheLevel(Record):
    """A level as the latency curve shows it, without sysfs."""

    level: int  # 1: the fastest
    capacity_bytes: Count  # effective: up to here the latency is this level's
    latency_ns: Measured
    sysfs_bytes: Count | None  # the size that the system claims; None: it reports none


class CacheCurve(Record):
    cpu: int
    huge_pages: bool
    points: tuple[CachePoint, ...]
    levels: tuple[CacheLevel, ...]
    memory_latency_ns: Measured | None  # past the last level; None: the curve ended before

    @property
    def settled(self) -> tuple[bool, ...]:
        """For each level, then for the memory: whether most of its points settled."""
        ends = [0, *(level.capacity_bytes for level in self.levels), math.inf]
        inside = [
            [p.latency_ns.settled for p in self.points if low < p.working_set_bytes <= high]
            for low, high in pairwise(ends)
        ]
        return tuple(2 * sum(points) >= len(points) for points in inside)


class StreamKernel(StrEnum):
    """STREAM's four kernels, with the bytes per element as STREAM counts (no write-allocate)."""

    COPY = "copy"  # 16 B
    SCALE = "scale"  # 16 B
    ADD = "add"  # 24 B
    TRIAD = "triad"  # 24 B


class StreamRun(Record):
    kernel: StreamKernel
    processes: Count
    per: Literal["machine", "node", "chiplet", "core", "n"]  # one process per
    threads: Count  # all processes together
    working_set_bytes: Count  # all arrays of all processes together
    # The level that holds each thread's share: 'L1', 'L2', 'L3', 'L3 and memory' or 'memory'
    level: str
    bandwidth_gbs: Figure


class SharingPoint(Record):
    vector_bytes: Count
    local_gbs: Figure
    distributed_gbs: Figure


class Sharing(Record):
    """The same number of threads on the fewest chiplets that hold them, and spread evenly.

    `crossing_bytes` is the size from which the spread threads stay faster; None: never, or always
    (`points` shows which). It decides between WICP-local and WICP-mixed.
    """

    operation: Literal["write", "read"]
    threads: Count
    local_pus: tuple[int, ...]
    distributed_pus: tuple[int, ...]
    points: tuple[SharingPoint, ...]
    crossing_bytes: Count | None


class ChurnRun(Record):
    """Allocations and frees of mixed sizes by several threads (numa-query-tuning III-A8)."""

    allocator: str
    library: str  # the preloaded library; empty: the C library's own malloc
    threads: Count
    operations: Count  # all threads together
    seconds: Figure  # wall time
    overhead: Measured  # peak resident bytes over peak requested bytes

    @property
    def operation_ns(self) -> Figure:
        """A thread's time for one allocation or free."""
        each = 1e9 * self.threads / self.operations
        ends = ("value", "low", "high")
        return self.seconds.model_copy(
            update={end: getattr(self.seconds, end) * each for end in ends}
        )


class Level(Record):
    """Groups of PUs that are closer to each other than to the rest."""

    median: Measured  # of the pairs whose nearest common group is of this level; ns, or GB/s
    groups: tuple[tuple[int, ...], ...]


class Inference(Record):
    """The islands, inferred from measurements alone (atoll.infer). Lists are empty if there are
    none; `levels` runs from the nearest pairs to the farthest."""

    chiplets: tuple[tuple[int, ...], ...]
    packages: tuple[tuple[int, ...], ...]
    smt: tuple[tuple[int, ...], ...]
    levels: tuple[Level, ...]
    confidence: float = Field(ge=0, le=1)
    source: Literal["latency", "bandwidth", "both", "none"]  # the figures that show the chiplets
    reasons: tuple[str, ...] = ()  # for people: evidence for and against


class Expectation(Record):
    """The catalog's figure for this CPU model, compared with the measurement."""

    model: str  # the catalog's entry
    figure: str  # the name of what is compared
    expected: Measured
    measured: Measured
    unit: str
    verdict: Literal["as expected", "misconfigured?", "not comparable"]
    reason: str
    source: str  # the source of the expected value


class Watch(Record):
    """The disturbances while one kind was measured."""

    kind: Kind
    seconds: Measured
    # CPU time taken by the hypervisor and by other processes; None: unknown, or too short to tell
    steal_share: Measured | None
    others_share: Measured | None
    frequency_drift: Measured | None  # widest change of a core's speed, over its median
    involuntary_switches: int  # of the probe's threads
    misplaced_threads: int  # samples taken on another CPU than requested
    misplaced_pages: int  # pages on another node than requested


class Notice(Record):
    """`code` is stable and documented in docs/measure.md."""

    code: str
    message: str


class Profile(Record):
    format: Literal["atoll/profile"] = "atoll/profile"
    version: Literal[1] = 1
    created: str  # ISO 8601, UTC
    machine_id: str  # schema.machine: Machine.machine_id, before a profile was applied
    machine_title: str
    environment: Environment
    mode: Mode
    emulated: bool  # an emulated CPU: the figures mean nothing
    cpus: tuple[int, ...]  # the PUs that were measured
    seconds: Measured
    settle: Measured  # the requested spread
    clock: str  # the clock that was used
    core_latency_cas_ns: PairMatrix | None = None
    core_latency_store_ns: PairMatrix | None = None
    core_bandwidth_gbs: PairMatrix | None = None
    nodes: NodeMatrix | None = None
    loaded: tuple[LoadedCurve, ...] = ()
    caches: tuple[CacheCurve, ...] = ()
    stream: tuple[StreamRun, ...] = ()
    sharing: tuple[Sharing, ...] = ()
    churn: tuple[ChurnRun, ...] = ()
    inference: Inference | None = None
    expectations: tuple[Expectation, ...] = ()
    watch: tuple[Watch, ...] = ()
    left_out: tuple[Notice, ...] = ()  # what was not measured, and why
    notices: tuple[Notice, ...] = ()  # why measured figures are doubtful
