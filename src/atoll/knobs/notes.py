"""What became of a switch, for whoever tells the user."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class Kind(Enum):
    TURNED = auto()
    SAME = auto()  # it had the value already
    UNDONE = auto()
    BACK = auto()  # somebody else had put the original back
    FINISHED = auto()  # an interrupted action had come to its end, or was brought there
    TAKEN_BACK = auto()  # a set that was interrupted or refused
    DROPPED = auto()  # of an earlier boot
    FOREIGN = auto()  # somebody else changed it
    UNREADABLE = auto()
    REFUSED = auto()  # by the kernel


@dataclass(frozen=True, slots=True)
class Note:
    kind: Kind
    knob: str
    path: str
    now: str = ""  # what it holds
    before: str = ""  # what it held, or should hold
    original: str = ""
    error: str = ""
