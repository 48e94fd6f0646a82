"""Runs one command to its end, measures it, and leaves none of its processes behind.

The caller must be a subreaper (`atoll.host.reaper`) without threads and without other children, so
that all of its descendants are the command's. This module needs only the standard library: what the
caller has in memory when it forks is the least peak that a command can show (getrusage(2): the
kernel carries the peak over exec).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from atoll.host.procfs import Stat, parse_stat

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_SETTLE_S = 0.1  # the time that a child of an ended command gets to end too
_LOOK_S = 0.1  # how often the size of the output is looked at
_GRACE_S = 1.0
_POLL_S = 0.01
_EXEC_FAILED = 127
_PREFERRED_VICTIM = "1000"  # of the kernel when memory is short (proc(5), oom_score_adj)


@dataclass(frozen=True, slots=True)
class Measurement:
    status: int  # negative: the signal
    seconds: float
    cpu_s: float
    rss_bytes: int  # peak of its largest process
    left: tuple[str, ...]  # names of processes that it left running; they were ended


class Stopped(Exception):
    """The caller was asked to stop; the command was ended."""


class TooMuchOutput(Exception):
    """The command was ended before its output filled the memory."""


def run_measured(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    descriptors: tuple[int, int, int],
    limit_s: float,
    most_bytes: int,
    stop_fd: int,
) -> Measurement:
    """`descriptors`: the command's stdin, and files for its stdout and stderr, of `most_bytes` at
    most each. `stop_fd`: when it can be read, the command is ended. Raises TimeoutError, Stopped,
    TooMuchOutput."""
    started = time.monotonic()
    pid = os.fork()
    if pid == 0:
        _become(argv, env, descriptors)
    try:
        for _ in _looks(pid, started + limit_s, stop_fd):
            if max(os.fstat(file).st_size for file in descriptors[1:]) > most_bytes:
                raise TooMuchOutput
        seconds = time.monotonic() - started
    except BaseException:
        end_descendants()
        raise
    _, status, used = os.wait4(pid, 0)
    left = _still_there()
    end_descendants()
    return Measurement(
        status=os.waitstatus_to_exitcode(status),
        seconds=seconds,
        cpu_s=used.ru_utime + used.ru_stime,
        rss_bytes=used.ru_maxrss * 1024,
        left=left,
    )


def end_descendants(spared: Collection[int] = ()) -> None:
    """End and reap every descendant of this process: SIGTERM, and SIGKILL after a second. One of
    another user, such as what sudo has started, is left."""
    late_s, asked, left = time.monotonic() + _GRACE_S, set[int](), set(spared)
    while below := descendants().keys() - left:
        late = time.monotonic() >= late_s
        for pid in below:
            if late or pid not in asked:
                try:
                    os.kill(pid, signal.SIGKILL if late else signal.SIGTERM)
                except ProcessLookupError:
                    pass
                except PermissionError:
                    left.add(pid)
            asked.add(pid)
        _reap()
        time.sleep(_POLL_S)
    _reap()


def descendants() -> dict[int, Stat]:
    """The living processes below this one."""
    table = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError), open(f"/proc/{name}/stat") as file:
                table[int(name)] = parse_stat(file.read())
    below: dict[int, Stat] = {}
    parents = {os.getpid()}
    while parents:
        found = {pid: stat for pid, stat in table.items() if stat.parent in parents}
        below |= found
        parents = set(found)
    return {pid: stat for pid, stat in below.items() if stat.lives}


def _become(argv: Sequence[str], env: Mapping[str, str], descriptors: tuple[int, int, int]) -> None:
    """In the child: never returns."""
    try:
        for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python
            signal.signal(ignored, signal.SIG_DFL)
        os.setsid()  # so that a signal of the terminal does not reach it
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
            file.write(_PREFERRED_VICTIM)
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        os.execve(argv[0], list(argv), dict(env))
    finally:
        os._exit(_EXEC_FAILED)


def _looks(pid: int, until: float, stop_fd: int) -> Iterator[None]:
    """Yields now and then until the child has ended. Raises Stopped, TimeoutError."""
    descriptor = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.register(stop_fd, select.POLLIN)
        while True:
            left_s = until - time.monotonic()
            ready = [ready for ready, _ in poll.poll(1000 * max(0.0, min(_LOOK_S, left_s)))]
            if stop_fd in ready:
                raise Stopped
            if ready:
                return
            if left_s <= 0:
                raise TimeoutError
            yield
    finally:
        os.close(descriptor)


def _still_there() -> tuple[str, ...]:
    """The names of the descendants that do not end by themselves."""
    until = time.monotonic() + _SETTLE_S
    while (below := descendants()) and time.monotonic() < until:
        _reap()
        time.sleep(_POLL_S)
    return tuple(sorted({stat.comm for stat in below.values()}))


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
