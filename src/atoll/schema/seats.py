"""Where the threads of Atoll's runtime sit inside an engine's process, and how that changes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from atoll.schema.base import Record
from atoll.schema.runtime_profile import Seconds

Policy = Literal["adaptive", "local", "distributed", "none"]


class ThreadSeat(Record):
    """A thread that runs the engine's tasks, and where it may run."""

    tid: int = Field(ge=1)  # the kernel's number of the thread
    rank: int = Field(ge=0)  # its number among the workers; every caller has rank 0
    role: Literal["worker", "caller"]
    cpus: tuple[int, ...]  # the CPUs that it is bound to; empty: not bound
    chiplet: int | None  # index of its seat's chiplet; None: not bound, or bound to several


class SpreadChange(Record):
    """A moment from which the workers sat on another number of chiplets."""

    t_s: Seconds  # since the database was opened
    spread: Annotated[int, Field(ge=1)]  # the number of chiplets
    reason: str
