"""What happened to a switch, for the report to the user."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class Kind(Enum):
    TURNED = auto()
    SAME = auto()  # it already had the value
    UNDONE = auto()
    BACK = auto()  # another program had restored the original
    FINISHED = auto()  # an interrupted action was complete, or was completed
    TAKEN_BACK = auto()  # a set that was interrupted or refused
    DROPPED = auto()  # of an earlier boot
    FOREIGN = auto()  # another program changed it
    UNREADABLE = auto()
    REFUSED = auto()  # by the kernel


@dataclass(frozen=True, slots=True)
class Note:
    kind: Kind
    knob: str
    path: str
    now: str = ""  # its present value
    before: str = ""  # its value before, or the value it should have
    original: str = ""
    error: str = ""
