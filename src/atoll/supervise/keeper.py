"""The keeper ends what a killed supervisor leaves behind.

    owner (atoll up, atoll bench)
      └─ keeper        own session, subreaper; only waits
           └─ supervisor    subreaper; starts and watches
                └─ atoll-exec → engine processes, their children, their orphans

The death of each is noticed. The owner's closes the control socket. The keeper's closes a pipe.
The supervisor's sends SIGCHLD to the keeper, and its orphans become the keeper's children, also
after setsid and a double fork.
`start_keeper` runs `python -m atoll.supervise.keeper REQUEST CONTROL_FD LOCK_FD`.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import traceback
from pathlib import Path

from atoll.host.local import LocalHost
from atoll.host.reaper import become_subreaper, reap
from atoll.inspect.nics import count_bytes
from atoll.schema.base import parse
from atoll.schema.deployment import Deployment, State
from atoll.supervise import cgroup, records
from atoll.supervise.lastwords import how_it_ended, last_words
from atoll.supervise.request import SUPERVISOR_LOG, Request
from atoll.supervise.supervisor import Supervisor, close_record, first_record
from atoll.supervise.termination import end_descendants

_WATCHED = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}


def main() -> None:
    request_path, control_fd, lock_fd = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    # The engine must inherit neither: it would keep the lock and the socket open.
    os.set_inheritable(control_fd, False)
    os.set_inheritable(lock_fd, False)
    become_subreaper()
    host = LocalHost()
    request = parse(Request, Path(request_path).read_bytes(), where=request_path)
    folder = cgroup.place(host, request.id)
    record = first_record(
        request,
        boot_id=records.boot_id(host),
        cgroup=folder,
        nics=count_bytes(host, request.plan),
    )
    record = record.model_copy(update={"keeper": host.identify(os.getpid())})
    records.write(record)
    control = socket.socket(fileno=control_fd)
    supervisor_end, keeper_end = os.pipe()
    supervisor = os.fork()
    if supervisor == 0:
        os.close(keeper_end)
        _supervise(host, request, record, control, supervisor_end)
    control.close()
    os.close(supervisor_end)
    status = _wait_for(supervisor)
    end_descendants(host, grace_s=request.grace_s, reap=reap)
    cgroup.end(folder, request.id)
    _finish_record(record, status, os.path.join(request.log_dir, SUPERVISOR_LOG))


def _supervise(
    host: LocalHost, request: Request, record: Deployment, control: socket.socket, keeper_pipe: int
) -> None:
    """Run the supervisor in the forked child; never returns."""
    status = 1
    try:
        cgroup.enter(record.cgroup)
        record = record.model_copy(update={"supervisor": host.identify(os.getpid())})
        records.write(record)
        Supervisor(request, record, host=host, control=control, keeper_pipe=keeper_pipe).run()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def _wait_for(supervisor: int) -> int:
    """Wait for the supervisor and return its exit status, negative for a signal. Signals that ask
    the keeper to end are passed on."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    while True:
        # Check before every wait: it may have ended before its signal was blocked.
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == supervisor:
            return os.waitstatus_to_exitcode(status)
        if pid == 0 and signal.sigwait(_WATCHED) != signal.SIGCHLD:
            os.kill(supervisor, signal.SIGTERM)


def _finish_record(first: Deployment, status: int, log: str) -> None:
    """Write the final record."""
    record = records.read(first.name) or first
    died = status != 0 and record.state in (State.STARTING, State.READY)
    if died:
        error = f"the supervisor died ({how_it_ended(status)}); everything was ended"
        if status > 0:  # an error of its own, such as a full disk; a killed one logs nothing
            error += f": {last_words(log)}"
        record = record.model_copy(update={"state": State.FAILED, "error": error})
    close_record(record)  # first, because its folders may be what fills the disk
    if died:
        records.write(record)


if __name__ == "__main__":
    main()
