"""The process table: descendants of a process, and which processes carry a deployment's mark.

There are two ways to find a deployment's processes. While its supervisor or keeper lives, they are
its descendants; the list is complete because both are subreapers. After both were killed, they are
the processes of this user that were started with ATOLL_DEPLOYMENT=NAME:ID in the environment.
A process that has overwritten its environment, as servers do that set their title, counts if it
works in one of the deployment's folders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from atoll.host.api import Host
from atoll.host.procfs import Stat, parse_stat, status_field
from atoll.schema.deployment import Deployment, ProcessId, ProcessRecord

MARK = "ATOLL_DEPLOYMENT"
PROCESS_MARK = "ATOLL_PROCESS"

# The errors of reading /proc/PID/... if a process has just ended or belongs to another user.
GONE = (FileNotFoundError, ProcessLookupError, PermissionError)


def process_table(host: Host) -> dict[int, Stat]:
    """Every process, zombies included."""
    table = {}
    for name in host.list_dir("/proc"):
        if name.isdigit():
            try:
                table[int(name)] = parse_stat(host.read_text(f"/proc/{name}/stat"))
            except GONE:
                continue
    return table


def descendants(table: Mapping[int, Stat], root: int) -> list[ProcessId]:
    """The living processes below `root` (itself excluded), parents first."""
    children: dict[int, list[int]] = {}
    for pid, stat in table.items():
        children.setdefault(stat.parent, []).append(pid)
    below = []
    queue = sorted(children.get(root, ()))
    while queue:
        pid = queue.pop(0)
        queue.extend(sorted(children.get(pid, ())))
        if table[pid].lives:
            below.append(ProcessId(pid=pid, start_ticks=table[pid].start_ticks))
    return below


def environment(host: Host, pid: int) -> dict[str, str]:
    """The environment the process was started with; empty if it is gone or may not be read."""
    try:
        text = host.read_text(f"/proc/{pid}/environ")
    except GONE:
        return {}
    pairs = (entry.partition("=") for entry in text.split("\0") if "=" in entry)
    return {key: value for key, _, value in pairs}


def attribute(
    host: Host, deployment: Deployment, table: Mapping[int, Stat]
) -> dict[int, ProcessRecord]:
    """Every living process below the supervisor, with the planned process that it comes from.

    The link is descent; for a process whose parent has died, the mark in its environment.
    """
    assert deployment.supervisor is not None
    by_id = {process.id: process for process in deployment.processes if process.id}
    by_name = {process.spec.name: process for process in deployment.processes}
    origins: dict[int, ProcessRecord] = {}
    for process in descendants(table, deployment.supervisor.pid):  # parents come first
        origin = (
            by_id.get(process)
            or origins.get(table[process.pid].parent)
            or by_name.get(environment(host, process.pid).get(PROCESS_MARK, ""))
        )
        if origin is not None:
            origins[process.pid] = origin
    return origins


def marked(host: Host, mark: str, *, uid: int, folders: Sequence[str] = ()) -> list[ProcessId]:
    """The living processes of user `uid` that carry ATOLL_DEPLOYMENT=`mark`, or that have no
    environment and work in one of `folders`. (A user's shell in that folder has an environment.)"""
    processes = []
    for pid, stat in process_table(host).items():
        if not stat.lives:
            continue
        environ = environment(host, pid)
        if environ.get(MARK) != mark and (environ or not _works_in(host, pid, folders)):
            continue
        try:
            owner = status_field(host.read_text(f"/proc/{pid}/status"), "Uid").split()
        except GONE:
            continue
        if owner and int(owner[0]) == uid:
            processes.append(ProcessId(pid=pid, start_ticks=stat.start_ticks))
    return processes


def _works_in(host: Host, pid: int, folders: Sequence[str]) -> bool:
    try:
        place = host.read_link(f"/proc/{pid}/cwd") if folders else ""
    except GONE:
        return False
    return any(f"{place}/".startswith(f"{folder}/") for folder in folders)
