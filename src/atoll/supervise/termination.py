"""Ends a set of processes: SIGTERM, a grace period, then SIGKILL until none is left."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from atoll.host.api import Host
from atoll.inspect.processes import descendants, marked, process_table
from atoll.schema.deployment import Deployment, ProcessId
from atoll.supervise import cgroup, records
from atoll.supervise.leftovers import remove_leftovers

_POLL_S = 0.02
_POLL_MAX_S = 0.2


def end_all(
    host: Host,
    find: Callable[[], list[ProcessId]],
    *,
    grace_s: float,
    reap: Callable[[], None] = lambda: None,
) -> int:
    """End what `find` finds, until it finds nothing. Returns the number of processes.

    `find` is called again and again, because a process may have started others in between.
    """
    asked: set[ProcessId] = set()
    deadline = host.monotonic() + grace_s
    pause_s = _POLL_S
    while found := find():
        late = host.monotonic() >= deadline
        for process in found:
            if late:
                host.signal(process, signal.SIGKILL)
            elif process not in asked:
                host.signal(process, signal.SIGTERM)
            asked.add(process)
        reap()
        host.sleep(pause_s)
        reap()
        pause_s = min(pause_s * 1.5, _POLL_MAX_S)
    return len(asked)


def end_descendants(host: Host, *, grace_s: float, reap: Callable[[], None]) -> int:
    """End every descendant of this process, which must be a subreaper."""
    return end_all(
        host,
        lambda: descendants(process_table(host), os.getpid()),
        grace_s=grace_s,
        reap=reap,
    )


def sweep(host: Host, deployment: Deployment, *, grace_s: float) -> int:
    """End what a killed supervisor and a killed keeper left behind, and remove the folders.

    The caller must hold the deployment's lock. The record stays. Returns the number of processes
    that were ended.
    """
    ended = 0
    # After a reboot no process is left, and a cgroup of that name would belong to another one.
    if deployment.boot_id == records.boot_id(host):
        mark = mark_of(deployment.name, deployment.id)
        # The kernel shows resolved paths; a cache or a runtime folder is often a link.
        folders = [os.path.realpath(folder) for folder in records.own_folders(deployment)]
        ended = end_all(
            host,
            lambda: [
                process
                for process in marked(host, mark, uid=host.user_id(), folders=folders)
                if process.pid != os.getpid()
            ],
            grace_s=grace_s,
        )
        cgroup.end(deployment.cgroup, deployment.id)
        remove_leftovers(deployment)
    records.remove_folders(deployment)
    return ended


def mark_of(name: str, identity: str) -> str:
    """The value of ATOLL_DEPLOYMENT for the processes of a deployment."""
    return f"{name}:{identity}"
