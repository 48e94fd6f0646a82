"""Parses /proc/PID/stat and /proc/PID/status (proc(5)). Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

_TICKS_PER_S = 100  # USER_HZ, a constant of the kernel's interface on x86-64 and aarch64


@dataclass(frozen=True, slots=True)
class Stat:
    """The fields that Atoll needs of /proc/PID/stat or /proc/PID/task/TID/stat."""

    comm: str
    state: str
    parent: int
    threads: int  # of the process, including a main thread that has ended
    start_ticks: int  # clock ticks after boot
    last_cpu: int
    cpu_ticks: int  # user and system time
    reaped_ticks: int  # CPU time of children that it has waited for

    @property
    def cpu_s(self) -> float:
        return self.cpu_ticks / _TICKS_PER_S

    @property
    def ended(self) -> bool:
        """Whether this thread has ended."""
        return self.state in "ZX"

    @property
    def lives(self) -> bool:
        """Whether the process still has CPU time, memory or sockets. A zombie has none of them,
        unless only its main thread has ended."""
        return not self.ended or self.threads > 1


def parse_stat(text: str) -> Stat:
    """Fields are counted from the last parenthesis, because the name may contain some."""
    opening, closing = text.index("("), text.rindex(")")
    fields = text[closing + 2 :].split()  # fields[0] is field 3 of the manual, the state
    return Stat(
        comm=text[opening + 1 : closing],
        state=fields[0],
        parent=int(fields[1]),
        threads=int(fields[17]),
        start_ticks=int(fields[19]),
        last_cpu=int(fields[36]),
        cpu_ticks=int(fields[11]) + int(fields[12]),
        reaped_ticks=int(fields[13]) + int(fields[14]),
    )


class Ran(NamedTuple):
    """What a thread did, from its stat."""

    ended: bool
    cpu_s: float
    last_cpu: int


def parse_ran(stat: bytes) -> Ran:
    """As `parse_stat`, of three fields: for thousands of threads it takes a fifth of the time."""
    fields = stat[stat.rindex(b")") + 2 :].split(None, 37)
    ticks = int(fields[11]) + int(fields[12])
    return Ran(fields[0] in (b"Z", b"X"), ticks / _TICKS_PER_S, int(fields[36]))


def status_field(text: str, name: str) -> str:
    """A field of /proc/PID/status; empty if this kernel does not have the field."""
    for line in text.split("\n"):  # splitlines() would split a thread's name at a form feed
        key, _, value = line.partition(":")
        if key == name:
            return value.strip()
    return ""
