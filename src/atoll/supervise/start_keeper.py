"""The owner's first step: it locks the name, and starts a keeper with the request.

The record is on disk before there is a process. Whichever process is killed from then on, the next
command finds the run folder, which may contain secrets.
"""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

from atoll.errors import UsageError
from atoll.host.api import Child, Host
from atoll.host.caller import environment
from atoll.store.files import write_atomic
from atoll.store.paths import make_folder
from atoll.supervise import records
from atoll.supervise.request import SUPERVISOR_LOG, Request
from atoll.supervise.supervisor import first_record
from atoll.supervise.termination import sweep


def start_keeper(request: Request, host: Host) -> tuple[socket.socket, Child]:
    """Returns the owner's end of the control socket, and the keeper.

    Raises UsageError (the name is in use), NotPermitted and DiskFull, and leaves nothing behind.
    """
    lock = take_name(request.name)
    try:
        stale = records.read(request.name)
        if stale is not None:
            sweep(host, stale, grace_s=request.grace_s)
        return _spawn(request, host, lock)
    finally:
        os.close(lock)


def take_name(name: str) -> int:
    """The descriptor of the name's lock. Raises UsageError if a deployment of that name is up."""
    lock = records.try_lock(name)
    if lock is None:
        raise UsageError(
            f"a deployment named {name!r} is up; end it with 'atoll down {name}', or choose "
            "another --name"
        )
    return lock


def _spawn(request: Request, host: Host, lock: int) -> tuple[socket.socket, Child]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    record = first_record(request, boot_id=records.boot_id(host), cgroup="")
    try:
        records.write(record)
        for folder in (request.run_dir, request.scratch_dir):
            make_folder(Path(folder))
        records.link_run_dir(request.run_dir, request.name)
        for log in Path(request.log_dir).glob("*.log"):
            log.unlink()
        path = os.path.join(request.run_dir, "request.json")
        write_atomic(path, request.model_dump_json(), mode=0o600)
        keeper = host.spawn(
            [
                *(sys.executable, "-m", "atoll.supervise.keeper"),
                *(path, str(theirs.fileno()), str(lock)),
            ],
            env=environment(),
            log=os.path.join(request.log_dir, SUPERVISOR_LOG),
            pass_fds=(theirs.fileno(), lock),
        )
    except BaseException:
        ours.close()
        records.remove_folders(record)
        records.forget(request.name)
        raise
    finally:
        theirs.close()
    return ours, keeper
