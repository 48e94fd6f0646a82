"""The settings of Spark's JVMs: memory, flags, environments, spark-defaults.conf. Pure.

Each setting stands with its reason and the reason's source, which `atoll render --explain` prints.

Spark asks for executors of one size only, the smallest slot's; the JVM of a larger slot gets its
own heap by the one variable that overrides its command line. Flags that differ by slot reach an
executor through the environment that it inherits from its worker.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote

from atoll.engines.api import Installation
from atoll.engines.explained import Reasons, Setting, Why
from atoll.engines.java import JVM_FLAGS
from atoll.engines.userconfig.changes import setting_name
from atoll.engines.userconfig.java import write_property
from atoll.plan.jvm import placement_flags
from atoll.schema.plan import LOOPBACK, Plan, Slot
from atoll.schema.size import MIB

_DAEMON_HEAP = ("-Xms128m", "-Xmx128m")  # the first also applies if _JAVA_OPTIONS has another -Xmx
DRIVER_BYTES = 1024 * MIB  # spark.driver.memory's default

_CONFIGURATION = "Spark's manual, Configuration"
_STANDALONE = "Spark's manual, Standalone mode"
_SQL = "Spark's manual, Performance tuning"
_MONITORING = "Spark's manual, Monitoring"
_SECURITY = "Spark's manual, Security"

# ---- memory and flags of the JVMs ----------------------------------------------------------------

# org.apache.spark.launcher.JavaModuleOptions of Spark 4.3.0, without what Java 17 does not know.
_OPENED = """
    java.lang java.lang.invoke java.lang.reflect java.io java.net java.nio java.util
    java.util.concurrent java.util.concurrent.atomic jdk.internal.ref sun.nio.ch sun.nio.cs
    sun.security.action sun.util.calendar
"""
_MODULES = (
    "--add-modules=jdk.incubator.vector",
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED.split()),
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
)
_MODULE = Why("Spark's own launcher sets it", "JavaModuleOptions of Spark 4.3.0")

# For the JVMs that run no tasks. Measured on 2 cores: with these flags the driver takes half the
# CPU time until its first queries are answered, and the start of all processes a sixth less.
_LEAN = Why(
    "no parallel collector and no optimizing compiler: this JVM runs no tasks, and their threads "
    "would take CPUs from the JVMs that do",
    "measured; see docs/engine-spark.md",
)
_LEAN_FLAGS = {
    "-XX:+UseSerialGC": _LEAN,
    "-XX:TieredStopAtLevel=1": _LEAN,
    "-XX:-UsePerfData": JVM_FLAGS["-XX:UsePerfData"],
}
_OWN = Why("for the executor only, whose flags are in its worker's environment")
_OWN_FLAGS = {"-XX:-AlwaysPreTouch": _OWN, "-XX:-UseNUMA": _OWN}


def daemon_argv(installation: Installation, run_dir: str) -> tuple[str, ...]:
    """The beginning of a master's or worker's command line; its class and options follow."""
    return (
        installation.java,
        *_DAEMON_HEAP,
        *_LEAN_FLAGS,
        *_OWN_FLAGS,
        *_MODULES,
        "-cp",
        f"{run_dir}/conf:{installation.home}/jars/*",
    )


_FLAG_REASONS: Reasons = {
    **JVM_FLAGS,
    **_OWN_FLAGS,
    **{setting_name(flag): why for flag, why in _LEAN_FLAGS.items()},
    **{setting_name(flag): _MODULE for flag in _MODULES},
    **dict.fromkeys(
        _DAEMON_HEAP, Why("masters and workers only pass messages", "measured: 175 MiB resident")
    ),
    "--port": Why("fixed, so that the other processes know it", _STANDALONE),
    "--webui-port": Why("any free port of loopback: two daemons cannot share one", _STANDALONE),
    "--cores": Why("the slot's threads: one executor takes all of them", _STANDALONE),
    "--memory": Why("room for one executor and no more", _STANDALONE),
    "--work-dir": Why("each worker has its own folder", _STANDALONE),
}


def flag_reasons(plan: Plan, scratch: str) -> Reasons:
    """Why the command lines and JDK_JAVA_OPTIONS are as they are."""
    return {
        **_FLAG_REASONS,
        setting_name(_temporary(scratch)): Why("temporary files lie on the scratch disk"),
        "--host": Why(_where(plan), _STANDALONE),
    }


def _where(plan: Plan) -> str:
    if plan.addresses:
        return "it listens at this address only, as --listen requests"
    return "nothing listens on the network"


class Master(NamedTuple):
    """Where the master listens, and the driver beside it."""

    address: str
    port: int


def master(plan: Plan, ports: Sequence[int]) -> Master:
    """`ports`: those of this machine; the first one is the master's, unless the plan has it."""
    if plan.cluster:
        return Master(plan.cluster.address, plan.cluster.port)
    return Master((plan.coordinator.address if plan.coordinator else None) or LOOPBACK, ports[0])


