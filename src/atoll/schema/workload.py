"""What runs of workloads measured. Formats `atoll/workload` 1 and `atoll/workload-runs` 1.

`atoll-workload` prints it, without `launch`; `atoll workload run --json` prints it with the flags
of atoll-exec under which it ran. The workloads are W1 to W4 of numa-query-tuning, table I.
`atoll experiment run` writes the other: a run of each workload, or kernel, under each setting in
each block.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from atoll.schema.base import Record
from atoll.schema.kernel import KernelResult
from atoll.schema.machine import Machine

WorkloadName = Literal["w1", "w2", "w3", "w4"]
WORKLOADS: dict[WorkloadName, str] = {  # -> what it does
    "w1": "median of each group",
    "w2": "count of each group",
    "w3": "hash join",
    "w4": "join by an index",
}


class WorkloadAnswer(Record):
    """The answer's size and sums: the same for each variant, scheduler and number of threads."""

    rows: int = Field(ge=0)
    # w1: of twice the medians, w2: of the counts, w3, w4: of both tables' values; modulo 2^64
    sums: tuple[int, ...] = Field(min_length=1)


class WorkloadResult(Record):
    format: Literal["atoll/workload"] = "atoll/workload"
    version: Literal[1] = 1
    workload: WorkloadName
    scheduler: Literal["plain", "atoll"]
    variant: Literal["paper", "fast"]
    index: Literal["art", "masstree", "btree", "skiplist"] | None = None  # of w4
    dataset: Literal["moving-cluster", "sequential", "runs", "zipf", "heavy-hitter"]
    records: int = Field(ge=1)  # w3, w4: rows of the larger table
    groups: int = Field(ge=1)  # w3, w4: rows of the smaller table
    key_step: int = Field(default=1, ge=1)  # between neighbouring keys
    seed: int
    threads: int = Field(ge=1)
    pin: tuple[int, ...] = ()  # the threads' CPUs, in turn; empty: not bound
    keep: bool  # w3, w4: the joined rows were kept, by malloc
    generate_s: float = Field(ge=0)  # making the input, in memory that was there
    build_s: float | None = None  # w4: until the index was there
    # Wall time of each run, until its answer is there and its tables are freed; w4: of the join.
    runs_s: tuple[float, ...] = Field(min_length=1)
    records_per_s: float = Field(gt=0)  # of the median run
    input_bytes: int = Field(ge=1)
    peak_bytes: int = Field(ge=0)  # resident memory of the process at its most, with the input
    # Peak memory without the input, over what the workload must hold: w1 8 bytes for each record
    # and 16 for each group, w2 16 for each group, w3 with `keep` 24 for each row; else None.
    overhead: float | None = None
    # Moves of the process's threads between CPUs in all runs; None if the kernel does not count.
    migrations: int | None
    # The part of the pages that lay on the node of the thread that read them, if the work on each
    # record read all alike: in a run that is not timed. None with one memory node.
    local_share_estimated: float | None = None
    checked: bool  # by sorting; a wrong answer is not reported
    answer: WorkloadAnswer
    launch: tuple[str, ...] = ()  # flags of atoll-exec: place, memory policy, malloc


class SettingRun(Record):
    """One run of a workload under one setting."""

    block: int = Field(ge=0)
    setting: dict[str, str]  # axis -> value
    result: Annotated[WorkloadResult | KernelResult, Field(discriminator="format")]


class WorkloadRuns(Record):
    """All runs of an experiment. Its blocks are whole."""

    format: Literal["atoll/workload-runs"] = "atoll/workload-runs"
    version: Literal[1] = 1
    machine: Machine
    emulated: bool  # the CPU: times mean nothing
    settings: tuple[dict[str, str], ...] = Field(min_length=1)  # the baseline first
    runs: tuple[SettingRun, ...] = Field(min_length=1)
    warnings: tuple[str, ...] = ()  # what a reader must know before trusting a figure
