"""The journal of the knobs: what every switch was before Atoll turned it, and in which boot.

One document for a machine, `/var/lib/atoll/knobs/journal.json`, replaced as a whole by rename.
`original` is on disk before anything is written to the switch. While an action runs, the
switches that it turns have a `next`: after a crash the file in /sys or /proc then holds `ours`,
`next`, or what somebody else wrote. Switches of another boot mean nothing: the kernel began anew.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from atoll.schema.base import Record

Value = Annotated[str, Field(pattern=r"^[!-~]([ -~]*[!-~])?$")]


class Action(StrEnum):
    SET = "set"  # taken back if it was cut short
    UNDO = "undo"  # finished if it was cut short


class Switch(Record):
    """One file of a knob; a knob may have one for each CPU, node or interrupt."""

    knob: str
    path: Annotated[str, Field(pattern=r"^/(proc|sys)/[\w/.:+-]+$")]
    original: Value  # before the first set; what undo writes
    ours: Value  # what the last settled action left there
    next: Value | None = None  # what the running action writes


class Journal(Record):
    FORMAT: ClassVar[str] = "atoll/knobs"
    VERSION: ClassVar[int] = 1

    format: Literal["atoll/knobs"] = "atoll/knobs"
    version: Literal[1] = 1
    boot_id: str
    changed_unix_s: float
    action: Action | None = None  # None: settled
    switches: tuple[Switch, ...] = ()  # in the order in which they are turned
