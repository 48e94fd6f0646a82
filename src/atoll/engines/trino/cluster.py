"""Trino and Presto as engines: a coordinator, which runs no tasks, and a worker per slot.

Suites are Parquet files that the Hive connector reads where they lie, with its metastore in files;
the connectors `tpch` and `tpcds` are there, too. All JVMs are started with `java` and not by
`bin/launcher`, so that the process that Atoll places and watches is the engine itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from atoll.engines.api import Client, Installation, Layout, Table
from atoll.engines.facts import EngineFacts
from atoll.engines.java import find_java
from atoll.engines.reasons import Reasons
from atoll.engines.sql.connections import require_client
from atoll.engines.trino.family import Family
from atoll.engines.trino.layout import COORDINATOR_BYTES, lay_out, ports
from atoll.engines.trino.parts import attach, find_home
from atoll.engines.trino.reasons import REASONS
from atoll.engines.trino.settings import HEADROOM
from atoll.engines.trino.user_tree import check, counted
from atoll.engines.userconfig.tree import UserTree
from atoll.host.api import Host
from atoll.install import installed
from atoll.schema.plan import EngineTraits, Plan

_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class ClusterEngine:
    """See `atoll.engines.api.Engine`."""

    base: UserTree | None = None
    stands: bool = False  # it outlives Atoll, which brings no suites to it

    facts: ClassVar[EngineFacts]
    family: ClassVar[Family]
    reasons: ClassVar[Reasons] = REASONS

    @property
    def traits(self) -> EngineTraits:
        ours = EngineTraits(
            name=self.family.name,
            distributed=True,
            parallel_query=True,
            has_coordinator=True,
            jvm=True,
            heap_ratio=0.75,
            ratio_source=self.family.ratio_source,
            min_heap_bytes=512 * _MIB,
            coordinator_bytes=COORDINATOR_BYTES,
            coordinator_ratio=1 / 32,
            coordinator_overhead_bytes=512 * _MIB,
            overhead_bytes=512 * _MIB,
            page_cache_ratio=0.1,
            reserve_source="page cache: rule of this tool, not a measurement",
            query_ratio=1 - HEADROOM,
            query_source="memory.heap-headroom-per-node: 30 % of the heap is not for queries",
        )
        return counted(ours, self.base)

    def locate(self, host: Host) -> Installation:
        family = self.family
        version, home = find_home(host, family.name, family.version, jar=family.jar)
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
        return ports(plan, self.base, stands=self.stands)

    def layout(
        self,
        plan: Plan,
        installation: Installation,
        *,
        run_dir: str,
        ports: Sequence[int],
        scratch_dir: str | None = None,
    ) -> Layout:
        return lay_out(
            self.family,
            plan,
            installation,
            base=self.base,
            run_dir=run_dir,
            scratch=scratch_dir or run_dir,
            ports=ports,
            stands=self.stands,
        )

    def connect(self, endpoints: Sequence[str], *, timeout_s: float) -> list[Client]:
        from atoll.engines.trino.client import connect_all

        return connect_all(endpoints, timeout_s=timeout_s, header=self.family.header)

    def attach(self, table: Table) -> list[str]:
        return attach(table, scheme=self.family.file_scheme)

    def on(self, base: UserTree) -> Self:
        check(base)
        counted(self.traits, base)  # refuses a size that is none
        return replace(self, base=base)

    def standing(self) -> Self:
        return replace(self, stands=True)

    def reach(self, url: str, *, timeout_s: float) -> Client:
        from atoll.engines.trino.client import reach

        return reach(url, timeout_s=timeout_s, header=self.family.header)
