"""Why Spark is told what it is told; see `spark_settings`."""

from __future__ import annotations

from atoll.engines.reasons import Reasons, Why

_CONFIGURATION = "Spark's manual, Configuration"
_STANDALONE = "Spark's manual, Standalone mode"
_SQL = "Spark's manual, Performance tuning"
_MONITORING = "Spark's manual, Monitoring"
_SECURITY = "Spark's manual, Security"
_LEAN = "this JVM runs no tasks, and its threads would take CPUs from those that do"

REASONS: Reasons = {
    "spark.master": Why("the master of this deployment, on loopback", _STANDALONE),
    "spark.app.name": Why("what the master lists", _CONFIGURATION),
    "spark.driver.host": Why("executors reach the driver on loopback", _CONFIGURATION),
    "spark.driver.bindAddress": Why("nothing listens to the network", _CONFIGURATION),
    "spark.driver.memory": Why("the coordinator's heap of the plan", _CONFIGURATION),
    "spark.driver.extraJavaOptions": Why(_LEAN, "measured; see docs/engine-spark.md"),
    "spark.executor.memory": Why(
        "the smallest slot's heap: Spark asks for executors of one size only. A larger slot's JVM "
        "is told its own by _JAVA_OPTIONS",
        _CONFIGURATION,
    ),
    "spark.executor.extraJavaOptions": Why(
        "one collector under every policy, which Java by itself would choose by the number of "
        "CPUs; no performance file in /tmp, temporary files on the right disk; what differs by "
        "slot is in JDK_JAVA_OPTIONS of its worker",
        _CONFIGURATION,
    ),
    "spark.cores.max": Why("all threads of the plan, for one application", _STANDALONE),
    "spark.default.parallelism": Why("a partition per thread", _CONFIGURATION),
    "spark.sql.shuffle.partitions": Why(
        "2 per thread, whatever the policy, so that only placement differs", "Spark's tuning guide"
    ),
    "spark.sql.adaptive.coalescePartitions.enabled": Why(
        "the number of partitions stays as planned; joins are still chosen by size", _SQL
    ),
    "spark.sql.catalogImplementation": Why("no metastore is needed", _CONFIGURATION),
    "spark.sql.warehouse.dir": Why("tables that a query makes go with the deployment", _SQL),
    "spark.sql.session.timeZone": Why("answers do not depend on the machine", _CONFIGURATION),
    "spark.port.maxRetries": Why(
        "a port that is taken is a fault: by default Spark takes the next one, and workers would "
        "talk to a stranger",
        _CONFIGURATION,
    ),
    "spark.authenticate": Why("who does not know the secret is not talked to", _SECURITY),
    "spark.authenticate.secret": Why("made for this deployment", _SECURITY),
    "spark.master.rest.enabled": Why("on by default in Spark 4, on a fixed port", _STANDALONE),
    "spark.ui.enabled": Why("nobody looks at it, and it would listen", _CONFIGURATION),
    "spark.ui.killEnabled": Why("the masters' page cannot end anything", _CONFIGURATION),
    "spark.ui.showConsoleProgress": Why("a log is no terminal", _CONFIGURATION),
    "spark.eventLog.enabled": Why("what queries took is read from it", _MONITORING),
    "spark.eventLog.dir": Why("beside what is spilled", _MONITORING),
    "spark.eventLog.rolling.enabled": Why("one file, read while it is written", ""),
    "spark.eventLog.compress": Why("one plain file, read while it is written", ""),
    # the daemons' command line
    "-Xms": Why(
        "of a daemon: holds also where _JAVA_OPTIONS outdoes -Xmx. Of an executor: all of the heap "
        "is there from the start, so that all of it is touched",
        "HotSpot",
    ),
    "-Xmx": Why("masters and workers only pass messages; measured: 175 MiB resident", ""),
    "-XX:Use*GC": Why(_LEAN, ""),
    "-XX:TieredStopAtLevel": Why(_LEAN, ""),
    "-XX:UsePerfData": Why(
        "no file in /tmp that outlives a killed JVM", "HotSpot, -XX:UsePerfData"
    ),
    "-XX:ActiveProcessorCount": Why(
        "the slot's threads: the executor's collector and pools are sized by it",
        "HotSpot, -XX:ActiveProcessorCount",
    ),
    "-XX:ParallelGCThreads": Why("as the plan says", "HotSpot, -XX:ParallelGCThreads"),
    "-XX:ConcGCThreads": Why("as the plan says", "HotSpot, -XX:ConcGCThreads"),
    "-XX:AlwaysPreTouch": Why(
        "on for the executor: every page of its heap is on its node before the first query, which "
        "takes as long as writing the heap once. Off for the worker, which has its executor's "
        "flags in its environment",
        "HotSpot, -XX:+AlwaysPreTouch",
    ),
    "-XX:UseNUMA": Why(
        "on for the executor where its CPUs and its memory are on the same several nodes, the one "
        "case in which a JVM keeps it on. Off for the worker",
        "HotSpot, os_linux.cpp",
    ),
    "--add-modules": Why("as Spark's own launcher", "JavaModuleOptions of Spark 4.3.0"),
    "--add-opens": Why("as Spark's own launcher", "JavaModuleOptions of Spark 4.3.0"),
    "-Dio.netty.tryReflectionSetAccessible": Why(
        "as Spark's own launcher", "JavaModuleOptions of Spark 4.3.0"
    ),
    "-Dio.netty.allocator.type": Why("as Spark's own launcher", "JavaModuleOptions of Spark 4.3.0"),
    "--host": Why("nothing listens to the network", _STANDALONE),
    "--port": Why("fixed, so that others know it", _STANDALONE),
    "--webui-port": Why("any free port of loopback: two daemons cannot share one", _STANDALONE),
    "--cores": Why("the slot's threads: one executor takes all of them", _STANDALONE),
    "--memory": Why("room for one executor and no more", _STANDALONE),
    "--work-dir": Why("a folder of its own for each worker", _STANDALONE),
}
