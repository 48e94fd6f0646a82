"""The configuration of Atoll's own JobManager and task manager. Pure.

Both JVMs take at most 2 GiB. They listen on loopback only. No other user of the machine can have
them run code: the JobManager takes no jobs, since it runs the one on its class path (application
mode), and the messages between the two, which are Java objects, need the deployment's own key. Who
may connect to loopback may read the REST interface, and end the job through it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from atoll.schema.plan import LOOPBACK

VERSION = "2.2.1"
JOB_MANAGER = "org.apache.flink.container.entrypoint.StandaloneApplicationClusterEntryPoint"
TASK_MANAGER = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
_HEAP_MB, _FRAMEWORK_MB, _DIRECT_MB, _NETWORK_MB = 512, 128, 128, 64
_METASPACE_MB, _OVERHEAD_MB = 192, 192
_MANAGER_MB = 384
KEY = "conf/key.p12"
_LOG4J = "2.24.3"
_JARS = (
    f"flink-dist-{VERSION}.jar",
    *(f"log4j-{part}-{_LOG4J}.jar" for part in ("api", "core", "slf4j-impl")),
)
# bin/config.sh of Flink 2.2 opens these to the job's serializers.
_OPENED = ("java.lang", "java.time", "java.util")

LOG = """\
rootLogger.level = INFO
rootLogger.appenderRef.out.ref = Out
appender.out.name = Out
appender.out.type = CONSOLE
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{HH:mm:ss} %-5p %c{1} %m%n%throwable
"""


def key_command(java: str, store: str, password: str) -> tuple[str, ...]:
    """Makes the key by which both processes know each other. `password`: a file with it."""
    return (
        f"{java.removesuffix('java')}keytool",
        *("-genkeypair", "-alias", "flink", "-dname", "CN=flink", "-keyalg", "RSA"),
        *("-storetype", "PKCS12", "-keystore", store, "-storepass:file", password),
        *("-validity", "3650"),
    )


def configuration(folder: str, rpc_port: int, rest_port: int, password: str) -> str:
    """config.yaml of both."""
    key = {
        f"security.ssl.internal.{name}": f"{folder}/{KEY}" for name in ("keystore", "truststore")
    } | {
        f"security.ssl.internal.{name}-password": password
        for name in ("key", "keystore", "truststore")
    }
    own: Mapping[str, object] = {
        "jobmanager.rpc.address": LOOPBACK,
        "jobmanager.rpc.port": rpc_port,
        "jobmanager.bind-host": LOOPBACK,
        "rest.address": LOOPBACK,
        "rest.bind-address": LOOPBACK,
        "rest.port": rest_port,
        "rest.bind-port": f'"{rest_port}"',
        "web.submit.enable": "false",
        "security.ssl.internal.enabled": "true",
        "taskmanager.host": LOOPBACK,
        "taskmanager.bind-host": LOOPBACK,
        "io.tmp.dirs": f"{folder}/tmp",
        "blob.storage.directory": f"{folder}/blob",
        "taskmanager.numberOfTaskSlots": 1,  # the tasks of a job share it
        "taskmanager.cpu.cores": 1.0,
        "taskmanager.memory.task.heap.size": f"{_HEAP_MB}m",
        "taskmanager.memory.task.off-heap.size": "0b",
        "taskmanager.memory.framework.heap.size": f"{_FRAMEWORK_MB}m",
        "taskmanager.memory.framework.off-heap.size": f"{_DIRECT_MB}m",
        "taskmanager.memory.network.min": f"{_NETWORK_MB}m",
        "taskmanager.memory.network.max": f"{_NETWORK_MB}m",
        "taskmanager.memory.managed.size": "0b",
        "taskmanager.memory.jvm-metaspace.size": f"{_METASPACE_MB}m",
        "taskmanager.memory.jvm-overhead.min": f"{_OVERHEAD_MB}m",
        "taskmanager.memory.jvm-overhead.max": f"{_OVERHEAD_MB}m",
        # A record waits up to this time for others that share its buffer, at each of its steps.
        "execution.buffer-timeout.interval": "10 ms",
        "metrics.fetcher.update-interval": 100,  # ms; counts are not older than that
        # On a machine that is busy the start of 44 tasks may take longer than the default, 10 s.
        "pekko.ask.timeout": "2 min",
        "heartbeat.timeout": 120_000,  # ms
        "restart-strategy.type": "none",  # a job that failed is not measured
    }
    return "".join(f"{name}: {value}\n" for name, value in {**own, **key}.items())


def command(
    java: str, home: str, folder: str, classes: str, main: str, arguments: Sequence[str]
) -> tuple[str, ...]:
    """A JVM of Flink, without its shell scripts, so that the process is the engine itself."""
    heap_mb = _HEAP_MB + _FRAMEWORK_MB if main == TASK_MANAGER else _MANAGER_MB
    # The serial collector has no threads of its own beside those of the operators.
    lean = ("-XX:TieredStopAtLevel=1",) if main == JOB_MANAGER else ()
    return (
        java,
        f"-Xmx{heap_mb}m",
        f"-XX:MaxMetaspaceSize={_METASPACE_MB}m",
        f"-XX:MaxDirectMemorySize={_DIRECT_MB + _NETWORK_MB}m",
        "-XX:+UseSerialGC",
        "-XX:-UsePerfData",
        *lean,
        *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
        f"-Djava.io.tmpdir={folder}/tmp",
        f"-Dlog4j.configurationFile=file:{folder}/conf/log4j.properties",
        "-cp",
        ":".join((*(f"{home}/lib/{jar}" for jar in _JARS), classes)),
        main,
        *("--configDir", f"{folder}/conf"),
        *arguments,
    )
