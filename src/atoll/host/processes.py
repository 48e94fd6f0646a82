"""How Atoll starts a process. No other module imports subprocess.

`run` waits for the end and captures the output. `start` returns at once; the process has a session
of its own, so a Ctrl-C at the terminal does not reach it, and its output goes to a log.
`atoll.host.conversation` talks to one line by line.

This module needs only the standard library: bare scripts use it.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from atoll.host.tied import tied_argv

_TICK_S = 0.25
_GRACE_S = 5.0


@dataclass(frozen=True, slots=True)
class Finished:
    """A command that has ended."""

    returncode: int  # negative: the signal
    stdout: str
    stderr: str


class LocalChild:
    """See `atoll.host.api.Child`."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid = process.pid

    def poll(self) -> int | None:
        return self._process.poll()

    def wait(self, timeout_s: float | None = None) -> int:
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"still runs after {timeout_s:g} s") from None

    def signal(self, number: int) -> None:
        self._process.send_signal(number)


def run(
    argv: Sequence[str],
    *,
    timeout_s: float | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    tied: bool = False,
    tick: Callable[[], None] | None = None,
) -> Finished:
    """See `atoll.host.api.Host.run`."""
    started_s = time.monotonic()
    # Memory and not pipes: a program that leaves a process behind would hold a pipe open.
    with _memory_file() as out, _memory_file() as err:
        process = subprocess.Popen(
            [*(tied_argv(argv[0]) if tied else argv[:1]), *argv[1:]],
            env=None if env is None else dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
        )
        try:
            while not _has_ended(process, timeout_s if tick is None else _TICK_S):
                if tick is None or (timeout_s and time.monotonic() - started_s >= timeout_s):
                    raise TimeoutError(f"{argv[0]}: no end within {timeout_s:g} s")
                tick()
        except BaseException:
            _end(process)
            raise
        return Finished(process.wait(), _text(out), _text(err))


def start(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    log: str,
    cwd: str | None = None,
    tied_by: int | None = None,
    pass_fds: Sequence[int] = (),
) -> LocalChild:
    """See `atoll.host.api.Host.spawn`."""
    program = argv[:1] if tied_by is None else tied_argv(argv[0], by=tied_by)
    with open(log, "ab") as output:
        return LocalChild(
            subprocess.Popen(
                [*program, *argv[1:]],
                env=dict(env),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=pass_fds,
                start_new_session=True,
            )
        )


def _memory_file() -> BinaryIO:
    return open(os.memfd_create("output"), "w+b")


def _text(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _has_ended(process: subprocess.Popen[bytes], timeout_s: float | None) -> bool:
    """Whether the process has ended, at once or within the time. (Popen.wait would only look every
    50 ms.)"""
    descriptor = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(None if timeout_s is None else timeout_s * 1000))
    finally:
        os.close(descriptor)


def _end(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM, and SIGKILL for a process that does not heed it."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE_S)
    process.kill()
    process.wait()
