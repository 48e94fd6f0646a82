"""Loading a suite into the cache, for engines that keep their tables themselves.

A folder of tables is loaded once, and is there whole or not at all (`atoll.store.once`).
"""

from __future__ import annotations

import concurrent.futures
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from atoll.engines.api import Data, Progress, Table
from atoll.engines.loading.instance import ensure_template
from atoll.engines.loading.parquet_text import rows_of
from atoll.engines.loading.server import Server
from atoll.errors import AtollError
from atoll.host.api import Host
from atoll.host.caller import clean_environment
from atoll.store.once import make_once

# Raise this number with every change to what a load leaves behind (keys, indexes, statistics,
# settings), so that no older template is used.
_RECIPE = 2


def loaded_path(template: str, data: Data) -> str:
    """The folder of the tables: next to the engine's empty template, named after the content of
    the data and the way it is loaded."""
    return f"{template}-{data.name}-{data.checksum[:12]}-{_RECIPE}"


def make_empty(template: str, make: Sequence[str], env: Mapping[str, str], host: Host) -> None:
    """Make the engine's empty template, unless an instance has made it. Raises EngineFailed."""
    run = partial(host.run, timeout_s=None, env={**clean_environment(), **env}, tied=True)
    ensure_template(Path(template), make, run)


def make_loaded(
    target: Path,
    data: Data,
    *,
    needed_bytes: int,
    progress: Progress,
    make: Callable[[Path], None],
) -> None:
    """Have `make(folder)` load the tables into what becomes `target`, unless `target` exists.

    Raises as `atoll.store.once.make_once`."""
    make_once(
        target,
        make,
        what=data.name,
        needed_bytes=needed_bytes,
        waiting=lambda: progress(f"waiting for another process that loads {data.name}", None),
    )


def parquet_bytes(data: Data) -> int:
    return sum(os.path.getsize(table.path) for table in data.tables)


# ---- the work ------------------------------------------------------------------------------------


@dataclass(slots=True)
class Meter:
    """The progress of each table, which one thread writes."""

    weights: Mapping[str, int]  # table -> its share of the work
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
    """Run all tasks in their order, `at_once` at a time. If one raises, the server is ended, and
    with it what the other tasks wait for."""
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
            died = server.child.poll()
            server.end_at_once()
            if died is not None and isinstance(fault, AtollError):
                raise server.failure(f"died ({fault})") from None
            raise


def load_all(
    data: Data,
    load_table: Callable[[Table, Meter], None],
    *,
    host: Host,
    server: Server,
    progress: Progress,
    finish: Callable[[], None] | None = None,
) -> None:
    """Load all tables, one per CPU at a time, the largest first; then call `finish`."""
    meter = Meter({table.name: rows_of(table) for table in data.tables})
    what = f"loading {data.name} into {server.name}"
    began = time.monotonic()
    largest_first = sorted(data.tables, key=lambda table: -meter.weights[table.name])
    run_all(
        [partial(load_table, table, meter) for table in largest_first],
        at_once=len(host.affinity(0)),
        server=server,
        tell=lambda: progress(what, min(meter.part, 0.99)),
    )
    if finish is not None:
        finish()
    progress(f"{what}: {time.monotonic() - began:.0f} s", 1.0)
