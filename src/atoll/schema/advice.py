"""Advice on one program's settings, on one machine. Format `atoll/advice` 1.

Made by `atoll.advice` (`atoll advise --json`); `atoll apply --plan` reads it. The advice follows
the decision flowchart of numa-query-tuning (figure 10): each line is one tuner, which is a thing
that can be set, with the one rule that decided about it. If `advised` equals `current`, the advice
is to leave it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from atoll.schema.base import Record
from atoll.schema.machine import Summary


class Workload(StrEnum):
    """What limits the program."""

    BANDWIDTH = "bandwidth"  # memory bandwidth: scans, aggregation, joins of large tables
    LATENCY = "latency"  # memory or communication latency: lookups, data shared by few threads
    ALLOCATION = "allocation"  # malloc and free in several threads
    UNKNOWN = "unknown"


class SubjectKind(StrEnum):
    COMMAND = "command"  # to be started; without a name: any program
    PROCESS = "process"  # it runs
    ENGINE = "engine"  # as `atoll up` starts it


class Reach(StrEnum):
    """What a setting affects."""

    PROCESS = "process"  # one program
    SYSTEM = "system"  # every process
    FIRMWARE = "firmware"  # the machine, from its next start


class Supported(StrEnum):
    """Whether this user can follow the advice here."""

    YES = "yes"
    ROOT = "root"  # `atoll apply` prints a script for root
    RESTART = "restart"  # a running process keeps it
    REBOOT = "reboot"  # in the firmware's setup
    NO = "no"


class Evidence(Record):
    kind: Literal["paper", "issue", "manual", "measured"]
    source: str
    place: str  # section, figure, number of the issue, file
    says: str


class Line(Record):
    """One tuner. Values are text in the tuner's own words."""

    tuner: str
    title: str
    reach: Reach
    rule: str  # the rule that decided
    condition: str  # of that rule, in words
    current: str
    advised: str
    supported: Supported
    obstacle: str = ""  # why it is not supported
    why: str
    evidence: tuple[Evidence, ...]
    apply: str = ""  # a command, or what to change; empty: leave it
    undo: str = ""
    risk: str
    check: str  # a measurement that shows whether it pays

    @property
    def leaves(self) -> bool:
        return self.advised == self.current


class PreloadEffect(StrEnum):
    EFFECTIVE = "effective"
    PARTIAL = "partial"  # a part of the program has an allocator of its own
    NONE = "none"
    UNKNOWN = "unknown"


class Preload(Record):
    """What a preloaded malloc changes in the program, found by reading its files or memory."""

    effect: PreloadEffect
    why: str


class AllocatorLook(Record):
    name: str
    library: str = ""  # to preload; empty: nothing, or it is not installed
    state: Literal["default", "loadable", "not installed", "not available"]
    note: str = ""


class Neighbour(Record):
    """Another program, or the kernel's command line, that sets the same things."""

    name: str
    turns: tuple[str, ...]  # tuners
    does: str


class Advice(Record):
    format: Literal["atoll/advice"] = "atoll/advice"
    version: Literal[1] = 1
    subject: SubjectKind
    name: str  # an engine, a command or 'pid N'; empty: any program
    workload: Workload
    machine: Summary
    machine_id: str
    kernel: str
    lines: tuple[Line, ...] = Field(min_length=1)
    prefix: str  # what to write before the command, for all lines together; empty: nothing
    preload: Preload
    allocators: tuple[AllocatorLook, ...]
    neighbours: tuple[Neighbour, ...]
    limits: tuple[str, ...]  # what this user may not do here
