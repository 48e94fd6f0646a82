"""System V shared memory that a killed PostgreSQL leaves behind (shm_overview(7), proc(5) sysvipc).

Such a segment outlives its last process until somebody removes it. PostgreSQL makes one of 56
bytes to recognise a second server on its data, and removes it itself unless it is killed. Which
one it is stands in the lock file of its data directory (PostgreSQL's manual, Database File Layout,
postmaster.pid). Only that very one is removed: a pid alone may have been given anew, and then to
a program whose segment is somebody's data.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Set
from pathlib import Path
from typing import NamedTuple

from atoll.schema.deployment import Deployment

_TABLE = "/proc/sysvipc/shm"
_IPC_RMID = 0
_LOCK_FILE = "postmaster.pid"
_KEY_AND_ID_LINE = 6


class Segment(NamedTuple):
    id: int
    key: int  # as unsigned; the kernel shows it signed
    creator_pid: int


def named_by(lock_file: str) -> Segment | None:
    """The segment in the text of a `postmaster.pid`; None where it names none. Pure."""
    lines = lock_file.split("\n")
    try:
        key, segment = map(int, lines[_KEY_AND_ID_LINE].split())
        return Segment(segment, key & 0xFFFFFFFF, int(lines[0]))
    except (IndexError, ValueError):
        return None


def left_over(table: str, *, named: Set[Segment], uid: int) -> list[int]:
    """Ids of those of the segments `named` that are there, that user's and unattached. Pure."""
    rows = [line.split() for line in table.splitlines()]
    found = []
    for row in rows[1:]:
        entry = dict(zip(rows[0], map(int, row), strict=False))
        segment = Segment(entry["shmid"], entry["key"] & 0xFFFFFFFF, entry["cpid"])
        if segment in named and entry["nattch"] == 0 and entry["uid"] == uid:
            found.append(segment.id)
    return found


def remove(deployment: Deployment) -> None:
    """Remove what the deployment's processes left. They must have ended, in this same boot, and
    its folders must still be there."""
    named = set()
    for folder in {deployment.run_dir, deployment.scratch_dir}:
        for path in Path(folder).glob(f"*/{_LOCK_FILE}"):
            try:
                segment = named_by(path.read_text(errors="replace"))
            except OSError:
                continue  # what cannot be read names none
            if segment is not None:
                named.add(segment)
    if not named:
        return
    try:
        table = Path(_TABLE).read_text()
    except OSError:
        return  # a kernel without System V IPC has none to leave
    for segment_id in left_over(table, named=named, uid=os.getuid()):
        # One that has gone in the meantime is what is wanted, so the outcome does not matter.
        ctypes.CDLL(None).shmctl(segment_id, _IPC_RMID, None)
