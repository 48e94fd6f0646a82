"""Why Trino and Presto are told what they are told; see `trino_layout`."""

from __future__ import annotations

from atoll.engines.reasons import Reasons, Why

_DEPLOY = "Trino's manual, Deploying Trino"
_RESOURCES = "Trino's manual, Resource management properties"
_TASKS = "Trino's manual, Task properties"
_SECURE = "Trino's manual, Secure internal communication"
_HIVE = "Trino's manual, Hive connector"
_FILE = "Trino's manual, File-based access control"
_PRESTO = "Presto's manual, Deploying Presto and Presto properties"
_FIXED = "the manual's jvm.config, the same for any size of machine"

REASONS: Reasons = {
    # config.properties
    "coordinator": Why("one coordinator plans for all workers", _DEPLOY),
    "node-scheduler.include-coordinator": Why(
        "the coordinator runs no tasks: its work would take CPUs from the queries of one worker "
        "and not of the others",
        _DEPLOY,
    ),
    "discovery.uri": Why(
        "where workers announce themselves: the coordinator, on loopback", _DEPLOY
    ),
    "http-server.http.port": Why("a port of its own for each instance on the machine", _DEPLOY),
    "http-server.http.enabled": Why("instances talk HTTP on loopback, inside the machine", _DEPLOY),
    "http-server.log.enabled": Why("a line for every request is of no use here", _DEPLOY),
    "http-server.log.path": Why("it would lie below the working folder", _DEPLOY),
    "http-server.https.port": Why("yours may be taken; workers need none", _DEPLOY),
    "http-server.authentication.allow-insecure-over-http": Why(
        "Atoll has no password: it asks over HTTP, which is on loopback", _SECURE
    ),
    "internal-communication.shared-secret": Why(
        "made for this deployment; nobody without it can join the cluster", _SECURE
    ),
    "query.max-memory": Why("what a query may take on all workers: the sum of theirs", _RESOURCES),
    "query.max-total-memory": Why("the default, twice query.max-memory", _RESOURCES),
    "query.max-memory-per-node": Why(
        "all of the heap but the headroom: one query may have the whole instance", _RESOURCES
    ),
    "memory.heap-headroom-per-node": Why(
        "30 % of the heap for what no query is charged for, the default; with "
        "query.max-memory-per-node it must fit the heap, or Trino does not start",
        _RESOURCES,
    ),
    "task.concurrency": Why(
        "threads per operator: as many as the slot has, as a power of two, at most 32. The default "
        "goes by the machine's CPUs, which N instances would each take for theirs",
        _TASKS,
    ),
    "task.max-worker-threads": Why(
        "twice the slot's threads, which is the default's rule, for the slot and not the machine",
        _TASKS,
    ),
    "plugin.dir": Why(
        "the plugins that are used, since a start takes longer with all of them; with a "
        "configuration of yours all, since its catalogs may want any",
        "",
    ),
    "catalog.config-dir": Why("your folder of catalogs, in the instance's copy", _DEPLOY),
    "web-ui.enabled": Why("nobody looks at it, and what does not listen cannot be misused", ""),
    # config.properties of Presto
    "discovery-server.enabled": Why("the coordinator is where workers are listed", _PRESTO),
    "internal-communication.jwt.enabled": Why("the shared secret is asked for", _PRESTO),
    "experimental.reserved-pool-enabled": Why(
        "the pool would keep a part of each heap for the one query that needs most", _PRESTO
    ),
    "query.max-total-memory-per-node": Why("as query.max-memory-per-node", _PRESTO),
    "hive.allow-drop-table": Why("a table of another scale factor may have the name", _PRESTO),
    "-XX:UseGCOverheadLimit": Why(_FIXED, _PRESTO),
    "spiller-spill-path": Why(
        "a folder of its own for each instance: one that starts deletes what others spilled",
        "Trino 476, FileSingleStreamSpillerFactory",
    ),
    "experimental.spiller-spill-path": Why("as Trino's spiller-spill-path", _PRESTO),
    "fs.cache.directories": Why(
        "folders of its own for each instance: a cache knows the files that it wrote itself",
        "Trino's manual, File system cache",
    ),
    "cache.base-directory": Why("as Trino's fs.cache.directories", _PRESTO),
    "fragment-result-cache.base-directory": Why("as Trino's fs.cache.directories", _PRESTO),
    # node.properties
    "node.id": Why("names the instance; unchanged over restarts", _DEPLOY),
    "node.environment": Why("all instances of a cluster have the same", _DEPLOY),
    "node.data-dir": Why("a folder of its own for each instance", _DEPLOY),
    "node.bind-ip": Why("nothing listens to the network", ""),
    "node.internal-address": Why("so that others are told the loopback address", ""),
    # jvm.config
    "-Xms": Why("as large as -Xmx, so that the heap lies where it is first touched", _DEPLOY),
    "-Xmx": Why(
        "a worker's by its share of the memory, the coordinator's by the machine's: the plan's "
        "reasons 'heap' and 'coordinator's heap'. The rest is left to off-heap memory and the page "
        "cache. Many queries at once or large catalogs want more for the coordinator: heap_bytes "
        "in a plan file",
        _DEPLOY,
    ),
    "-XX:ActiveProcessorCount": Why(
        "the slot's threads. A JVM sees the CPU mask by itself, but not that its threads are fewer "
        "than the mask's CPUs; its garbage collector's threads follow this number",
        "HotSpot, -XX:ActiveProcessorCount",
    ),
    "-XX:ParallelGCThreads": Why("as the plan says", "HotSpot, -XX:ParallelGCThreads"),
    "-XX:ConcGCThreads": Why("as the plan says", "HotSpot, -XX:ConcGCThreads"),
    "-XX:AlwaysPreTouch": Why(
        "every page of the heap is on its node before the first query; the start takes as long as "
        "writing the heap once",
        "HotSpot, -XX:+AlwaysPreTouch",
    ),
    "-XX:UseNUMA": Why(
        "the instance's CPUs and memory are on the same several nodes, the one case in which a JVM "
        "keeps it on",
        "HotSpot, os_linux.cpp",
    ),
    "-Djava.io.tmpdir": Why("temporary files on the disk that was meant for them", ""),
    "-XX:HeapDumpPath": Why("a heap dump would else lie in the working folder", "HotSpot"),
    "-XX:Use*GC": Why("G1, which Trino is tested with, also of a single CPU", _DEPLOY),
    "-server": Why(_FIXED, _DEPLOY),
    "-XX:ExplicitGCInvokesConcurrent": Why(_FIXED, _DEPLOY),
    "-XX:ExitOnOutOfMemoryError": Why("an instance out of memory ends, and is seen to", _DEPLOY),
    "-XX:OmitStackTraceInFastThrow": Why(_FIXED, _DEPLOY),
    "-XX:ReservedCodeCacheSize": Why(_FIXED, _DEPLOY),
    "-XX:PerMethodRecompilationCutoff": Why(_FIXED, _DEPLOY),
    "-XX:PerBytecodeRecompilationCutoff": Why(_FIXED, _DEPLOY),
    "-Djdk.attach.allowAttachSelf": Why(_FIXED, _DEPLOY),
    "-Djdk.nio.maxCachedBufferSize": Why(_FIXED, _DEPLOY),
    "-Dfile.encoding": Why(_FIXED, _DEPLOY),
    "-XX:EnableDynamicAgentLoading": Why(_FIXED, _DEPLOY),
    "-XX:UnlockDiagnosticVMOptions": Why("for the next", _DEPLOY),
    "-XX:G1NumCollectionsKeepPinned": Why(_FIXED, _DEPLOY),
    "-XX:UsePerfData": Why(
        "no file in /tmp that outlives a killed JVM", "HotSpot, -XX:UsePerfData"
    ),
    # Presto's, see `presto`
    "thrift.server.max-frame-size": Why(
        "its Thrift server listens to the network: so it takes no request; nobody sends any", ""
    ),
    **{
        f"-Dcom.sun.management.jmxremote.{name}": Why(
            "Presto would start an agent of JMX for everybody on the network, where it finds none: "
            "this one is on loopback, and no password opens it",
            "",
        )
        for name in ("host", "port", "ssl", "authenticate", "password.file", "access.file")
    },
    # the command line
    "--sun-misc-unsafe-memory-access": Why("as Trino's own launcher", _DEPLOY),
    "--enable-native-access": Why("as Trino's own launcher", _DEPLOY),
    "-Dconfig": Why("where the configuration is, from the working folder", _DEPLOY),
    "-DsecretsConfig": Why("which providers of secrets the configuration has", _DEPLOY),
    "-Dlog.levels-file": Why("where the levels of the log are", _DEPLOY),
    # access control and catalogs
    "access-control.name": Why(
        "who may open a port of 127.0.0.1 could have the server read files: it answers to one user "
        "alone, whose name is in the file 'user'",
        _FILE,
    ),
    "security.config-file": Why("the rules of that", _FILE),
    "connector.name": Why("which connector the catalog is of", _HIVE),
    "hive.metastore": Why("tables are described in files: no service is needed", _HIVE),
    "hive.metastore.catalog.dir": Why("where those files are", _HIVE),
    "fs.native-local.enabled": Why("tables are files of this machine", _HIVE),
    "local.location": Why("any folder of this machine, as far as the account may read", _HIVE),
}
