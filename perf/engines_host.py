"""An SQL host that also answers its engine's own client: the same session, without the way to it.

DuckDB and Spark live in a process of their own; their client is a call in there. So who compares
asks that process twice: by the SQL host's socket, as `atoll bench` does, and by a second socket,
behind which the call alone is timed.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from multiprocessing import connection as pipes
from typing import Any

from atoll.engines.api import Client, Engine, Installation, Layout, Table
from atoll.engines.duckdb.backend import DuckDBBackend
from atoll.host.api import Host
from atoll.schema.plan import EngineTraits, Plan

Call = Callable[[str], list[tuple[Any, ...]]]
_SOCKET = "own.sock"


class DuckDB(DuckDBBackend):
    """Its own client: a cursor."""

    def __init__(self, config: dict[str, Any]) -> None:
        path = config.pop(_SOCKET)
        super().__init__(config)
        cursor = self._database.cursor()
        _serve(path, lambda sql: cursor.execute(sql).fetchall())


def spark(config: dict[str, Any]) -> Any:
    """Its own client: the session's `sql` and `collect`."""
    from atoll.engines.spark.backend import SparkBackend  # it needs pyspark

    path = config.pop(_SOCKET)
    backend = SparkBackend(config)
    session = backend._session
    _serve(path, lambda sql: session.sql(sql).collect())
    return backend


BACKENDS = {"duckdb": "perf.engines_host:DuckDB", "spark": "perf.engines_host:spark"}


@dataclass(frozen=True, slots=True)
class Hosted:
    """`engine` with such a host in the place of its own; see `atoll.engines.api.Engine`."""

    engine: Engine

    @property
    def traits(self) -> EngineTraits:
        return self.engine.traits

    def locate(self, host: Host) -> Installation:
        return self.engine.locate(host)

    def ports(self, plan: Plan) -> int:
        return self.engine.ports(plan)

    def layout(
        self,
        plan: Plan,
        installation: Installation,
        *,
        run_dir: str,
        ports: Sequence[int],
        scratch_dir: str | None = None,
    ) -> Layout:
        layout = self.engine.layout(
            plan, installation, run_dir=run_dir, ports=ports, scratch_dir=scratch_dir
        )
        processes, files = [], dict(layout.files)
        for spec in layout.processes:
            options = dict(word.split("=", 1) for word in spec.argv if "=" in word)
            if "--backend" in options:
                name = os.path.relpath(options["--config"], run_dir)
                files[name] = json.dumps(
                    json.loads(files[name]) | {_SOCKET: f"{run_dir}/{_SOCKET}"}
                )
                ours = f"--backend={BACKENDS[self.traits.name]}"
                argv = (ours if word.startswith("--backend=") else word for word in spec.argv)
                spec = spec.model_copy(update={"argv": tuple(argv)})
            processes.append(spec)
        return replace(layout, processes=tuple(processes), files=files)

    def connect(self, endpoints: Sequence[str], *, timeout_s: float) -> list[Client]:
        return self.engine.connect(endpoints, timeout_s=timeout_s)

    def attach(self, table: Table) -> list[str]:
        return self.engine.attach(table)


class OwnClient:
    """Of such a host: seconds and rows of a call in there."""

    def __init__(self, endpoint: str) -> None:
        path = os.path.join(os.path.dirname(endpoint), _SOCKET)
        self._connection = pipes.Client(path, "AF_UNIX")

    def __call__(self, sql: str) -> tuple[float, list[tuple[Any, ...]]]:
        self._connection.send(sql)
        seconds, rows = self._connection.recv()
        return seconds, rows


def _serve(path: str, call: Call) -> None:
    listener = pipes.Listener(path, "AF_UNIX")

    def answer() -> None:
        with listener.accept() as connection:
            while True:
                try:
                    sql = connection.recv()
                except EOFError:
                    return
                start = time.perf_counter()
                rows = call(sql)
                seconds = time.perf_counter() - start
                connection.send((seconds, [tuple(row) for row in rows]))
                del rows  # not while the next query's clock runs

    threading.Thread(target=answer, daemon=True).start()