def _temporary(scratch: str) -> str:
    return f"-Djava.io.tmpdir={scratch}"


def executor_environment(slot: Slot, plan: Plan, scratch: str) -> dict[str, str]:
    """On top of `environment`, for a worker and its executor."""
    flags = (*placement_flags(slot, plan), _temporary(scratch))
    found = {"JDK_JAVA_OPTIONS": " ".join(map(_for_launcher, flags))}
    if slot.heap_bytes // MIB > heap_mib(plan):
        # HotSpot reads it after the command line, where Spark has put the smallest heap. Spark
        # sizes an executor's memory pools by the heap that its JVM finally has.
        found["_JAVA_OPTIONS"] = f"-Xmx{slot.heap_bytes // MIB}m"
    return found


def _for_launcher(flag: str) -> str:
    """A flag as java(1) reads it from JDK_JAVA_OPTIONS: quotes as in a shell, no backslashes."""
    if not any(mark in flag for mark in " \t\"'"):
        return flag
    return '"\'"'.join(f"'{part}'" for part in flag.split("'"))


def heap_mib(plan: Plan) -> int:
    """The heap of every executor, as Spark knows it."""
    least = plan.cluster.heap_bytes if plan.cluster else min(one.heap_bytes for one in plan.slots)
    return least // MIB


# ---- spark-defaults.conf -------------------------------------------------------------------------


def defaults(plan: Plan, home: Master, scratch: str, secret: str) -> dict[str, Setting]:
    """What Atoll sets in spark-defaults.conf. A cluster has a `secret`; otherwise it is a fresh
    one."""
    # A plan edited by hand may have no coordinator, or one without a heap.
    driver_bytes = (plan.coordinator.heap_bytes if plan.coordinator else 0) or DRIVER_BYTES
    return {
        "spark.master": Setting(
            f"spark://{home.address}:{home.port}", "the deployment's master", _STANDALONE
        ),
        "spark.app.name": Setting("atoll", "the master lists it", _CONFIGURATION),
        "spark.driver.host": Setting(
            home.address, "executors reach the driver where it listens", _CONFIGURATION
        ),
        "spark.driver.bindAddress": Setting(home.address, _where(plan), _CONFIGURATION),
        "spark.driver.memory": Setting(
            f"{driver_bytes // MIB}m", "the coordinator's heap in the plan", _CONFIGURATION
        ),
        "spark.driver.extraJavaOptions": Setting(
            options((*_LEAN_FLAGS, _temporary(scratch))), _LEAN.text, _LEAN.source
        ),
        # Without spark.executor.cores, a worker's one executor takes all of the worker's cores,
        # also if slots are unequal.
        "spark.executor.memory": Setting(
            f"{heap_mib(plan)}m",
            "the smallest slot's heap: Spark asks for executors of one size only. The JVM of a "
            "larger slot gets its own heap by _JAVA_OPTIONS",
            _CONFIGURATION,
        ),
        "spark.executor.extraJavaOptions": Setting(
            options(("-XX:+UseG1GC", "-XX:-UsePerfData")),
            "one collector under every policy: by itself, Java chooses by the number of CPUs, and "
            "wic would compare collectors. No performance file in /tmp. The flags that differ by "
            "slot or machine are in JDK_JAVA_OPTIONS of its worker",
            _CONFIGURATION,
        ),
        **_threads(plan),
        "spark.sql.shuffle.partitions": Setting(
            str(plan.shuffle_partitions),
            "2 per thread under every policy, so that only placement differs",
            "Spark's tuning guide",
        ),
        "spark.sql.adaptive.coalescePartitions.enabled": Setting(
            "false",
            "the number of partitions stays as planned, equal between policies; Spark still "
            "chooses joins by the size of the data",
            _SQL,
        ),
        "spark.sql.catalogImplementation": Setting(
            "in-memory", "no metastore is needed", _CONFIGURATION
        ),
        "spark.sql.warehouse.dir": Setting(
            f"{scratch}/warehouse", "tables that a query creates end with the deployment", _SQL
        ),
        "spark.sql.session.timeZone": Setting(
            "UTC", "answers do not depend on the machine", _CONFIGURATION
        ),
        "spark.port.maxRetries": Setting(
            "0",
            "a port that is taken is a fault: by default Spark moves on to the next port, and "
            "workers would talk to the process that holds the first",
            _CONFIGURATION,
        ),
        "spark.authenticate": Setting(
            "true", "only processes that know the secret can connect", _SECURITY
        ),
        "spark.authenticate.secret": Setting(
            secret or secrets.token_hex(32),
            "the cluster's" if secret else "new for each deployment",
            _SECURITY,
        ),
        "spark.master.rest.enabled": Setting(
            "false", "on by default in Spark 4, on a fixed port", _STANDALONE
        ),
        "spark.ui.enabled": Setting(
            "false", "nobody looks at it, and it would listen", _CONFIGURATION
        ),
        "spark.ui.killEnabled": Setting(
            "false", "the master's page cannot stop anything", _CONFIGURATION
        ),
        "spark.ui.showConsoleProgress": Setting("false", "a log is not a terminal", _CONFIGURATION),
        "spark.eventLog.enabled": Setting(
            "true", "the SQL host reads from it what each query took", _MONITORING
        ),
        "spark.eventLog.dir": Setting(
            f"file://{quote(events_folder(scratch))}", "on the scratch disk", _MONITORING
        ),
        "spark.eventLog.rolling.enabled": Setting("false", "one file, read while it is written"),
        "spark.eventLog.compress": Setting("false", "a plain file, read while it is written"),
    }


