"""The CPUs that threads might use before Atoll bound them. Format `atoll/masks` 1.

`atoll operators apply` writes it before it binds a thread, and `atoll operators undo` restores what
it says. A thread that was bound twice has the mask from before the first time.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from atoll.schema.base import Record


class SavedMask(Record):
    """A thread is its id and its start: the kernel gives an id again."""

    pid: int = Field(ge=1)
    tid: int = Field(ge=1)
    start_ticks: int = Field(ge=0)  # after boot
    cpus: str = Field(min_length=1)  # '0-3,8'


class SavedMasks(Record):
    format: Literal["atoll/masks"] = "atoll/masks"
    version: Literal[1] = 1
    boot_id: str
    threads: tuple[SavedMask, ...] = ()
