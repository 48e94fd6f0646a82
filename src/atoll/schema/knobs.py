"""The journal of the knobs: every switch's value before Atoll turned it, and the boot.

One document per machine, `/var/lib/atoll/knobs/journal.json`, replaced as a whole by rename.
`original` is on disk before anything is written to the switch. While an action runs, the switches
that it turns have a `next`. After a crash the file in /sys or /proc then holds `ours`, `next`, or a
value that another program wrote. Switches of another boot are void, since a boot resets them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from atoll.schema.base import Record

Value = Annotated[str, Field(pattern=r"^[!-~]([ -~]*[!-~])?$")]


class Action(StrEnum):
    SET = "set"  # rolled back if it was interrupted
    UNDO = "undo"  # completed if it was interrupted


class Switch(Record):
    """One file of a knob; a knob may have one for each CPU, node or interrupt."""

    knob: str
    path: Annotated[str, Field(pattern=r"^/(proc|sys)/[\w/.:+-]+$")]
    original: Value  # before the first set; undo writes it
    ours: Value  # the value that the last settled action left
    next: Value | None = None  # the value that the running action writes


class Journal(Record):
    format: Literal["atoll/knobs"] = "atoll/knobs"
    version: Literal[1] = 1
    boot_id: str
    changed_unix_s: float
    action: Action | None = None  # None: settled
    switches: tuple[Switch, ...] = ()  # in the order in which they are turned
