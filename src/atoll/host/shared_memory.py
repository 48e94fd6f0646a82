"""System V shared memory segments (shm_overview(7), proc(5) sysvipc).

A segment outlives its last process until it is removed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Set
from pathlib import Path
from typing import NamedTuple

from atoll.host.caller import user_id

_TABLE = "/proc/sysvipc/shm"
_IPC_RMID = 0


class Segment(NamedTuple):
    id: int
    key: int  # unsigned; the kernel shows it signed
    creator_pid: int


def unattached(table: str, *, named: Set[Segment], uid: int) -> list[int]:
    """The ids of those segments `named` that exist, belong to that user, and are unattached. Pure.

    All three fields of a segment must match: the kernel may reuse a pid for a program whose
    segment holds somebody's data.
    """
    rows = [line.split() for line in table.splitlines()]
    found = []
    for row in rows[1:]:
        entry = dict(zip(rows[0], map(int, row), strict=False))
        segment = Segment(entry["shmid"], entry["key"] & 0xFFFFFFFF, entry["cpid"])
        if segment in named and entry["nattch"] == 0 and entry["uid"] == uid:
            found.append(segment.id)
    return found


def remove_unattached(named: Set[Segment]) -> None:
    """Remove those of the segments that belong to this user and that no process has attached."""
    try:
        table = Path(_TABLE).read_text()
    except OSError:
        return  # this kernel has no System V IPC
    for segment_id in unattached(table, named=named, uid=user_id()):
        # The call fails if the segment has gone in the meantime, which is as good.
        ctypes.CDLL(None).shmctl(segment_id, _IPC_RMID, None)
