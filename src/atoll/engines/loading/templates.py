"""What engines that keep tables themselves share when a suite is loaded into the cache.

Promises: a folder of tables appears under its name whole or not at all (made beside it, brought to
the disk, renamed); two processes at once load once (a file lock); what a killed one has left is
taken away by the next; a full disk is DownloadFailed.
"""

from __future__ import annotations

import concurrent.futures
import fcntl
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from atoll.engines.api import Data, Progress, Table
from atoll.engines.loading import instance as template_instance
from atoll.engines.loading.parquet_text import rows_of
from atoll.engines.loading.server import FULL, Server
from atoll.errors import AtollError, DownloadFailed, EngineFailed
from atoll.host.caller import clean_environment
from atoll.host.tied import tied_argv
from atoll.store.files import sync_folder

# One more with every change to what a load leaves behind (keys, indexes, statistics, settings):
# then no template of before is taken for one of now.
_RECIPE = 2


def loaded_path(template: str, data: Data) -> str:
    """Where the tables lie: beside the engine's empty template, by the content of the data and by
    how they are loaded."""
    return f"{template}-{data.name}-{data.checksum[:12]}-{_RECIPE}"


def make_empty(template: str, make: Sequence[str], env: Mapping[str, str]) -> None:
    """The engine's empty template, where no instance has made it yet. Raises EngineFailed."""
    *tied, _ = tied_argv(make[0])  # it dies with us
    try:
        template_instance.ensure_template(
            template, make, {**clean_environment(), **env}, behind=tied
        )
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
                if any(word in str(fault) for word in FULL):
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


def load_all(
    data: Data,
    load_table: Callable[[Table, Meter], None],
    *,
    server: Server,
    progress: Progress,
    finish: Callable[[], None] | None = None,
) -> None:
    """All tables, as many at a time as there are CPUs, the largest first; then `finish`."""
    meter = Meter({table.name: rows_of(table) for table in data.tables})
    what = f"loading {data.name} into {server.name}"
    began = time.monotonic()
    largest_first = sorted(data.tables, key=lambda table: -meter.weights[table.name])
    run_all(
        [partial(load_table, table, meter) for table in largest_first],
        at_once=len(os.sched_getaffinity(0)),
        server=server,
        tell=lambda: progress(what, min(meter.part, 0.99)),
    )
    if finish is not None:
        finish()
    progress(f"{what}: {time.monotonic() - began:.0f} s", 1.0)