def _threads(plan: Plan) -> dict[str, Setting]:
    """Without a mask (wim) Spark counts the CPUs itself, and both defaults follow that count."""
    if all(slot.cpus is None for slot in plan.slots):
        return {}
    threads = str(plan.all_threads)
    return {
        "spark.cores.max": Setting(
            threads, "all threads of the plan, for one application", _STANDALONE
        ),
        "spark.default.parallelism": Setting(threads, "a partition per thread", _CONFIGURATION),
    }


# Settings of Atoll's own driver; a user's application brings its own.
OF_OUR_DRIVER = (
    "spark.app.name",
    "spark.driver.extraJavaOptions",
    "spark.eventLog.enabled",
    "spark.eventLog.dir",
    "spark.eventLog.rolling.enabled",
    "spark.eventLog.compress",
    "spark.ui.showConsoleProgress",
)

# ---- the environment and the log -----------------------------------------------------------------


def events_folder(scratch: str) -> str:
    """The folder of the event log; the driver creates it."""
    return f"{scratch}/events"


def environment(installation: Installation, run_dir: str, scratch: str) -> dict[str, str]:
    return {
        "JAVA_HOME": os.path.dirname(os.path.dirname(installation.java)),
        "SPARK_HOME": installation.home,
        # Spark's shell wrappers would set it. Without it a worker looks for a source tree when it
        # starts its executor. Spark 4 is built with no other Scala.
        "SPARK_SCALA_VERSION": "2.13",
        "SPARK_CONF_DIR": f"{run_dir}/conf",
        "SPARK_ENV_LOADED": "1",  # no shell runs spark-env.sh; its literal exports are added here
        "SPARK_LOCAL_DIRS": f"{scratch}/local",
    }


def local_address(address: str) -> dict[str, str]:
    """The web pages of master and workers follow it, and what executors send each other."""
    return {"SPARK_LOCAL_IP": address}


LOG4J = """\
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{yyyy-MM-dd HH:mm:ss.SSS} %p %c{1}: %m%n%ex
# It warns at every start, which would pass for the last words of a process that dies later.
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
"""


def options(flags: Iterable[str]) -> str:
    """JVM options as Spark splits them (CommandBuilderUtils.parseOptionString): a flag with a blank
    is in quotes."""
    return " ".join(
        '"' + flag.replace("\\", "\\\\").replace('"', '\\"') + '"'
        if any(mark in flag for mark in " \t\"'\\")
        else flag
        for flag in flags
    )


def text(settings: Mapping[str, str]) -> str:
    return "".join(f"{key} {write_property(value)}\n" for key, value in settings.items())
