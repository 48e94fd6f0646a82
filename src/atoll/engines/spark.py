"""Spark SQL, standalone: a master, a worker with one executor per slot, and a driver.

The driver is Atoll's SQL host with a session in client mode. The executor, which runs the
tasks, is started by its worker and inherits the worker's place. All JVMs are started with
`java -cp` and not by Spark's shell wrappers, so that the process that Atoll places and watches
is the engine itself. Everything binds 127.0.0.1 and answers only to who knows the
deployment's secret. Spark asks for executors of one size only, the smallest slot's; the JVM
of a larger slot is told its own heap by the one variable that outdoes its command line.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import secrets
from collections.abc import Sequence

from atoll.engines.base import Client, Installation, Layout, Table
from atoll.engines.java import find_java
from atoll.engines.sqlclient import connect_all
from atoll.engines.sqlhost import sql_host_argv
from atoll.errors import EngineFailed
from atoll.host.api import Host
from atoll.schema.deployment import ProcessSpec, Role
from atoll.schema.plan import EngineTraits, Plan, Slot
from atoll.store.paths import cache_dir

JAVA_MAJOR = 17

_MIB = 1 << 20
_DAEMON_HEAP_MIB = 128  # master and workers only pass messages; measured: 175 MiB resident

# org.apache.spark.launcher.JavaModuleOptions of Spark 4.3.0, less what Java 17 does not know.
_MODULES = (
    "--add-modules=jdk.incubator.vector",
    *(
        f"--add-opens={package}=ALL-UNNAMED"
        for package in (
            "java.base/java.lang",
            "java.base/java.lang.invoke",
            "java.base/java.lang.reflect",
            "java.base/java.io",
            "java.base/java.net",
            "java.base/java.nio",
            "java.base/java.util",
            "java.base/java.util.concurrent",
            "java.base/java.util.concurrent.atomic",
            "java.base/jdk.internal.ref",
            "java.base/sun.nio.ch",
            "java.base/sun.nio.cs",
            "java.base/sun.security.action",
            "java.base/sun.util.calendar",
            "java.security.jgss/sun.security.krb5",
        )
    ),
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
)

# For the JVMs that run no tasks: no parallel collector and no optimising compiler, whose threads
# would take CPUs from the workers that are measured. Measured on 2 cores: the driver takes half
# the CPU time until its first queries are answered, and the start of all a sixth less.
_LEAN_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")

_LOG4J = """\
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{yyyy-MM-dd HH:mm:ss.SSS} %p %c{1}: %m%n%ex
# It warns at every start, and would pass for the last words of whoever dies later.
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
"""


class SparkEngine:
    """See `atoll.engines.base.Engine`."""

    traits = EngineTraits(
        name="spark",
        distributed=True,
        parallel_query=True,
        has_coordinator=True,
        jvm=True,
        heap_ratio=0.75,
        ratio_source="Spark's guide, Hardware Provisioning: at most 75 % of the memory",
        min_heap_bytes=512 * _MIB,  # Spark refuses executors below 450 MiB
        coordinator_bytes=1024 * _MIB,  # spark.driver.memory's default
        # Measured: 175 MiB of the worker, and 250 to 300 MiB of the executor beside its heap.
        overhead_bytes=512 * _MIB,
    )

    def locate(self, host: Host) -> Installation:
        spec = importlib.util.find_spec("pyspark")
        if spec is None or not spec.submodule_search_locations:
            raise EngineFailed(
                "PySpark is not installed in this Python; install it with: "
                "pip install 'atoll[spark]'"
            )
        version = importlib.metadata.version("pyspark")
        java, java_version = find_java(
            host,
            major=JAVA_MAJOR,
            wanted_by=f"Spark {version}",
            cache=str(cache_dir(f"jdk-{JAVA_MAJOR}")),
        )
        return Installation(version, spec.submodule_search_locations[0], java, java_version)

    def ports(self, plan: Plan) -> int:
        return 1 + len(plan.slots)

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
        socket = f"{run_dir}/sql.sock"
        master_port, *worker_ports = ports
        env = _environment(installation, run_dir, scratch)
        daemon = (
            installation.java,
            f"-Xms{_DAEMON_HEAP_MIB}m",  # holds also where _JAVA_OPTIONS outdoes the next
            f"-Xmx{_DAEMON_HEAP_MIB}m",
            *_LEAN_FLAGS,
            *_MODULES,
            "-cp",
            f"{run_dir}/conf:{installation.home}/jars/*",
        )
        master = ProcessSpec(
            name="master",
            role=Role.COORDINATOR,
            slot=None,
            argv=(
                *daemon,
                "org.apache.spark.deploy.master.Master",
                *("--host", "127.0.0.1"),
                *("--port", str(master_port)),
                *("--webui-port", "0"),
            ),
            env=env,
            stage=0,
            ready_port=master_port,
        )
        workers = tuple(
            ProcessSpec(
                name=f"worker-{slot.index}",
                role=Role.WORKER,
                slot=slot.index,
                argv=(
                    *daemon,
                    "org.apache.spark.deploy.worker.Worker",
                    *("--host", "127.0.0.1"),
                    *("--port", str(port)),
                    *("--webui-port", "0"),
                    *("--cores", str(slot.threads)),
                    *("--memory", f"{_heap_mib(plan.slots)}m"),
                    *("--work-dir", f"{scratch}/work-{slot.index}"),
                    f"spark://127.0.0.1:{master_port}",
                ),
                env=env | _executor_environment(slot, plan.slots),
                stage=1,
                ready_port=port,
            )
            for slot, port in zip(plan.slots, worker_ports, strict=True)
        )
        driver = ProcessSpec(
            name="driver",
            role=Role.DRIVER,
            slot=None,
            argv=sql_host_argv("spark", socket, f"{run_dir}/sqlhost.json"),
            env=env,
            stage=2,
            ready_socket=socket,
        )
        return Layout(
            processes=(master, *workers, driver),
            files={
                "conf/spark-defaults.conf": _defaults(plan, master_port, scratch),
                "conf/log4j2.properties": _LOG4J,
                "sqlhost.json": json.dumps({"executors": len(plan.slots)}),
            },
            endpoints=(socket,),
        )

    def connect(self, endpoints: Sequence[str], *, timeout_s: float) -> list[Client]:
        return connect_all(endpoints, timeout_s=timeout_s)

    def attach(self, table: Table) -> list[str]:
        quoted = table.path.replace("\\", "\\\\").replace("'", "\\'")
        return [
            f"create or replace temporary view {table.name} using parquet options (path '{quoted}')"
        ]


def _environment(installation: Installation, run_dir: str, scratch: str) -> dict[str, str]:
    return {
        "JAVA_HOME": os.path.dirname(os.path.dirname(installation.java)),
        "SPARK_HOME": installation.home,
        # Spark's shell wrappers would set it; without it a worker looks for a source tree when
        # it starts its executor. Spark 4 is built with no other Scala.
        "SPARK_SCALA_VERSION": "2.13",
        "SPARK_CONF_DIR": f"{run_dir}/conf",
        "SPARK_LOCAL_IP": "127.0.0.1",  # the web pages of master and workers follow it
        "SPARK_LOCAL_DIRS": f"{scratch}/local",
    }


def _executor_environment(slot: Slot, slots: Sequence[Slot]) -> dict[str, str]:
    # Flags of an executor are the same for all of an application; what differs by slot reaches
    # it through the environment that it inherits from its worker.
    environment = {"JDK_JAVA_OPTIONS": f"-XX:ActiveProcessorCount={slot.threads}"}
    if slot.heap_bytes // _MIB > _heap_mib(slots):
        # HotSpot reads it after the command line, on which Spark has put the smallest heap.
        # Spark sizes an executor's memory pools by the heap that its JVM has in the end.
        environment["_JAVA_OPTIONS"] = f"-Xmx{slot.heap_bytes // _MIB}m"
    return environment


def _heap_mib(slots: Sequence[Slot]) -> int:
    """What Spark is told that every executor has."""
    return min(slot.heap_bytes for slot in slots) // _MIB


def _defaults(plan: Plan, master_port: int, scratch: str) -> str:
    driver_bytes = plan.coordinator.heap_bytes if plan.coordinator else 0
    temporary = f"-Djava.io.tmpdir={scratch}"
    settings = {
        "spark.master": f"spark://127.0.0.1:{master_port}",
        "spark.app.name": "atoll",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": f"{(driver_bytes or SparkEngine.traits.coordinator_bytes) // _MIB}m",
        "spark.driver.extraJavaOptions": " ".join((*_LEAN_FLAGS, temporary)),
        # No spark.executor.cores: then a worker's one executor takes all of its cores, also
        # where slots are unequal.
        "spark.executor.memory": f"{_heap_mib(plan.slots)}m",
        "spark.executor.extraJavaOptions": f"-XX:-UsePerfData {temporary}",
        "spark.cores.max": str(plan.total_threads),
        "spark.default.parallelism": str(plan.total_threads),
        "spark.sql.shuffle.partitions": str(plan.shuffle_partitions),
        # Joins may still be chosen anew from sizes, which the data decides; the number of
        # partitions may not, since it is held equal between policies.
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": f"{scratch}/warehouse",
        "spark.sql.session.timeZone": "UTC",
        # A port that is taken must be a fault: by default Spark moves on to the next, while
        # the workers, and whoever waits for them, would talk to a stranger.
        "spark.port.maxRetries": "0",
        "spark.authenticate": "true",
        "spark.authenticate.secret": secrets.token_hex(32),
        "spark.master.rest.enabled": "false",  # on by default in Spark 4, on a fixed port
        "spark.ui.enabled": "false",
        "spark.ui.killEnabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    return "".join(f"{key} {value}\n" for key, value in settings.items())
