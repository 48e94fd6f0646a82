"""A server of this process: it loads the tables of a suite into the cache
(`atoll.engines.loading`), or runs operators (`atoll.engines.placeable`).

It ends when this process ends, and at the end of its context. A fault quotes the line of its log
that says most.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from atoll.errors import DiskFull, EngineFailed
from atoll.host.api import Child, Host
from atoll.host.caller import clean_environment
from atoll.store.files import DISK_FULL
from atoll.store.paths import run_dir

_START_S = 300.0
_STOP_S = 300.0  # a clean end writes everything that is in memory
_ABORT_S = 10.0
_POLL_S = 0.1
_GRAVE = ("PANIC", "FATAL", "ERROR", "Caused by:")
# A full disk in the words of the operating system, and of servers that pass its error on.
_DISK_FULL = (*DISK_FULL, "is full", "with error 28")


@contextlib.contextmanager
def run_folder(data: Path) -> Iterator[Path]:
    """A folder for the socket and the configuration of the server on the data directory `data`;
    it is removed at the end."""
    # The path of a socket ends at 107 bytes. The name is always the same, so that the next load
    # removes what a killed one left.
    folder = run_dir(f"load-{hashlib.sha256(bytes(data)).hexdigest()[:8]}")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(slots=True)
class Server:
    """A server that `started` started."""

    name: str  # the engine's, for messages
    child: Child
    log: Path
    abort: signal.Signals  # ends it at once

    def await_answer(self, answers: Callable[[], bool]) -> None:
        """Wait until `answers()`. Raises EngineFailed if the server ends or takes minutes."""
        deadline = time.monotonic() + _START_S
        while not answers():
            if (status := self.child.poll()) is not None:
                raise self.failure(f"ended with status {status}")
            if time.monotonic() > deadline:
                raise self.failure(f"does not answer within {_START_S:.0f} s")
            time.sleep(_POLL_S)

    def end(self, number: signal.Signals) -> None:
        """Ask the server to end, and wait. Raises EngineFailed if it does not end in order."""
        self.child.signal(number)
        try:
            status = self.child.wait(_STOP_S)
        except TimeoutError:
            raise self.failure(f"did not end within {_STOP_S:.0f} s") from None
        if status != 0:
            raise self.failure(f"ended with status {status}")

    def end_at_once(self) -> None:
        self.child.signal(self.abort)
        try:
            self.child.wait(_ABORT_S)
        except TimeoutError:
            self.child.signal(signal.SIGKILL)
            self.child.wait()

    def failure(self, how: str) -> EngineFailed:
        """The error for a server that failed, with the line of its log that says most."""
        # 'Aborting' only follows the reason.
        grave = [line for line in _lines_of(self.log, _GRAVE) if "Aborting" not in line]
        lines = grave or _lines_of(self.log, ("",)) or ["no message"]
        return EngineFailed(f"the {self.name} {how}: {lines[-1]}")


def _lines_of(log: Path, words: Sequence[str]) -> list[str]:
    """The lines that contain one of the words."""
    lines = log.read_text(errors="replace").strip().splitlines()
    return [line.strip() for line in lines if any(word in line for word in words)]


@contextlib.contextmanager
def started(
    name: str,
    argv: Sequence[str],
    *,
    host: Host,
    env: Mapping[str, str],
    log: Path,
    abort: signal.Signals = signal.SIGKILL,
) -> Iterator[Server]:
    """A server, which is gone at the end; `abort` ends it at once, also if this process is killed.

    Raises DiskFull in place of an EngineFailed if the log of the server speaks of a full disk: a
    client may only hear of 'checkpoint request failed'."""
    log.unlink(missing_ok=True)
    child = host.spawn(argv, env={**clean_environment(), **env}, log=str(log), tied_by=abort)
    server = Server(name, child, log, abort)
    try:
        yield server
    except EngineFailed as fault:
        if full := _lines_of(log, _DISK_FULL):
            raise DiskFull(f"{fault}: {full[-1]}") from None
        raise
    finally:
        server.end_at_once()
