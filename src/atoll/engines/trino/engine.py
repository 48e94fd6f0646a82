"""Trino 476 or later, and Presto 0.287, the engine of the papers.

A coordinator, which runs no tasks, and a worker per slot. Suites are Parquet files that the Hive
connector reads in place, with its metastore in files; the connectors `tpch` and `tpcds` are there,
too. All JVMs are started with `java` and not with `bin/launcher`, so that the process that Atoll
places and watches is the engine itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from atoll.engines.api import Client, Installation, Layout, Table
from atoll.engines.facts import EngineFacts
from atoll.engines.java import find_java
from atoll.engines.sql.connections import require_client
from atoll.engines.trino.facts import PRESTO_FACTS, TRINO_FACTS
from atoll.engines.trino.family import PRESTO, TRINO, Family
from atoll.engines.trino.layout import CATALOG, SCHEMA, lay_out, ports
from atoll.engines.trino.memory import HEADROOM
from atoll.engines.trino.query_info import graph
from atoll.engines.trino.settings import COORDINATOR_BYTES, Cluster
from atoll.engines.trino.user_tree import check, with_direct_memory
from atoll.engines.userconfig.tree import UserTree
from atoll.errors import EngineFailed
from atoll.host.api import Host
from atoll.install import installed
from atoll.schema.operator_graph import OperatorGraph
from atoll.schema.plan import EngineTraits, Plan, TaskThreads
from atoll.schema.size import MIB


@dataclass(frozen=True, slots=True)
class _ClusterEngine:
    """See `atoll.engines.api.Engine`."""

    tree: UserTree | None = None
    outlives_atoll: bool = False  # then Atoll brings no suites to it

    facts: ClassVar[EngineFacts]
    family: ClassVar[Family]

    @property
    def traits(self) -> EngineTraits:
        ours = EngineTraits(
            name=self.family.name,
            distributed=True,
            parallel_query=True,
            has_coordinator=True,
            jvm=True,
            listens=True,
            heap_ratio=0.75,
            ratio_source=self.family.ratio_source,
            min_heap_bytes=512 * MIB,
            coordinator_bytes=COORDINATOR_BYTES,
            coordinator_ratio=1 / 32,
            coordinator_overhead_bytes=512 * MIB,
            overhead_bytes=512 * MIB,
            page_cache_ratio=0.1,
            reserve_source="page cache: rule of this tool, not a measurement",
            query_ratio=1 - HEADROOM,
            query_source="memory.heap-headroom-per-node: 30 % of the heap is not for queries",
            # Trino's threads keep the name; Presto's have that of the split that they run.
            task_threads=TaskThreads(comm=r"SplitRunner-|\d{8}_\d{6}"),
        )
        return with_direct_memory(ours, self.tree)

    @property
    def document(self) -> str:
        """See `atoll.engines.api.ProfiledEngine`."""
        return f"{self.family.name.capitalize()}'s answer of /v1/query/ID"

    def graph(self, document: bytes) -> OperatorGraph:
        return graph(document, engine=self.family.name)

    def locate(self, host: Host) -> Installation:
        family = self.family
        version, home = find_home(host, family)
        require_client("the package trino", "trino", engine="trino")
        java, java_version = find_java(
            host,
            major=family.java_major,
            or_later=family.java_or_later,
            wanted_by=f"{family.name.capitalize()} {version}",
            engine=family.name,
            part=installed(family.jdk),
        )
        return Installation(version, home, java, java_version)

    def ports(self, plan: Plan) -> int:
        return ports(plan, self.tree, outlives_atoll=self.outlives_atoll)

    def layout(
        self,
        plan: Plan,
        installation: Installation,
        *,
        run_dir: str,
        ports: Sequence[int],
        scratch_dir: str | None = None,
    ) -> Layout:
        scratch = scratch_dir or run_dir
        return lay_out(
            Cluster(
                self.family,
                plan,
                installation,
                self.tree,
                ports,
                run_dir,
                scratch,
                self.outlives_atoll,
            )
        )

    def connect(self, endpoints: Sequence[str], *, timeout_s: float) -> list[Client]:
        from atoll.engines.trino.client import connect_all

        return connect_all(endpoints, timeout_s=timeout_s, header=self.family.header)

    def attach(self, table: Table) -> list[str]:
        """The table's folder as an external table, with statistics, which plans rest on."""
        name = f"{CATALOG}.{SCHEMA}.{table.name}"
        columns = ", ".join(f"{column.name} {column.type}" for column in table.columns)
        folder = os.path.dirname(table.path).replace("'", "''")
        return [
            f"create schema if not exists {CATALOG}.{SCHEMA}",
            # A table of another scale factor may have that name; its files stay.
            f"drop table if exists {name}",
            f"create table {name} ({columns}) "
            f"with (external_location = '{self.family.file_scheme}://{folder}', "
            "format = 'PARQUET')",
            f"analyze {name}",
        ]

    def on(self, tree: UserTree) -> Self:
        check(tree)
        with_direct_memory(self.traits, tree)  # raises UsageError for a size that it cannot read
        return replace(self, tree=tree)

    def unattended(self) -> Self:
        return replace(self, outlives_atoll=True)

    def reach(self, url: str, *, timeout_s: float) -> Client:
        from atoll.engines.trino.client import reach

        return reach(url, timeout_s=timeout_s, header=self.family.header)


class TrinoEngine(_ClusterEngine):
    facts: ClassVar[EngineFacts] = TRINO_FACTS
    family: ClassVar[Family] = TRINO


class PrestoEngine(_ClusterEngine):
    facts: ClassVar[EngineFacts] = PRESTO_FACTS
    family: ClassVar[Family] = PRESTO


def find_home(host: Host, family: Family) -> tuple[str, str]:
    """(version, folder) of the engine: the family's version, or a later one.

    Looks in TRINO_HOME (PRESTO_HOME), in what `atoll engine install` fetched, and in /usr/lib.
    Raises EngineFailed naming what was found.
    """
    found: dict[str, str] = {}
    pattern = re.compile(rf"{re.escape(family.jar)}-([\d.]+)\.jar")
    for home in _homes(family, host):
        try:
            names = host.list_dir(f"{home}/lib")
        except OSError:
            continue
        versions = [match[1] for name in names if (match := pattern.fullmatch(name))]
        if versions and _numbers(versions[0]) >= _numbers(family.version):
            return versions[0], home
        found[home] = f"has version {versions[0]}" if versions else f"has no {family.name}"
    have = ", ".join(f"{home} {what}" for home, what in found.items())
    raise EngineFailed(
        f"{family.name.capitalize()} {family.version} or later is needed; "
        f"{have or 'none was found'}; install it with: atoll engine install {family.name}, "
        f"or set {family.name.upper()}_HOME"
    )


def _homes(family: Family, host: Host) -> Iterator[str]:
    named = host.variable(f"{family.name.upper()}_HOME")
    if named:
        yield os.path.abspath(named)
    part = installed(f"{family.name}-server-{family.version}")
    if part:
        yield part
    yield f"/usr/lib/{family.name}"


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".") if number]
