"""System V shared memory that killed processes leave behind (shm_overview(7), proc(5) sysvipc).

Such a segment outlives its last process until somebody removes it. PostgreSQL makes one of 56
bytes to recognise a second server on its data, and removes it itself unless it is killed. Here
those go that a deployment's own processes made and that nobody has attached any more.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Set
from pathlib import Path

from atoll.schema.deployment import Deployment

_TABLE = "/proc/sysvipc/shm"
_IPC_RMID = 0


def left_over(table: str, *, makers: Set[int], uid: int, since_unix_s: float) -> list[int]:
    """Ids of unattached segments of that user that the processes `makers` made. Pure.

    A pid may have been given anew, so what is older than the deployment is not its own.
    """
    title, *rows = table.splitlines()
    columns = title.split()
    found = []
    for row in rows:
        entry = dict(zip(columns, map(int, row.split()[: len(columns)]), strict=False))
        if (
            entry["cpid"] in makers
            and entry["nattch"] == 0
            and entry["uid"] == uid
            and entry["ctime"] >= int(since_unix_s)
        ):
            found.append(entry["shmid"])
    return found


def remove(deployment: Deployment) -> None:
    """Remove what the deployment's processes left. They must have ended, in this same boot."""
    makers = {process.id.pid for process in deployment.processes if process.id is not None}
    try:
        table = Path(_TABLE).read_text()
    except OSError:
        return  # a kernel without System V IPC has none to leave
    since = deployment.created_unix_s
    for segment in left_over(table, makers=makers, uid=os.getuid(), since_unix_s=since):
        # One that has gone in the meantime is what is wanted, so the outcome does not matter.
        ctypes.CDLL(None).shmctl(segment, _IPC_RMID, None)
