"""What a task runtime did, per worker and code section. Format `atoll/runtime-profile` 1.

Written by the C++ runtime (`atl::write_profile_json`, native/include/atoll/runtime/profile.hpp);
docs/runtime-profiler.md tells what each figure means. What could not be counted is None, never 0,
and `remarks` has a line that says why and what would mend it. Counts run from the runtime's start.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

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
    failed_rounds: Count  # times that every victim was asked and none had work
    parks: Count
    wakes: Count  # workers that this one woke
    migrations: Count  # tasks resumed here that had last run on another worker
    switches: Count  # changes of stack
    moves: Count  # times that the worker was put on another core
    yields: Count


class Fills(Record):
    """Cache lines that cores took in, by where they came from. None: the CPU does not tell."""

    local_chiplet: Count | None
    remote_chiplet: Count | None  # of the same node
    node_cache: Count | None  # one of these two, on a CPU that tells no more
    remote_node: Count | None  # a cache there
    memory_local: Count | None
    memory_remote: Count | None
    # How much of the time the counters were on; below 1 the counts are scaled up: estimates.
    running_share: float = Field(ge=0, le=1)


class ThreadUsage(Record):
    """What the kernel says of a worker's thread (proc(5))."""

    cpu_s: Seconds | None
    run_delay_s: Seconds | None  # ready to run while something else ran
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
    fills_s: Seconds  # the part of `seconds` in which fills were counted: a sample
    fills: Fills  # within `fills_s`


class Worker(Record):
    """One worker of the runtime."""

    worker: int = Field(ge=0)
    tid: int = Field(ge=0)  # the kernel's number of its thread; 0: it never ran
    counts: WorkerCounts
    fills: Fills
    usage: ThreadUsage
    sections: tuple[Section, ...]
    lost_trace_events: Count


class L3(Record):
    """resctrl's monitors of one L3, for the group that the workers are in."""

    l3: int = Field(ge=0)  # resctrl's number of the domain
    occupancy_bytes: Count | None  # at the end
    memory_bytes: Count | None  # to and from memory since the start
    local_memory_bytes: Count | None


class RuntimeProfile(Record):
    """A runtime from its start until the profile was taken."""

    FORMAT: ClassVar[str] = "atoll/runtime-profile"
    VERSION: ClassVar[int] = 1

    format: Literal["atoll/runtime-profile"] = "atoll/runtime-profile"
    version: Literal[1] = 1
    seconds: Seconds
    cpu: str  # whose event encodings were used; empty: fills were not counted
    fills_of: str  # what a fill is on this CPU
    workers: tuple[Worker, ...]
    l3: tuple[L3, ...]
    remarks: tuple[str, ...]
