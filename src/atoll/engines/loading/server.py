"""The server that loads a suite's tables into the cache (see `loading`).

Promises: it dies with this process, and with what it is loading for; its faults are told by the
line of its log that tells most.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from atoll.errors import EngineFailed
from atoll.host.caller import clean_environment
from atoll.host.tied import tied_argv
from atoll.store.paths import run_dir

_START_S = 300.0
_STOP_S = 300.0  # a clean end writes everything that is in memory
_ABORT_S = 10.0
_LOOK_S = 0.1
_GRAVE = ("PANIC", "FATAL", "ERROR")
# How an operating system says it, and how servers pass it on.
FULL = ("No space left on device", "Disk quota exceeded", "is full", "with error 28")


@contextlib.contextmanager
def run_folder(data: Path) -> Iterator[Path]:
    """For socket and configuration of the server on that data directory; gone at the end."""
    # A socket's path ends at 107 bytes. Always the same one, so that the next load takes away what
    # a killed one has left.
    folder = run_dir(f"load-{hashlib.sha256(bytes(data)).hexdigest()[:8]}")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(slots=True)
class Server:
    """A server that loads; `log` has what it says."""

    name: str  # the engine's name in messages
    process: subprocess.Popen[bytes]
    log: Path
    abort: signal.Signals  # ends it at once

    def await_answer(self, answers: Callable[[], bool]) -> None:
        """Raises EngineFailed if it ends instead, or says nothing for minutes."""
        deadline = time.monotonic() + _START_S
        while not answers():
            if self.process.poll() is not None:
                raise self.failure(f"ended with status {self.process.returncode}")
            if time.monotonic() > deadline:
                raise self.failure(f"does not answer within {_START_S:.0f} s")
            time.sleep(_LOOK_S)

    def end(self, number: signal.Signals) -> None:
        """Wait until it has ended in order. Raises EngineFailed if it does not."""
        self.process.send_signal(number)
        try:
            status = self.process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            raise self.failure(f"did not end within {_STOP_S:.0f} s") from None
        if status != 0:
            raise self.failure(f"ended with status {status}")

    def end_at_once(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(self.abort)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(_ABORT_S)
            self.process.kill()

    def failure(self, how: str) -> EngineFailed:
        """With the line of its log that tells most."""
        # 'Aborting' only follows the reason.
        grave = [line for line in _lines_of(self.log, _GRAVE) if "Aborting" not in line]
        said = grave or _lines_of(self.log, ("",)) or ["no message"]
        return EngineFailed(f"the {self.name} that loads {how}: {said[-1]}")


def _lines_of(log: Path, words: Sequence[str]) -> list[str]:
    """Those that have one of the words in them."""
    lines = log.read_text(errors="replace").strip().splitlines()
    return [line.strip() for line in lines if any(word in line for word in words)]


@contextlib.contextmanager
def started(
    name: str,
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    log: Path,
    abort: signal.Signals = signal.SIGKILL,
) -> Iterator[Server]:
    """A server that has gone at the end. `abort` ends it at once, also when we are killed."""
    program, *arguments = argv
    with (
        open(log, "wb") as out,
        subprocess.Popen(
            [*tied_argv(program, by=abort), *arguments],
            env={**clean_environment(), **env},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,  # a Ctrl-C at the terminal is ours to handle
        ) as process,
    ):
        server = Server(name, process, log, abort)
        try:
            yield server
        except EngineFailed as fault:
            # What a client hears of a full disk may be far from it ('checkpoint request failed').
            if full := _lines_of(log, FULL):
                raise EngineFailed(f"{fault}: {full[-1]}") from None
            raise
        finally:
            server.end_at_once()
