"""Spark SQL, standalone: a master, a worker with one executor per slot, and a driver.

The driver is Atoll's SQL host with a session in client mode. A worker starts the executor, which
runs the tasks and inherits the worker's place. All JVMs are started with `java -cp` and not with
Spark's shell wrappers, so that the process that Atoll places and watches is the engine itself.
Everything listens on 127.0.0.1, or where the plan says, and answers only to processes that know the
deployment's secret.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from atoll.engines.api import Client, Installation, Layout, Table
from atoll.engines.explained import reasons, values
from atoll.engines.facts import EngineFacts
from atoll.engines.java import find_java
from atoll.engines.spark import settings, user_tree
from atoll.engines.spark.facts import FACTS
from atoll.engines.spark.stages import graph
from atoll.engines.sql.client import connect_all
from atoll.engines.sql.host import sql_host_argv
from atoll.engines.userconfig.agents import AGENT
from atoll.engines.userconfig.changes import setting_name
from atoll.engines.userconfig.java import INSTANCE_FLAGS
from atoll.engines.userconfig.tree import UserTree
from atoll.errors import EngineFailed
from atoll.host.api import Host
from atoll.install import installed
from atoll.schema.deployment import ProcessSpec, Role
from atoll.schema.operator_graph import OperatorGraph
from atoll.schema.plan import LOOPBACK, EngineTraits, Plan, Slot, TaskThreads
from atoll.schema.size import MIB

JAVA_MAJOR = 17

_TRAITS = EngineTraits(
    name="spark",
    distributed=True,
    parallel_query=True,
    has_coordinator=True,
    jvm=True,
    listens=True,
    heap_ratio=0.75,
    ratio_source="Spark's guide, Hardware Provisioning: at most 75 % of the memory",
    min_heap_bytes=512 * MIB,  # Spark refuses executors below 450 MiB
    coordinator_bytes=settings.DRIVER_BYTES,
    # Measured: 175 MiB of the master, 330 of the driver's JVM outside its heap, 56 of Python.
    coordinator_overhead_bytes=640 * MIB,
    # Measured: 175 MiB of the worker, and 250 to 300 MiB of the executor outside its heap.
    overhead_bytes=512 * MIB,
    off_heap_ratio=0.1,
    page_cache_ratio=0.1,
    reserve_source="Spark's configuration, spark.executor.memoryOverheadFactor: 10 % of the "
    "heap; page cache: rule of this tool, not a measurement",
    query_ratio=0.6,
    query_reserved_bytes=300 * MIB,
    query_source="Spark's tuning guide, spark.memory.fraction: 60 % of the heap less 300 MiB",
    shuffles=True,
    task_threads=TaskThreads(
        comm="Executor task ", java="Executor task (launch|idle) worker", idle="Executor task i"
    ),
)


@dataclass(frozen=True, slots=True)
class SparkEngine:
    """See `atoll.engines.api.ConfigurableEngine` and `UnattendedEngine`."""

    tree: UserTree | None = None
    outlives_atoll: bool = False  # then the driver is the user's own application
    secret: str = field(default="", repr=False)  # of a cluster

    facts: ClassVar[EngineFacts] = FACTS
    document: ClassVar[str] = "Spark's event log"

    @property
    def traits(self) -> EngineTraits:
        return user_tree.traits(_TRAITS, self.tree) if self.tree else _TRAITS

    def graph(self, document: bytes) -> OperatorGraph:
        """See `atoll.engines.api.ProfiledEngine`."""
        return graph(document)

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
            engine="spark",
            part=installed(f"openjdk-{JAVA_MAJOR}"),
        )
        return Installation(version, spec.submodule_search_locations[0], java, java_version)

    def ports(self, plan: Plan) -> int:
        return (0 if plan.cluster else 1) + len(plan.slots)

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
        home = settings.master(plan, ports)
        worker_ports = ports[-len(plan.slots) :]
        env = settings.environment(installation, run_dir, scratch)
        env |= settings.local_address(home.address)
        agents = user_tree.Agents({}, [[] for _ in plan.slots])
        if self.tree:
            env = user_tree.environment(self.tree) | env
            agents = user_tree.agents(self.tree, len(plan.slots), ports)
        with_agents = [slot for slot in plan.slots if agents.executors[slot.index]]
        daemon = settings.daemon_argv(installation, run_dir)
        master = ProcessSpec(
            name="master",
            role=Role.COORDINATOR,
            slot=None,
            argv=(
                *daemon,
                "org.apache.spark.deploy.master.Master",
                *("--host", home.address),
                *("--port", str(home.port)),
                *("--webui-port", "0"),
            ),
            env=env,
            stage=0,
            ready_port=home.port,
            ready_address=home.address,
        )
        workers = tuple(
            ProcessSpec(
                name=f"worker-{slot.index}",
                role=Role.WORKER,
                slot=slot.index,
                argv=(
                    *daemon,
                    "org.apache.spark.deploy.worker.Worker",
                    *("--host", address),
                    *("--port", str(port)),
                    *("--webui-port", "0"),
                    *(() if slot.cpus is None else ("--cores", str(slot.threads))),
                    *("--memory", f"{settings.heap_mib(plan)}m"),
                    *("--work-dir", f"{scratch}/work-{slot.index}"),
                    f"spark://{home.address}:{home.port}",
                ),
                env=env
                | settings.local_address(address)
                | settings.executor_environment(slot, plan, scratch)
                # A worker gives its executor the flags that it finds there.
                | ({"SPARK_CONF_DIR": f"{run_dir}/{_folder(slot)}"} if slot in with_agents else {}),
                stage=1,
                ready_port=port,
                ready_address=address,
            )
            for slot, port in zip(plan.slots, worker_ports, strict=True)
            for address in [slot.address or LOOPBACK]
        )
        driver = ProcessSpec(
            name="driver",
            role=Role.DRIVER,
            slot=None,
            argv=sql_host_argv(
                "atoll.engines.spark.backend:SparkBackend", socket, f"{run_dir}/sqlhost.json"
            ),
            env=env,
            stage=2,
            ready_socket=socket,
        )
        defaults = settings.defaults(plan, home, scratch, self.secret)
        configuration = self._configuration(plan, values(defaults), agents)
        names = [*configuration, *(self.tree.others if self.tree else ())]
        own = [f"{_folder(slot)}/{INSTANCE_FLAGS}" for slot in with_agents]
        joins = plan.cluster is not None and not plan.cluster.leads
        return Layout(
            processes=workers if joins else (master, *workers, driver),
            files={
                **{f"conf/{name}": text for name, text in configuration.items()},
                **{
                    path: "".join(
                        f"{settings.options([f])}\n" for f in agents.executors[slot.index]
                    )
                    for path, slot in zip(own, with_agents, strict=True)
                },
                "sqlhost.json": json.dumps(
                    {"executors": plan.joining, "events": settings.events_folder(scratch)}
                ),
            },
            copies={f"conf/{name}": f"{self.tree.root}/{name}" for name in self.tree.others}
            if self.tree
            else {},
            links={
                f"{_folder(slot)}/{name}": f"{run_dir}/conf/{name}"
                for slot in with_agents
                for name in names
            },
            endpoints=() if joins else (socket,),
            reasons={
                **{setting_name(flag): AGENT for own in agents.executors for flag in own},
                **user_tree.REMOVED,
                **settings.flag_reasons(plan, scratch),
                **reasons(defaults),
            },
        )

    def _configuration(
        self, plan: Plan, defaults: dict[str, str], agents: user_tree.Agents
    ) -> dict[str, str]:
        if self.outlives_atoll:
            defaults = {
                key: value for key, value in defaults.items() if key not in settings.OF_OUR_DRIVER
            }
        texts = {"log4j2.properties": settings.LOG4J}
        if self.tree is None:
            texts["spark-defaults.conf"] = settings.text(defaults)
        else:
            texts |= user_tree.files(self.tree, defaults, plan, agents.driver)
        return texts

    def on(self, tree: UserTree) -> SparkEngine:
        user_tree.check(tree)
        user_tree.traits(_TRAITS, tree)  # raises UsageError for a size that it cannot read
        return replace(self, tree=tree)

    def spanning(self, secret: str) -> SparkEngine:
        return replace(self, secret=secret)

    def unattended(self) -> SparkEngine:
        return replace(self, outlives_atoll=True)

    def connect(self, endpoints: Sequence[str], *, timeout_s: float) -> list[Client]:
        return connect_all(endpoints, timeout_s=timeout_s)

    def attach(self, table: Table) -> list[str]:
        quoted = table.path.replace("\\", "\\\\").replace("'", "\\'")
        return [
            f"create or replace temporary view {table.name} using parquet options (path '{quoted}')"
        ]


def _folder(slot: Slot) -> str:
    """The configuration of a worker whose executor has agents."""
    return f"worker-{slot.index}/conf"
