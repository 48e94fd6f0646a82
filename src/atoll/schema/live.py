"""What a look at all deployments found. Format `atoll/live` 1.

Made by `atoll.live` again and again; `atoll top --json` prints one, `atoll serve` sends them. CPU
time is known at every look. Other figures are older, because a look may not cost much: each has
its age. An unknown value is null, never zero; but CPU time needs two looks, so at the first,
where `interval_s` is 0, `cpu` is 0 for all slots. Totals count from the first look.
"""

from __future__ import annotations

from typing import Literal

from atoll.schema.base import Record
from atoll.schema.deployment import State
from atoll.schema.inspection import Finding


class SlotView(Record):
    """All processes of a slot, or of the coordinator's place."""

    slot: int | None  # None: the coordinator's place
    cpus: str  # cpulist: where its threads should run
    masked: bool  # false: the plan sets no mask, and `cpus` are all of the deployment
    processes: int
    threads: int
    # Cores kept busy since the look before, and seconds in total. What a process used after the
    # last look that found it is missing: all of it, if it began and ended between two looks.
    cpu: float
    cpu_seconds: float
    outside: int  # threads that may run on other CPUs than `cpus`
    home_share: float | None  # share of the CPU time on `cpus`
    migrations_per_s: float | None  # null: not known yet, or this kernel does not count
    migrations: int  # in total
    bytes_by_node: dict[int, int]  # resident
    # Share of pages on the node of the thread that touches them; see MemoryLook.local_share.
    local_share: float | None
    # Memory bandwidth; null unless the slot has a resctrl group of its own.
    bytes_per_s: float | None
    local_bytes_per_s: float | None
    drift: int  # findings of its processes
    masks_age_s: float | None  # of `threads` and `outside`; null: not looked at yet
    runs_age_s: float | None  # of `home_share` and `migrations_per_s`
    memory_age_s: float | None  # of `bytes_by_node` and `local_share`


class DeploymentView(Record):
    name: str
    engine: str
    policy: str
    state: State
    error: str = ""
    up_s: float | None  # null: it runs without Atoll (`atoll render`)
    slots: tuple[SlotView, ...]
    findings: tuple[Finding, ...]  # drift; the first of those alike, at most 50
    drift_by_code: dict[str, int]  # of all findings
    unknown: tuple[str, ...] = ()  # what could not be read, and why


class LiveView(Record):
    format: Literal["atoll/live"] = "atoll/live"
    version: Literal[1] = 1
    at_unix_s: float
    interval_s: float  # between the looks
    cost: float | None  # cores that the looks themselves kept busy; null at the first
    cpu_busy: dict[int, float]  # by CPU, since the look before; empty at the first
    deployments: tuple[DeploymentView, ...]
    notices: tuple[str, ...] = ()  # records that cannot be read, and why
