"""The line of a dead process's log that says most about why it died."""

from __future__ import annotations

import re
import signal
from pathlib import Path

from atoll.host.api import Host

_TAIL_BYTES = 64 << 10
_LINE_CHARACTERS = 240
_TELLING = re.compile(r"error|exception|fatal|fail|cannot|refus|denied|in use|no such", re.I)
_PORT_TAKEN = re.compile(r"address already in use|BindException|port.{0,20} in use", re.I)
_KILLED = re.compile(r"\bsignal 9\b|\b(?:code|status) 137\b", re.I)
# Guice numbers what is wrong with a configuration, and ends with their number.
_COUNT = re.compile(r"\d+ errors?")
_NUMBERED = re.compile(r"\d+\) ")
# PostgreSQL and MariaDB end with this, and the line before says what is wrong.
_SUMMARY = re.compile(r"configuration file .* contains errors$|\[ERROR\] Aborting$")
# Frames of a stack trace say where, not what.
_FRAME = re.compile(r"^\s*(at |\.\.\. \d+ more|File \")")


def oom_kills(host: Host) -> int:
    """How many processes the kernel has killed for want of memory since it booted; 0 where it does
    not tell (before Linux 4.13)."""
    try:
        lines = host.read_text("/proc/vmstat").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)


def was_killed(status: int, words: str) -> bool:
    """Whether it was killed with SIGKILL, or says that a process of its own was."""
    return status == -signal.SIGKILL or _KILLED.search(words) is not None


def how_it_ended(status: int) -> str:
    """`status` as of subprocess: negative for a signal."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"


def tail(log: str | Path) -> str:
    """The end of a log; empty where it cannot be read."""
    try:
        with open(log, "rb") as source:
            source.seek(0, 2)
            source.seek(max(0, source.tell() - _TAIL_BYTES))
            return source.read().decode(errors="replace")
    except OSError:
        return ""


def telling_line(text: str) -> str:
    """The last line that speaks of an error, else the last line; of a numbered list that is only
    counted there, the first."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _FRAME.match(line)]
    if not lines:
        return "it wrote nothing"
    if len(lines) > 1 and _SUMMARY.search(lines[-1]):
        return lines[-2][:_LINE_CHARACTERS]
    spoken = [line for line in lines if _TELLING.search(line)]
    words = (spoken or lines)[-1]
    if _COUNT.fullmatch(words):
        listed = [line for line in lines if _NUMBERED.match(line)]
        firsts = [line for line in listed if line.startswith("1) ")]
        words = (firsts or listed or [words])[-1]
    return words[:_LINE_CHARACTERS]


def last_words(log: str | Path) -> str:
    return f"{telling_line(tail(log))} (log: {log})"


def port_was_taken(text: str) -> bool:
    return _PORT_TAKEN.search(text) is not None
