"""Ending deployments from outside, and clearing away what killed supervisors left on disk."""

from __future__ import annotations

import os
import signal

from atoll.errors import EngineFailed, UsageError
from atoll.host.api import Host
from atoll.schema.deployment import Deployment, ProcessId, State
from atoll.supervise import records
from atoll.supervise.ending import sweep

_POLL_S = 0.05
# How long a supervisor, then a keeper, may take to end everything before it is killed. Above
# any grace between SIGTERM and SIGKILL that a deployment has.
_PATIENCE_S = 20.0
_SWEEP_GRACE_S = 2.0


def down(name: str, host: Host) -> None:
    """End the deployment, all of it; returns when it is gone. Raises UsageError, EngineFailed."""
    record = records.read(name) if name in records.names() else None
    if record is None:
        up = ", ".join(records.names()) or "nothing is up"
        raise UsageError(f"no deployment is named {name!r} (known: {up})")
    release(name, record.id, host)


def release(name: str, identity: str, host: Host) -> None:
    """Ask the supervisor to end the deployment `identity`, wait until it is gone, forget it.

    Who does not go in time is killed: the supervisor, so that the keeper ends everything,
    then the keeper itself.
    """
    started_s = host.monotonic()
    sent: set[ProcessId] = set()
    while (lock := records.try_lock(name)) is None:
        record = records.read(name)
        if record is not None and record.id != identity:
            return  # ours is gone, and its name has been taken anew
        waited_s = host.monotonic() - started_s
        if record is not None:
            _urge(record, host, sent, waited_s)
        if waited_s > 3 * _PATIENCE_S:
            raise EngineFailed(f"{name}: its keeper does not end; see {records.logs(name)}")
        host.sleep(_POLL_S)
    try:
        record = records.read(name)
        if record is not None and record.id == identity:
            sweep(host, record, grace_s=_SWEEP_GRACE_S)
            records.forget(name)
    finally:
        os.close(lock)


def _urge(record: Deployment, host: Host, sent: set[ProcessId], waited_s: float) -> None:
    supervisor, keeper = record.supervisor, record.keeper
    if supervisor is not None and supervisor not in sent:
        host.signal(supervisor, signal.SIGTERM)
        sent.add(supervisor)
    if supervisor is not None and waited_s > _PATIENCE_S:
        host.signal(supervisor, signal.SIGKILL)
    if keeper is not None and waited_s > 2 * _PATIENCE_S:
        host.signal(keeper, signal.SIGKILL)


def listing(host: Host) -> tuple[list[Deployment], list[str]]:
    """All deployments with a record, and one line for each that had to be cleared away.

    A record without a living supervisor or keeper is stale: after a reboot it is forgotten;
    else what is left of its processes is ended and it is listed as failed.
    """
    found, notices = [], []
    for name in records.names():
        try:
            record = records.read(name)
        except UsageError as fault:
            notices.append(str(fault))
            continue
        if record is not None and is_stale(record, host):
            record, notice = _clear(record, host)
            notices += notice
        if record is not None:
            found.append(record)
    return found, notices


def living(name: str, host: Host) -> Deployment | None:
    """The deployment of that name if it is up; clears nothing away."""
    if name not in records.names():
        return None
    record = records.read(name)
    if record is None or record.state is State.FAILED or is_stale(record, host):
        return None
    return record


def is_stale(record: Deployment, host: Host) -> bool:
    """Whether the record says that something runs while nobody answers for it."""
    if record.boot_id != records.boot_id(host):
        return True
    if record.state is State.FAILED:
        return False
    responsible = (record.supervisor, record.keeper)
    return not any(
        process is not None and host.identify(process.pid) == process for process in responsible
    )


def _clear(record: Deployment, host: Host) -> tuple[Deployment | None, list[str]]:
    lock = records.try_lock(record.name)
    if lock is None:
        return record, []  # an `up` of this name has just begun
    try:
        # Anew: before the lock was ours it may have ended as it should.
        now = records.read(record.name)
        if now is None or not is_stale(now, host):
            return now, []
        record = now
        ended = sweep(host, record, grace_s=_SWEEP_GRACE_S)
        if record.boot_id != records.boot_id(host):
            records.forget(record.name)
            return None, [f"{record.name}: was up before the machine was restarted; forgotten"]
        error = f"its supervisor and keeper were killed; {ended} processes left over were ended"
        record = record.model_copy(update={"state": State.FAILED, "error": error})
        records.write(record)
        return record, [f"{record.name}: {error}"]
    finally:
        os.close(lock)
