"""How Atoll starts a process. No other module imports subprocess.

`run` waits for the end and captures the output. `start` returns at once; the process has a session
of its own, so a Ctrl-C at the terminal does not reach it, and its output goes to a log.
`atoll.host.conversation` talks to one line by line.

This module needs only the standard library: bare scripts use it.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

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
    pause_s = timeout_s if tick is None else _TICK_S
    with subprocess.Popen(
        [*(tied_argv(argv[0]) if tied else argv[:1]), *argv[1:]],
        env=None if env is None else dict(env),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    out, err = process.communicate(timeout=pause_s)
                    return Finished(process.returncode, out, err)
                if timeout_s is not None and time.monotonic() - started_s >= timeout_s:
                    raise TimeoutError(f"{argv[0]}: no end within {timeout_s:g} s")
                if tick is not None:
                    tick()
        except BaseException:
            _end(process)
            raise


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


def _end(process: subprocess.Popen[str]) -> None:
    """SIGTERM, and SIGKILL for a process that does not heed it."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE_S)
    process.kill()
