"""Ends deployments of other processes, and removes what killed supervisors left on disk."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable

from atoll.errors import EngineFailed, UsageError
from atoll.host.api import Host
from atoll.schema.deployment import Deployment, ProcessId, State
from atoll.schema.text import plural
from atoll.supervise import records
from atoll.supervise.termination import sweep

_POLL_S = 0.05
# The time that a supervisor, then a keeper, has to end everything before it is killed. It is longer
# than any deployment's grace period between SIGTERM and SIGKILL.
_WAIT_S = 20.0
_SWEEP_GRACE_S = 2.0


def down(name: str, host: Host) -> None:
    """End the whole deployment; returns when it is gone. Raises UsageError, EngineFailed."""
    record = records.read(name) if name in records.names() else None
    if record is None:
        raise no_deployment(name, records.names())
    release(name, record.id, host)


def no_deployment(name: str, known: Iterable[str]) -> UsageError:
    """The error for a name that no deployment in `known` has."""
    up = sorted(known)
    return UsageError(
        f"no deployment {name!r}; {', '.join(up) or 'none'} {'are' if len(up) > 1 else 'is'} up"
    )


def release(name: str, identity: str, host: Host) -> None:
    """Ask the supervisor to end the deployment `identity`, wait until it is gone, and remove its
    record.

    A supervisor that does not end in time is killed, so that the keeper ends everything; then the
    keeper is killed. Raises EngineFailed.
    """
    started_s = host.monotonic()
    sent: set[ProcessId] = set()
    while (lock := records.try_lock(name)) is None:
        record = records.read(name)
        if record is not None and record.id != identity:
            return  # it is gone, and another deployment has the name
        waited_s = host.monotonic() - started_s
        if record is not None:
            _urge(record, host, sent, waited_s)
        if waited_s > 3 * _WAIT_S:
            raise EngineFailed(f"{name}: its keeper process did not exit; see {records.logs(name)}")
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
    if supervisor is not None and waited_s > _WAIT_S:
        host.signal(supervisor, signal.SIGKILL)
    if keeper is not None and waited_s > 2 * _WAIT_S:
        host.signal(keeper, signal.SIGKILL)


def listing(host: Host) -> tuple[list[Deployment], list[str]]:
    """All deployments with a record, and a line for each stale one.

    A record without a living supervisor or keeper is stale. After a reboot it is removed;
    otherwise its remaining processes are ended, and it is listed as failed.
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
    """The deployment of that name if it is up; changes nothing."""
    if name not in records.names():
        return None
    record = records.read(name)
    if record is None or record.state is State.FAILED or is_stale(record, host):
        return None
    return record


def is_stale(record: Deployment, host: Host) -> bool:
    """Whether the record claims a running deployment that has no supervisor and no keeper."""
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
        # Read it again: it may have ended regularly before this process had the lock.
        now = records.read(record.name)
        if now is None or not is_stale(now, host):
            return now, []
        record = now
        ended = sweep(host, record, grace_s=_SWEEP_GRACE_S)
        if record.boot_id != records.boot_id(host):
            records.forget(record.name)
            return None, [
                f"{record.name}: was up before the machine was restarted; its record was removed"
            ]
        error = f"its supervisor and keeper were killed; {plural(ended, 'remaining process')} ended"
        record = record.model_copy(update={"state": State.FAILED, "error": error})
        records.write(record)
        return record, [f"{record.name}: {error}"]
    finally:
        os.close(lock)
