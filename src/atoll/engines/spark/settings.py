"""What Spark's JVMs are told: flags, environments, spark-defaults.conf. Pure, but for the secret.

Spark asks for executors of one size only, the smallest slot's; the JVM of a larger slot is told
its own heap by the one variable that outdoes its command line. Flags that differ by slot reach
an executor through the environment that it inherits from its worker.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Sequence
from urllib.parse import quote

from atoll.engines.api import Installation
from atoll.engines.userconfig.java import write_property
from atoll.plan.jvm import placement_flags
from atoll.schema.plan import Plan, Slot
from atoll.schema.size import MIB

_DAEMON_HEAP_MIB = 128  # master and workers only pass messages; measured: 175 MiB resident
DRIVER_BYTES = 1024 * MIB  # spark.driver.memory's default

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
# A worker hands its environment to its executor, whose flags are not for the worker itself.
_OWN_FLAGS = ("-XX:-AlwaysPreTouch", "-XX:-UseNUMA")

# Settings that are Atoll's own driver's: a user's application brings others.
OF_OUR_DRIVER = (
    "spark.app.name",
    "spark.driver.extraJavaOptions",
    "spark.eventLog.enabled",
    "spark.eventLog.dir",
    "spark.eventLog.rolling.enabled",
    "spark.eventLog.compress",
    "spark.ui.showConsoleProgress",
)

LOG4J = """\
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


def daemon_argv(installation: Installation, run_dir: str) -> tuple[str, ...]:
    """How a master or a worker begins; its class and options follow."""
    return (
        installation.java,
        f"-Xms{_DAEMON_HEAP_MIB}m",  # holds also where _JAVA_OPTIONS outdoes the next
        f"-Xmx{_DAEMON_HEAP_MIB}m",
        *_LEAN_FLAGS,
        *_OWN_FLAGS,
        *_MODULES,
        "-cp",
        f"{run_dir}/conf:{installation.home}/jars/*",
    )


def events_folder(scratch: str) -> str:
    """Where Spark writes what its tasks did; the driver makes it."""
    return f"{scratch}/events"


def environment(installation: Installation, run_dir: str, scratch: str) -> dict[str, str]:
    return {
        "JAVA_HOME": os.path.dirname(os.path.dirname(installation.java)),
        "SPARK_HOME": installation.home,
        # Spark's shell wrappers would set it; without it a worker looks for a source tree when
        # it starts its executor. Spark 4 is built with no other Scala.
        "SPARK_SCALA_VERSION": "2.13",
        "SPARK_CONF_DIR": f"{run_dir}/conf",
        "SPARK_ENV_LOADED": "1",  # no shell runs spark-env.sh: what is honoured of it is here
        "SPARK_LOCAL_IP": "127.0.0.1",  # the web pages of master and workers follow it
        "SPARK_LOCAL_DIRS": f"{scratch}/local",
    }


def executor_environment(slot: Slot, plan: Plan) -> dict[str, str]:
    """On top of `environment`, for a worker and what it starts."""
    found = {"JDK_JAVA_OPTIONS": " ".join(placement_flags(slot, plan))}
    if slot.heap_bytes // MIB > heap_mib(plan.slots):
        # HotSpot reads it after the command line, on which Spark has put the smallest heap.
        # Spark sizes an executor's memory pools by the heap that its JVM has in the end.
        found["_JAVA_OPTIONS"] = f"-Xmx{slot.heap_bytes // MIB}m"
    return found


def heap_mib(slots: Sequence[Slot]) -> int:
    """What Spark is told that every executor has."""
    return min(slot.heap_bytes for slot in slots) // MIB


def defaults(plan: Plan, master_port: int, scratch: str) -> dict[str, str]:
    """spark-defaults.conf, with a fresh secret in it."""
    # A plan edited by hand may name no heap, or no coordinator.
    driver_bytes = (plan.coordinator.heap_bytes if plan.coordinator else 0) or DRIVER_BYTES
    temporary = f"-Djava.io.tmpdir={scratch}"
    return {
        "spark.master": f"spark://127.0.0.1:{master_port}",
        "spark.app.name": "atoll",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": f"{driver_bytes // MIB}m",
        "spark.driver.extraJavaOptions": options((*_LEAN_FLAGS, temporary)),
        # No spark.executor.cores: then a worker's one executor takes all of its cores, also
        # where slots are unequal.
        "spark.executor.memory": f"{heap_mib(plan.slots)}m",
        "spark.executor.extraJavaOptions": options(
            # Java's own choice is another one where it is told of one CPU only: then wic would
            # compare collectors.
            ("-XX:+UseG1GC", "-XX:-UsePerfData", temporary)
        ),
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
        # What the queries took: see spark_events. One plain file, read while it is written.
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{quote(events_folder(scratch))}",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }


def options(flags: Iterable[str]) -> str:
    """JVM options as Spark takes them apart (CommandBuilderUtils.parseOptionString): a flag with a
    blank stands in quotes."""
    return " ".join(
        '"' + flag.replace("\\", "\\\\").replace('"', '\\"') + '"'
        if any(mark in flag for mark in " \t\"'\\")
        else flag
        for flag in flags
    )


def text(settings: dict[str, str]) -> str:
    return "".join(f"{key} {write_property(value)}\n" for key, value in settings.items())
