"""Loads a workload once: a template data directory that every deployment copies.

Sessions load in parallel, as many as there are CPUs.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from functools import partial

from atoll.engines.api import Data, Installation, Progress
from atoll.engines.loading.server import Server
from atoll.engines.loading.templates import run_all
from atoll.engines.postgresql.load import loader, session_at
from atoll.engines.postgresql.oltp.workloads import Workload
from atoll.engines.server.per_slot import ServerPerSlot
from atoll.host.api import Host

_LOG_BYTES = 2 << 30  # of the write-ahead log, at its most


def data_of(work: Workload) -> Data:
    statements = (*work.schema, *(one for rows in work.rows for one in rows), *work.finish)
    checksum = hashlib.sha256("\0".join(statements).encode()).hexdigest()
    name = "ycsb" if work.name.startswith("ycsb") else work.name
    return Data(f"{name}-{work.size}", checksum, ())


def load(
    work: Workload,
    engine: ServerPerSlot,
    installation: Installation,
    *,
    host: Host,
    progress: Progress,
) -> None:
    """Raises as `LoadingEngine.load`."""
    data = data_of(work)
    what = f"loading {data.name}"
    began = time.monotonic()

    def fill(server: Server, path: str) -> None:
        done: list[int] = []

        def rows(statements: Sequence[str]) -> None:
            _execute(path, statements)
            done.append(1)

        _execute(path, work.schema)
        run_all(
            [partial(rows, statements) for statements in work.rows],
            at_once=len(host.affinity(0)),
            server=server,
            tell=lambda: progress(what, 0.9 * len(done) / len(work.rows)),
        )
        progress(f"{what}: indexes", 0.9)
        _execute(path, (*work.finish, "vacuum (freeze, analyze)", "checkpoint"))
        progress(f"{what}: {time.monotonic() - began:.0f} s", 1.0)

    loader(engine, host).make(
        data, fill, work.database_bytes + _LOG_BYTES, installation, host=host, progress=progress
    )


def _execute(path: str, statements: Sequence[str]) -> None:
    with session_at(path) as session:
        for statement in statements:
            session.execute(statement.encode())  # as it is: no % of it stands for a value
