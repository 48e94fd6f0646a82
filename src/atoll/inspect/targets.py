"""Finds the processes that a user names by pid or by program."""

from __future__ import annotations

from atoll.errors import NotPermitted, ProcessGone, UsageError
from atoll.host.api import Host
from atoll.host.procfs import status_field
from atoll.inspect.processes import GONE, process_table
from atoll.schema.text import plural


def find_processes(host: Host, target: str, *, uid: int) -> list[int]:
    """The pids that `target` names: a number, or the name of running processes.

    A name matches comm or the last part of argv[0]. Root sees all users' processes, others only
    their own. Raises UsageError if no process matches, NotPermitted if this user may inspect none
    of those that match.
    """
    if not target:
        raise UsageError("name a process: a pid, a deployment or a program")
    if target.isascii() and target.isdecimal():
        return [_by_pid(host, int(target))]
    pids = [pid for pid in _by_name(host, target) if uid in (0, owner(host, pid))]
    if not pids:
        others = _by_name(host, target)
        if others:
            raise NotPermitted(
                f"{target}: {plural(len(others), 'process')} of that name, all of other users; "
                "run as root (sudo)"
            )
        raise UsageError(
            f"{target}: no deployment and no running process has that name; see 'atoll ps', ps(1)"
        )
    return pids


def refuse_foreign(host: Host, pid: int, *, uid: int) -> None:
    """Raises NotPermitted if the kernel would hide most of the process (ptrace(2), access mode):
    another user's process, or one of this user's with raised or dropped privileges."""
    try:
        host.read_link(f"/proc/{pid}/exe")
    except PermissionError:
        if uid == 0:  # root without CAP_SYS_PTRACE or a capability of the process
            raise NotPermitted(
                f"process {pid} has capabilities that this root lacks; run outside of the "
                "container or sandbox"
            ) from None
        whose = "belongs to another user or has protected itself"
        raise NotPermitted(f"process {pid} {whose}; run as root (sudo)") from None
    except OSError:
        return  # a kernel thread has no program; a process that ended is reported later


def owner(host: Host, pid: int) -> int | None:
    """The uid of the process's user; None if the process is gone."""
    try:
        fields = status_field(host.read_text(f"/proc/{pid}/status"), "Uid").split()
    except GONE:
        return None
    return int(fields[0]) if fields else None


def _by_pid(host: Host, pid: int) -> int:
    try:
        status = host.read_text(f"/proc/{pid}/status")
    except (FileNotFoundError, ProcessLookupError):
        raise ProcessGone(f"no process has the pid {pid}") from None
    leader = status_field(status, "Tgid")
    if leader and int(leader) != pid:
        raise UsageError(f"{pid} is a thread of process {leader}; inspect {leader}")
    return pid


def _by_name(host: Host, name: str) -> list[int]:
    """Living processes of that name, except this one."""
    pids = []
    own = host.read_link("/proc/self")
    for pid, stat in sorted(process_table(host).items()):
        if stat.lives and str(pid) != own and name in (stat.comm, _program(host, pid)):
            pids.append(pid)
    return pids


def _program(host: Host, pid: int) -> str:
    """'server' of '/usr/lib/engine/bin/server -D ...'."""
    try:
        first = host.read_text(f"/proc/{pid}/cmdline").partition("\0")[0]
    except GONE:
        return ""
    return first.rpartition("/")[2].lstrip("-")
