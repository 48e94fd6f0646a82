"""PostgreSQL: a whole server per slot, with a database that is deleted with the deployment.

A server leaves nothing in /dev/shm however it ends.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from atoll.engines.api import Client, Data, Installation, Progress
from atoll.engines.facts import EngineFacts
from atoll.engines.postgresql import settings as postgresql_settings
from atoll.engines.postgresql.facts import FACTS
from atoll.engines.postgresql.profile import graph
from atoll.engines.server.per_slot import ServerPerSlot, ServerSettings
from atoll.host.api import Host
from atoll.schema.operator_graph import OperatorGraph
from atoll.schema.plan import EngineTraits, TaskThreads
from atoll.schema.size import MIB

if TYPE_CHECKING:
    from atoll.engines.transactions import Transactions


@dataclass(frozen=True, slots=True)
class PostgreSQLEngine(ServerPerSlot):
    """See `ServerPerSlot`. A query runs on as many processes as its slot has threads."""

    title: ClassVar[str] = "PostgreSQL"
    facts: ClassVar[EngineFacts] = FACTS
    document: ClassVar[str] = "PostgreSQL's EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)"
    settings: ClassVar[ServerSettings] = postgresql_settings
    config_name: ClassVar[str] = "postgresql-{}.conf"
    # The first version with all the settings that Atoll writes, and the oldest in Debian 12.
    oldest: ClassVar[tuple[int, ...]] = (15,)
    version_arguments: ClassVar[tuple[str, ...]] = ("--version",)
    version_pattern: ClassVar[re.Pattern[str]] = re.compile(r"\(PostgreSQL\) ((\d+)[.\w]*)")
    python_client: ClassVar[tuple[str, str]] = ("psycopg", "psycopg")
    own_traits: ClassVar[EngineTraits] = EngineTraits(
        name="postgresql",
        distributed=False,
        parallel_query=True,
        has_coordinator=False,
        jvm=False,
        heap_ratio=0.25,
        ratio_source="PostgreSQL's manual, shared_buffers: 25 % of the memory to start with",
        min_heap_bytes=16 * MIB,
        coordinator_bytes=0,
        overhead_bytes=64 * MIB,  # measured: 45 MiB beside shared_buffers with 4 connections
        off_heap_ratio=1,
        page_cache_ratio=0.1,
        reserve_source="work_mem of all processes: as much as shared_buffers; page cache: rule of "
        "this tool, not a measurement",
        query_source="work_mem of all processes together; beyond it queries spill to disk",
        # A session's process, 'postgres: USER DATABASE [local]' or with the client's address, and
        # the processes that help it.
        task_threads=TaskThreads(
            comm="postgres$",
            title=r"postgres: (?!.*walsender )(.*: )?"
            r"(parallel worker for |\S+ \S+ (\[local\]|\S+\(\d+\)))",
            idle=r".*[])] idle",
        ),
    )

    def graph(self, document: bytes) -> OperatorGraph:
        """See `atoll.engines.api.ProfiledEngine`."""
        return graph(document)

    def homes(self, host: Host, unpacked: str) -> Iterator[str]:
        """The one on the PATH, then Debian's with the newest first, then the unpacked one."""
        on_path = shutil.which("postgres")
        if on_path:
            yield os.path.dirname(os.path.realpath(on_path))
        for root in ("/usr/lib/postgresql", f"{unpacked}/usr/lib/postgresql"):
            try:
                majors = [int(name) for name in host.list_dir(root) if name.isdigit()]
            except OSError:
                continue
            yield from (f"{root}/{major}/bin" for major in sorted(majors, reverse=True))

    def client(self, path: str, *, timeout_s: float) -> Client:
        from atoll.engines.postgresql.client import PostgreSQLClient

        client = PostgreSQLClient.at(path, timeout_s=timeout_s)
        if self.has_ports:
            client.set_password(Path(path).with_name(postgresql_settings.PASSWORD_FILE))
        return client

    def reach(self, url: str, *, timeout_s: float) -> Client:
        from atoll.engines.postgresql.client import reach

        return reach(url, timeout_s=timeout_s)

    def load(
        self, data: Data, installation: Installation, *, host: Host, progress: Progress
    ) -> None:
        from atoll.engines.postgresql.load import loader

        loader(self, host).load(data, installation, host=host, progress=progress)

    @property
    def workloads(self) -> tuple[str, ...]:
        """See `atoll.engines.transactions.TransactionalEngine`."""
        from atoll.engines.postgresql.oltp.workloads import WORKLOADS

        return WORKLOADS

    def transactions(self, workload: str, size: int) -> Transactions:
        from atoll.engines.postgresql.oltp.pgbench import PgbenchTransactions
        from atoll.engines.postgresql.oltp.workloads import workload as made

        return PgbenchTransactions(self, made(workload, size))

    def durability(self, client: Client, *, timeout_s: float) -> Mapping[str, str]:
        names = ", ".join(f"current_setting('{name}')" for name in _DURABILITY)
        (row,) = client.execute(f"select {names}", timeout_s=timeout_s).rows
        return dict(zip(_DURABILITY, row, strict=True))

    def checkpoint(self, client: Client, *, timeout_s: float) -> None:
        client.execute("checkpoint", timeout_s=timeout_s)


_DURABILITY = ("fsync", "synchronous_commit", "full_page_writes", "wal_sync_method")
