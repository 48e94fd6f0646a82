"""MariaDB: a whole server per slot, with a database that is deleted with the deployment.

A query runs on one thread, so that as many queries as its slot has threads keep a server busy.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from atoll.engines.api import Client, Data, Installation, Progress
from atoll.engines.facts import EngineFacts
from atoll.engines.mariadb import settings as mariadb_settings
from atoll.engines.mariadb.facts import FACTS
from atoll.engines.mariadb.profile import graph
from atoll.engines.server.per_slot import ServerPerSlot, ServerSettings
from atoll.host.api import Host
from atoll.schema.operator_graph import OperatorGraph
from atoll.schema.plan import EngineTraits
from atoll.schema.size import MIB


@dataclass(frozen=True, slots=True)
class MariaDBEngine(ServerPerSlot):
    """See `ServerPerSlot`."""

    title: ClassVar[str] = "MariaDB"
    facts: ClassVar[EngineFacts] = FACTS
    document: ClassVar[str] = "MariaDB's ANALYZE FORMAT=JSON"
    settings: ClassVar[ServerSettings] = mariadb_settings
    config_name: ClassVar[str] = "mariadb-{}.cnf"
    oldest: ClassVar[tuple[int, ...]] = (10, 11)  # the oldest in Debian 12 and later
    version_arguments: ClassVar[tuple[str, ...]] = ("--no-defaults", "--version")
    version_pattern: ClassVar[re.Pattern[str]] = re.compile(r"\bVer ((\d+)\.(\d+)\.\d+)-MariaDB")
    python_client: ClassVar[tuple[str, str]] = ("PyMySQL", "pymysql")
    own_traits: ClassVar[EngineTraits] = EngineTraits(
        name="mariadb",
        distributed=False,
        parallel_query=False,
        has_coordinator=False,
        jvm=False,
        heap_ratio=0.6,
        ratio_source="MariaDB's documentation, Memory Allocation: 60 to 70 % for the buffer pool",
        min_heap_bytes=16 * MIB,
        coordinator_bytes=0,
        overhead_bytes=128 * MIB,  # measured: 110 MiB with an unused pool and 4 connections
        off_heap_ratio=0.375,
        page_cache_ratio=0.1,
        reserve_source="buffers of sorts, joins and temporary tables; page cache: rule of this "
        "tool, not a measurement",
        query_ratio=0.375,
        query_source="buffers of sorts, joins and temporary tables; beyond them queries spill",
        task_threads="all of its threads have one name, so that nothing shows from outside which "
        "of them run queries",
    )

    def graph(self, document: bytes) -> OperatorGraph:
        """See `atoll.engines.api.ProfiledEngine`."""
        return graph(document)

    def homes(self, host: Host, unpacked: str) -> Iterator[str]:
        """The one on the PATH, the system's, the folder in which MariaDB's documentation unpacks a
        tarball, then the unpacked one."""
        on_path = shutil.which("mariadbd")
        if on_path:
            yield os.path.dirname(os.path.dirname(os.path.realpath(on_path)))
        yield from ("/usr", "/usr/local/mysql")
        if unpacked:
            yield f"{unpacked}/usr"

    def client(self, path: str, *, timeout_s: float) -> Client:
        from atoll.engines.mariadb.client import at

        return at(path, timeout_s=timeout_s)

    def reach(self, url: str, *, timeout_s: float) -> Client:
        from atoll.engines.mariadb.client import reach

        return reach(url, timeout_s=timeout_s)

    def load(
        self, data: Data, installation: Installation, *, host: Host, progress: Progress
    ) -> None:
        from atoll.engines.mariadb.load import loader

        loader(self).load(data, installation, host=host, progress=progress)
