"""A task runtime's activity, per worker and code section. Format `atoll/runtime-profile` 1.

Written by the C++ runtime (`atl::write_profile_json`, native/include/atoll/runtime/profile.hpp);
docs/runtime-profiler.md explains each figure. A value that could not be counted is None, never 0,
and `remarks` has a line with the reason and the remedy. Counts begin with the runtime's start.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from atoll.schema.base import Record

Count = Annotated[int, Field(ge=0, lt=1 << 64)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class WorkerCounts(Record):
    """What a worker counts about itself."""

    tasks: Count  # jobs that it began: from its deque, stolen, injected
    inline_forks: Count  # forks that their own join ran; not in `tasks`
    steals_chiplet: Count  # tasks taken from a worker of the same chiplet
    steals_near: Count  # of a near chiplet of its node
    steals_node: Count  # of its node
    steals_elsewhere: Count  # of another node
    failed_rounds: Count  # rounds in which no victim had work
    parks: Count
    wakes: Count  # workers that this one woke
    migrations: Count  # tasks resumed here that had last run on another worker
    switches: Count  # changes of stack
    moves: Count  # times that the worker was moved to another core
    yields: Count


class Fills(Record):
    """Cache lines that cores loaded, by their origin. None: the CPU does not report it."""

    local_chiplet: Count | None
    remote_chiplet: Count | None  # of the same node
    node_cache: Count | None  # one of these two, on a CPU that does not distinguish them
    remote_node: Count | None  # a cache there
    memory_local: Count | None
    memory_remote: Count | None
    # The share of the time that the counters were on; below 1 the counts are scaled estimates.
    running_share: float = Field(ge=0, le=1)


class ThreadUsage(Record):
    """What the kernel reports about a worker's thread (proc(5))."""

    cpu_s: Seconds | None
    run_delay_s: Seconds | None  # ready to run while another thread ran
    minor_faults: Count | None
    major_faults: Count | None
    voluntary_switches: Count | None
    involuntary_switches: Count | None
    cpu_migrations: Count | None


class Section(Record):
    """A named code section on one worker; nested sections are not part of it."""

    name: str
    entered: Count
    seconds: Seconds  # without suspensions
    counts: WorkerCounts
    fills_s: Seconds  # the part of `seconds` during which fills were counted: a sample
    fills: Fills  # within `fills_s`


class TaskType(Record):
    """Tasks of one type on one worker: those that were counted, a sample."""

    # The function, as `program+0x1a2b` for addr2line; `(resumed)`: after a wait, of any type;
    # `(others)`: of more than 63 types.
    type: str
    fills_s: Seconds
    fills: Fills  # within `fills_s`


class Worker(Record):
    """One worker of the runtime."""

    worker: int = Field(ge=0)
    tid: int = Field(ge=0)  # its thread's number in the kernel; 0: it never ran
    counts: WorkerCounts
    fills: Fills
    usage: ThreadUsage
    sections: tuple[Section, ...]
    types: tuple[TaskType, ...]  # only where a spread is steered
    lost_trace_events: Count


class L3(Record):
    """resctrl's monitors of one L3, for the workers' group."""

    l3: int = Field(ge=0)  # resctrl's number of the domain
    occupancy_bytes: Count | None  # at the end
    memory_bytes: Count | None  # to and from memory since the start
    local_memory_bytes: Count | None


class RuntimeProfile(Record):
    """A runtime from its start until the profile was taken."""

    format: Literal["atoll/runtime-profile"] = "atoll/runtime-profile"
    version: Literal[1] = 1
    seconds: Seconds
    cpu: str  # whose event encodings were used; empty: fills were not counted
    fills_of: str  # what counts as a fill on this CPU
    # Simulated: by an emulated guest (docs/simulated.md). Empty: not counted, or an older file.
    fills_source: Literal["", "hardware", "simulated"] = ""
    workers: tuple[Worker, ...]
    l3: tuple[L3, ...]
    working_set_bytes: Count | None  # of all workers together; None: not known
    working_set_source: Literal["", "given", "resctrl", "fills"]  # never of two; empty: not known
    remarks: tuple[str, ...]
