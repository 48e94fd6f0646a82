"""What engines that keep tables themselves share when a suite is loaded into the cache.

Promises: a folder of tables appears under its name whole or not at all (made beside it, brought to
the disk, renamed); two processes at once load once (a file lock); what a killed one has left is
taken away by the next; a full disk is DownloadFailed; the server that loads dies with this process.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from atoll.engines import template_instance
from atoll.engines.base import Data, Progress
from atoll.errors import AtollError, DownloadFailed, EngineFailed
from atoll.host.tied import tied_argv
from atoll.store.files import sync_folder

_MIB = 1 << 20
_START_S = 60.0
_STOP_S = 300.0  # a clean end writes everything that is in memory
_ABORT_S = 10.0
_LOOK_S = 0.1
# How an operating system says it, and how servers pass it on.
_GRAVE = ("PANIC", "FATAL", "ERROR")
_FULL = ("No space left on device", "Disk quota exceeded", "is full", "with error 28")


def loaded_path(template: str, data: Data) -> str:
    """Where the tables lie: beside the engine's empty template, by the content of the data."""
    return f"{template}-{data.name}-{data.checksum[:12]}"


def make_empty(template: str, make: Sequence[str], env: Mapping[str, str]) -> None:
    """The engine's empty template, where no instance has made it yet. Raises EngineFailed."""
    try:
        template_instance.ensure_template(template, make, {**os.environ, **env})
    except template_instance.TemplateFault as fault:
        raise EngineFailed(str(fault)) from None


def make_once(
    target: Path,
    data: Data,
    *,
    needed_bytes: int,
    progress: Progress,
    make: Callable[[Path], None],
) -> None:
    """`make(folder)` makes what `target` shall be, unless that is there.

    Raises DownloadFailed on a full disk, and what `make` raises; `target` is not there then.
    """
    unfinished = target.with_name(f"{target.name}.unfinished")
    try:
        with open(f"{target}.lock", "a", encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                progress(f"waiting for another process that loads {data.name}", None)
                fcntl.flock(lock, fcntl.LOCK_EX)
            if target.is_dir():
                return
            shutil.rmtree(unfinished, ignore_errors=True)  # of one that was killed
            free = shutil.disk_usage(target.parent).free
            if free < needed_bytes:
                raise DownloadFailed(
                    f"{target.parent}: not enough room; {data.name} needs about {needed_bytes:,} "
                    f"bytes there, {free:,} are free; make room, or set XDG_CACHE_HOME to a "
                    "larger disk"
                )
            try:
                make(unfinished)
                template_instance.sync(unfinished)
                os.rename(unfinished, target)
                sync_folder(target.parent)
            except EngineFailed as fault:
                if any(word in str(fault) for word in _FULL):
                    raise DownloadFailed(
                        f"{target.parent}: the disk is full ({fault}); make room, or set "
                        "XDG_CACHE_HOME to a larger disk"
                    ) from None
                raise
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
    except shutil.Error as fault:
        copied, _, why = fault.args[0][0]
        raise DownloadFailed(
            f"{copied}: cannot be copied ({why.partition(': ')[0]}); make room, or set "
            "XDG_CACHE_HOME to a larger disk"
        ) from None
    except OSError as fault:
        raise DownloadFailed(
            f"{fault.filename or target}: {fault.strerror or fault}; make room or mend it there, "
            "or set XDG_CACHE_HOME to another disk"
        ) from None


def parquet_bytes(data: Data) -> int:
    return sum(os.path.getsize(table.path) for table in data.tables)


# ---- the server that loads -----------------------------------------------------------------------


@dataclass(slots=True)
class Server:
    """A server that loads; `log` has what it says."""

    name: str  # 'PostgreSQL'
    process: subprocess.Popen[bytes]
    log: Path
    abort: signal.Signals  # ends it at once

    def await_answer(self, answers: Callable[[], bool]) -> None:
        """Raises EngineFailed if it ends instead, or says nothing for a minute."""
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
        # 'Aborting' is MariaDB's word after the reason.
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
            env={**os.environ, **env},
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
            if full := _lines_of(log, _FULL):
                raise EngineFailed(f"{fault}: {full[-1]}") from None
            raise
        finally:
            server.end_at_once()


# ---- the work ------------------------------------------------------------------------------------


@dataclass(slots=True)
class Meter:
    """How far the tables are; each has one writer."""

    weights: Mapping[str, int]  # table -> how much of the work it is
    done: dict[str, float] = field(default_factory=dict)  # table -> 0 to 1

    @property
    def part(self) -> float:
        total = sum(self.weights.values()) or 1
        return sum(self.weights[table] * part for table, part in self.done.items()) / total


def run_all(
    tasks: Sequence[Callable[[], None]],
    *,
    at_once: int,
    server: Server,
    tell: Callable[[], None],
) -> None:
    """All tasks, so many at a time, the first first. What one raises ends the server, and with
    it what the others wait for."""
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        pending = {pool.submit(task) for task in tasks}
        try:
            while pending:
                over, pending = concurrent.futures.wait(
                    pending, timeout=0.2, return_when=concurrent.futures.FIRST_COMPLETED
                )
                tell()
                for future in over:
                    future.result()
        except BaseException as fault:
            for future in pending:
                future.cancel()
            died = server.process.poll()
            server.end_at_once()
            if died is not None and isinstance(fault, AtollError):
                raise server.failure(f"died ({fault})") from None
            raise
