"""The shared memory that a killed PostgreSQL leaves behind.

PostgreSQL creates a System V segment of 56 bytes to recognise a second server on its data, and
removes it unless it is killed. The lock file of the data directory names the segment (PostgreSQL's
manual, Database File Layout, postmaster.pid).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from atoll.host.shared_memory import Segment, remove_unattached

_LOCK_FILE = "postmaster.pid"
_KEY_AND_ID_LINE = 6


def named_by(lock_file: str) -> Segment | None:
    """The segment that the text of a `postmaster.pid` names, if it names one. Pure."""
    lines = lock_file.split("\n")
    try:
        key, segment = map(int, lines[_KEY_AND_ID_LINE].split())
        return Segment(segment, key & 0xFFFFFFFF, int(lines[0]))
    except (IndexError, ValueError):
        return None


def remove_segments(folders: Sequence[Path]) -> None:
    """Remove the segments that the data directories in these folders name."""
    named = set()
    for folder in folders:
        for path in folder.glob(f"*/{_LOCK_FILE}"):
            try:
                segment = named_by(path.read_text(errors="replace"))
            except OSError:
                continue  # an unreadable file names no segment
            if segment is not None:
                named.add(segment)
    if named:
        remove_unattached(named)
