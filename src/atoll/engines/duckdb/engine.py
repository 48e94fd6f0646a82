"""DuckDB: embedded, so each slot has a small host process with a database of its own.

If its own pinning is on (by default above 64 CPUs), DuckDB 1.4 to 1.5 pins worker i to CPU i,
whatever the process's mask. So pinning is off when the database is opened. The number of threads is
set, because DuckDB would use every CPU that it sees. Under Atoll's scheduler `atoll.duckdb` opens
the database and sets both itself. Its workers stay on the slot's CPUs, which are the process's.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from atoll.engines.api import Client, Installation, Layout, Table
from atoll.engines.duckdb.profile import graph
from atoll.engines.facts import EngineFacts
from atoll.engines.sql.client import connect_all
from atoll.engines.sql.host import sql_host_argv
from atoll.errors import EngineFailed
from atoll.host.api import Host
from atoll.host.programs import ProgramFiles
from atoll.schema.deployment import ProcessSpec, Role
from atoll.schema.operator_graph import OperatorGraph
from atoll.schema.plan import EngineTraits, Plan, TaskThreads
from atoll.schema.results import Scheduler
from atoll.schema.size import MIB

# The names of threads that run tasks, and of callers between two queries. DuckDB gives them none.
TASK_THREAD, IDLE_THREAD = "duckdb-task", "duckdb-idle"


@dataclass(frozen=True, slots=True)
class DuckDBEngine:
    """See `atoll.engines.api.ScheduledEngine`."""

    scheduler: Scheduler = "duckdb"

    facts: ClassVar[EngineFacts] = EngineFacts(
        parts=(),
        demo=("wim", "wic"),
        shared_threads="its threads take the tasks of all operators from one queue",
    )
    document: ClassVar[str] = "DuckDB's JSON profile"
    schedulers: ClassVar[tuple[Scheduler, ...]] = ("duckdb", "atoll")
    traits: ClassVar[EngineTraits] = EngineTraits(
        name="duckdb",
        distributed=False,
        parallel_query=True,
        has_coordinator=False,
        jvm=False,
        heap_ratio=0.8,
        ratio_source="DuckDB's own default: memory_limit is 80 % of the memory",
        min_heap_bytes=256 * MIB,
        coordinator_bytes=0,
        overhead_bytes=128 * MIB,  # measured: 90 MiB resident after a first small query
        page_cache_ratio=0.1,
        reserve_source="measured; page cache: rule of this tool, not a measurement",
        query_source="DuckDB's manual, memory_limit: beyond it queries spill to disk",
        own_malloc="DuckDB's library has its own jemalloc",
        task_threads=TaskThreads(comm=f"({TASK_THREAD}|{IDLE_THREAD})$", idle=IDLE_THREAD),
    )

    def under(self, scheduler: Scheduler) -> DuckDBEngine:
        return DuckDBEngine(scheduler)

    def graph(self, document: bytes) -> OperatorGraph:
        """See `atoll.engines.api.ProfiledEngine`."""
        return graph(document)

    def locate(self, host: Host) -> Installation:
        spec = importlib.util.find_spec("duckdb")
        if spec is None or spec.origin is None:
            raise EngineFailed(
                "DuckDB is not installed in this Python; install it with: "
                "pip install 'atoll[duckdb]'"
            )
        if self.scheduler == "atoll":
            from atoll.duckdb import connect  # imports a native library

            connect(workers=1).close()  # raises the reason if it does not work with this DuckDB
        return Installation(importlib.metadata.version("duckdb"), home=spec.origin)

    def malloc_files(self, host: Host) -> ProgramFiles:
        """See `atoll.engines.api.AllocatingEngine`."""
        spec = importlib.util.find_spec("_duckdb")
        if spec is None or spec.origin is None:
            raise EngineFailed("DuckDB's library is not installed in this Python")
        return ProgramFiles(sys.executable, (spec.origin,))

    def ports(self, plan: Plan) -> int:
        return 0

    def layout(
        self,
        plan: Plan,
        installation: Installation,
        *,
        run_dir: str,
        ports: Sequence[int],
        scratch_dir: str | None = None,
    ) -> Layout:
        atoll = self.scheduler == "atoll"
        processes: list[ProcessSpec] = []
        files: dict[str, str] = {}
        for slot in plan.slots:
            socket = f"{run_dir}/sql-{slot.index}.sock"
            name = f"duckdb-{slot.index}.json"
            config: dict[str, Any] = {
                "threads": slot.threads,
                "memory_limit": f"{slot.heap_bytes}B",
                "temp_directory": f"{scratch_dir or run_dir}/spill-{slot.index}",
                # DuckDB must not download anything that the user did not ask for.
                "autoinstall_known_extensions": False,
            }
            if not atoll:
                config["pin_threads"] = "off"
            files[name] = json.dumps(config, indent=1)
            processes.append(
                ProcessSpec(
                    name=f"worker-{slot.index}",
                    role=Role.WORKER,
                    slot=slot.index,
                    argv=sql_host_argv(
                        f"atoll.engines.duckdb.backend:{'Atoll' if atoll else 'DuckDB'}Backend",
                        socket,
                        f"{run_dir}/{name}",
                    ),
                    env={},
                    stage=0,
                    ready_socket=socket,
                    seats_threads=atoll,
                )
            )
        return Layout(
            processes=tuple(processes),
            files=files,
            endpoints=tuple(spec.ready_socket for spec in processes if spec.ready_socket),
        )

    def connect(self, endpoints: Sequence[str], *, timeout_s: float) -> list[Client]:
        return connect_all(endpoints, timeout_s=timeout_s)

    def attach(self, table: Table) -> list[str]:
        quoted = table.path.replace("'", "''")
        return [f"create or replace view {table.name} as select * from read_parquet('{quoted}')"]
