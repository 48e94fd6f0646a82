"""The line of a dead process's log that says most about why it died."""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import NamedTuple

from atoll.host.api import Host
from atoll.schema.text import plural
from atoll.supervise import cgroup

_TAIL_BYTES = 64 << 10
_LINE_CHARACTERS = 240
_FAULT = re.compile(r"error|exception|fatal|fail|cannot|refus|denied|in use|no such", re.I)
_PORT_TAKEN = re.compile(r"address already in use|BindException|port.{0,20} in use", re.I)
_KILLED = re.compile(r"\bsignal 9\b|\b(?:code|status) 137\b", re.I)
# Guice numbers the faults of a configuration, and ends with how many there are.
_COUNT = re.compile(r"\d+ errors?")
_NUMBERED = re.compile(r"\d+\) ")
# A frame of a stack trace says where a fault is, not what it is.
_FRAME = re.compile(r"^\s*(at |\.\.\. \d+ more|File \")")


class OomKills(NamedTuple):
    """How many processes the OOM killer has ended so far."""

    number: int
    own: bool  # only those of this process's cgroup; otherwise those of the whole machine


def oom_kills(host: Host) -> OomKills:
    """The count of the closest cgroup that has one (memory.events), else the machine's since it
    booted; 0 where the kernel does not count them (before Linux 4.13)."""
    own = cgroup.nearest(host, "memory.events")
    try:
        lines = host.read_text(own or "/proc/vmstat").splitlines()
    except OSError:
        return OomKills(0, own=bool(own))
    counts = (int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
    return OomKills(next(counts, 0), own=bool(own))


def why(status: int, log_line: str, before: OomKills, now: OomKills) -> str:
    """How a process ended, and whether the OOM killer may have done it: SIGKILL ended the process,
    or its log says that SIGKILL ended a child, while the count of OOM kills grew."""
    ended, kills = how_it_ended(status), now.number - before.number
    killed = status == -signal.SIGKILL or _KILLED.search(log_line) is not None
    if kills <= 0 or not killed or now.own is not before.own:
        return ended
    if now.own:
        return f"{ended}: out of memory; the OOM killer acted in its cgroup (see dmesg)"
    return f"{ended}; the OOM killer ended {plural(kills, 'process')} (see dmesg)"


def how_it_ended(status: int) -> str:
    """`status` as `subprocess` gives it: negative for a signal."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"


def tail(log: str | Path) -> str:
    """The end of a log; empty if the log cannot be read."""
    try:
        with open(log, "rb") as source:
            source.seek(0, 2)
            source.seek(max(0, source.tell() - _TAIL_BYTES))
            return source.read().decode(errors="replace")
    except OSError:
        return ""


def telling_line(text: str, summary: str = "") -> str:
    """The last line about a fault, else the last line.

    A log may end with a line that only says that something was wrong: then the line before it, if
    the regular expression `summary` matches that last line; and the first entry of a numbered
    list, if the last line counts the entries.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _FRAME.match(line)]
    if not lines:
        return "it wrote nothing"
    if summary and len(lines) > 1 and re.search(summary, lines[-1]):
        return lines[-2][:_LINE_CHARACTERS]
    faults = [line for line in lines if _FAULT.search(line)]
    line = (faults or lines)[-1]
    if _COUNT.fullmatch(line):
        entries = [line for line in lines if _NUMBERED.match(line)]
        firsts = [line for line in entries if line.startswith("1) ")]
        line = (firsts or entries or [line])[-1]
    return line[:_LINE_CHARACTERS]


def last_words(log: str | Path, summary: str = "") -> str:
    """The telling line of a log, and where the log is."""
    return f"{telling_line(tail(log), summary)} (log: {log})"


def port_was_taken(text: str) -> bool:
    return _PORT_TAKEN.search(text) is not None
