"""What a run of a kernel measured. Format `atoll/kernel`, version 1.

`atoll-kernels` prints it, without `launch`; `atoll workload run NAME --json` prints it with the
flags of atoll-exec under which it ran. The kernels are the workloads of ARCAS's evaluation; which
there are, and their parameters, only that program knows (`atoll-kernels --describe`).
"""

from __future__ import annotations

from itertools import pairwise
from statistics import fmean
from typing import Literal

from pydantic import Field

from atoll.schema.base import Record


class Concurrency(Record):
    """How many threads of the process ran, or could have run, in the timed runs."""

    every_s: float = Field(gt=0)  # between two of `running`
    running: tuple[int, ...]
    threads_created: int = Field(ge=0)  # in the process's life

    def course(self, most: int) -> list[float]:
        """`running` as at most `most` means of equal parts."""
        count, parts = len(self.running), min(most, len(self.running))
        bounds = [part * count // max(parts, 1) for part in range(parts + 1)]
        return [fmean(self.running[first:last]) for first, last in pairwise(bounds)]


# Sources of lines, as in `atoll/runtime-profile`.
FILLS = (
    "local_chiplet",
    "remote_chiplet",
    "node_cache",
    "remote_node",
    "memory_local",
    "memory_remote",
)


class KernelFills(Record):
    """Cache lines that the cores of the scheduler atoll's workers got in each run, without its
    check. Sources are those of `atoll/runtime-profile`; None: the CPU does not report it."""

    source: Literal["hardware", "simulated"]  # who counted them
    chiplets: int = Field(ge=1)  # that the workers were spread over in the end
    runs: tuple[dict[str, int | None], ...] = Field(min_length=1)


class KernelResult(Record):
    format: Literal["atoll/kernel"] = "atoll/kernel"
    version: Literal[1] = 1
    workload: str
    scheduler: str  # who runs its loops: atoll, arcas-printed, os, async, openmp, tbb
    approach: str | None  # of the scheduler atoll; None: the runtime's default
    workers: int = Field(ge=1)
    arrays: str  # partitioned, local, interleaved
    pages: str  # transparent, normal
    seed: int
    parameters: dict[str, str]  # the workload's own
    make_s: float = Field(ge=0)  # until the input was there
    runs_s: tuple[float, ...] = Field(min_length=1)  # wall time of each run, without its check
    work: float = Field(ge=0)  # of one run
    unit: str  # of the work, such as edges
    per_s: float = Field(ge=0)  # work a second, of the median run
    # Bytes that a run must at least move between memory and caches; None: not known.
    traffic_bytes: float | None
    peak_bytes: int = Field(ge=0)  # resident memory of the process at its most
    fills: KernelFills | None = None  # None: nobody counted
    figures: dict[str, float]  # of the answer and the input; a wrong answer is not reported
    concurrency: Concurrency | None = None  # if it was asked for
    launch: tuple[str, ...] = ()  # flags of atoll-exec: place, memory policy, malloc


class KernelParameter(Record):
    """A flag `--name VALUE`. With neither bounds nor choices its value is any text."""

    name: str
    default: str
    help: str
    least: int | None = None
    most: int | None = None
    choices: tuple[str, ...] = ()


class Kernel(Record):
    name: str
    what: str  # one line
    unit: str  # of its work, plural
    parameters: tuple[KernelParameter, ...]


class Kernels(Record):
    """What `atoll-kernels --describe` prints."""

    schedulers: str  # of that build
    parameters: tuple[KernelParameter, ...]  # of every workload
    workloads: tuple[Kernel, ...]
