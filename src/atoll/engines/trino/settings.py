"""The settings of a Trino or Presto instance: threads, addresses, JVM flags. Pure.

Each setting stands with its reason and the reason's source, which `atoll render --explain` prints.
`atoll.engines.trino.family` has the settings that differ between the two engines, `memory` the
limits of queries.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from atoll.engines.api import Installation
from atoll.engines.explained import Reasons, Setting, Why, values
from atoll.engines.java import JVM_FLAGS
from atoll.engines.trino.family import G1, Family
from atoll.engines.trino.memory import limits_to_change, own_limits
from atoll.engines.trino.user_tree import (
    CATALOG_FOLDER,
    JMX_PORTS,
    agents,
    catalog_folder,
    is_port,
    server_properties,
)
from atoll.engines.userconfig.agents import deal_ports
from atoll.engines.userconfig.java import COLLECTOR, flag_kind
from atoll.engines.userconfig.merge import read_properties
from atoll.engines.userconfig.tree import UserTree
from atoll.plan.jvm import placement_flags
from atoll.schema.plan import LOOPBACK, Plan, Slot
from atoll.schema.size import MIB

COORDINATOR_BYTES = 1 << 30  # the least heap of a coordinator

_DEPLOY = "Trino's manual, Deploying Trino"
_TASKS = "Trino's manual, Task properties"
_SECURE = "Trino's manual, Secure internal communication"


@dataclass(frozen=True, slots=True)
class Instance:
    name: str
    slot: Slot | None  # None: the coordinator
    port: int
    heap_bytes: int
    address: str
    agents: Mapping[int, int]  # the user's port of an agent -> this instance's

    @property
    def is_first(self) -> bool:
        return self.slot is None


@dataclass(frozen=True)
class Cluster:
    """What the settings of all instances depend on."""

    family: Family
    plan: Plan
    installation: Installation
    tree: UserTree | None
    ports: Sequence[int]  # for TLS if Atoll chooses that port, the coordinator's, the workers'
    run_dir: str
    scratch: str
    outlives_atoll: bool
    secret: str = field(default_factory=lambda: secrets.token_hex(32), repr=False)

    @cached_property
    def is_whole_machine(self) -> bool:
        """Whether the one worker has no mask (wim). The engine then counts the CPUs itself."""
        return all(slot.cpus is None for slot in self.plan.slots)

    @cached_property
    def config(self) -> Mapping[str, str]:
        """The server's properties without Atoll's settings."""
        return server_properties(self.tree) if self.tree else values(self.family.own_config)

    @cached_property
    def tls_port(self) -> str:
        """The coordinator's port for TLS; '' if the tree has none. Clients of a cluster that
        outlives Atoll know the tree's port; otherwise that port may be taken."""
        if self.tree is None or not serves_tls(self.config):
            return ""
        return self.config.get(HTTPS_PORT, "8443") if self.outlives_atoll else str(self.ports[0])

    @cached_property
    def http_ports(self) -> Sequence[int]:
        """The coordinator's first, then the workers'."""
        return self.ports[1:] if self.tls_port and not self.outlives_atoll else self.ports

    @cached_property
    def catalogs(self) -> str:
        """The folder of the catalogs, below etc."""
        return catalog_folder(self.tree) if self.tree else "catalog"

    @cached_property
    def instances(self) -> list[Instance]:
        place = self.plan.coordinator
        # A plan edited by hand may have no coordinator, or one without a heap.
        heap = (place.heap_bytes if place else 0) or COORDINATOR_BYTES
        places: list[tuple[str, Slot | None, int]] = [
            ("coordinator", None, heap),
            *((f"worker-{slot.index}", slot, slot.heap_bytes) for slot in self.plan.slots),
        ]
        return [
            Instance(name, slot, port, heap_bytes, self.address_of(slot), agents)
            for (name, slot, heap_bytes), port, agents in zip(
                places, self.http_ports, self._agents(len(places)), strict=False
            )
        ]

    def address_of(self, slot: Slot | None) -> str:
        return (slot.address or LOOPBACK) if slot else self.address

    def _agents(self, instances: int) -> list[dict[int, int]]:
        if self.tree is None:
            return [{}] * instances
        taken = {*self.ports, *self.tree.taken_ports}
        if serves_tls(self.config) and self.outlives_atoll:
            taken.add(int(self.config.get(HTTPS_PORT, "8443")))
        return deal_ports(agents(self.tree), instances, taken)

    @property
    def address(self) -> str:
        """The coordinator's."""
        place = self.plan.coordinator
        return (place.address if place else None) or LOOPBACK

    @property
    def on_network(self) -> bool:
        return bool(self.plan.addresses)

    @property
    def opens_jmx(self) -> bool:
        """Whether the user's configuration has servers listen for JMX."""
        return self.tree is not None and any(one.is_jmx for one in agents(self.tree))


# ---- flags ---------------------------------------------------------------------------------------


def jvm_flags(cluster: Cluster, instance: Instance, users: Sequence[str]) -> dict[str, Why]:
    """The flags that Atoll adds to those that jvm.config has (`users`)."""
    heap = f"{instance.heap_bytes // MIB}m"
    flags = {
        f"-Xms{heap}": JVM_FLAGS["-Xms"],
        f"-Xmx{heap}": Why(
            "a worker's heap is 75 % of its slot's memory, unless --heap or --page-cache say "
            "otherwise, the coordinator's 1/32 of the "
            "machine's (see the plan's reasons); the rest is for off-heap memory and the page "
            "cache. For many queries at once or large catalogs, give the coordinator more: "
            "heap_bytes in a plan file",
            _DEPLOY,
        ),
        f"-Djava.io.tmpdir={cluster.scratch}": Why("temporary files lie on the scratch disk"),
    }
    if instance.slot:
        placed = placement_flags(instance.slot, cluster.plan)
        flags |= {flag: JVM_FLAGS[flag_kind(flag)] for flag in placed}
    if not any(flag_kind(flag) == COLLECTOR for flag in users):
        flags["-XX:+UseG1GC"] = G1
    if "-XX:+HeapDumpOnOutOfMemoryError" in users and not any(map(_DUMPS.match, users)):
        flags[f"-XX:HeapDumpPath={cluster.scratch}"] = Why(
            "a heap dump would otherwise lie in the working folder", "HotSpot"
        )
    return flags


# A folder, which instances can share because dumps have pids in their names.
_DUMPS = re.compile(r"-XX:HeapDumpPath=/.*(?<!\.hprof)$")


# ---- threads, roles, addresses -------------------------------------------------------------------

HTTPS_PORT = "http-server.https.port"
_AUTHENTICATION = "http-server.authentication.type"
_LEAST_CONCURRENCY, _MOST_CONCURRENCY = 2, 32


def server_settings(cluster: Cluster, instance: Instance) -> dict[str, Setting]:
    """What Atoll sets in config.properties."""
    family, slot = cluster.family, instance.slot
    settings = {
        **family.config,
        "http-server.http.enabled": Setting(
            "true",
            "instances talk HTTP to each other, as --listen requests"
            if cluster.on_network
            else "instances talk HTTP on loopback, inside the machine",
            _DEPLOY,
        ),
        "discovery.uri": Setting(
            f"http://{cluster.address}:{cluster.http_ports[0]}",
            "workers announce themselves to the coordinator at its address",
            _DEPLOY,
        ),
        "internal-communication.shared-secret": Setting(
            cluster.secret, "new for each deployment; nobody joins the cluster without it", _SECURE
        ),
        **_memory(cluster, instance),
        **_threads(cluster),
        "plugin.dir": Setting(
            f"{cluster.installation.home if cluster.tree else cluster.run_dir}/plugin",
            "all plugins of the installation, because your catalogs may need any"
            if cluster.tree
            else "only the plugins in use, because all 55 make the start slower",
        ),
        "http-server.http.port": Setting(
            str(instance.port), "each instance on the machine has its own port", _DEPLOY
        ),
        "coordinator": Setting(
            "false" if slot else "true", "one coordinator plans for all workers", _DEPLOY
        ),
    }
    if cluster.catalogs != "catalog":
        settings[CATALOG_FOLDER] = Setting(
            f"etc/{cluster.catalogs}", "your folder of catalogs, in the instance's copy", _DEPLOY
        )
    for name in JMX_PORTS:
        port = cluster.config.get(name, "")
        if is_port(port):
            settings[name] = Setting(
                str(instance.agents[int(port)]), "each instance has its own port"
            )
    if cluster.tree:
        settings["http-server.log.path"] = Setting(
            f"{cluster.scratch}/{instance.name}/http-request.log",
            "the default is below the working folder, which may be in memory",
            _DEPLOY,
        )
    if slot:
        return settings | _pool(cluster, slot)
    settings |= {
        "node-scheduler.include-coordinator": Setting(
            "false",
            "the coordinator runs no tasks: they would take CPUs from one worker and not from the "
            "others",
            _DEPLOY,
        ),
        **family.coordinator_config,
    }
    # Clients of a cluster that outlives Atoll know its port and authenticate. Atoll is not one.
    if cluster.tls_port and not cluster.outlives_atoll:
        settings[HTTPS_PORT] = Setting(
            cluster.tls_port, "your port may be taken; workers need none", _DEPLOY
        )
    if authenticates(cluster) and not cluster.outlives_atoll:
        settings["http-server.authentication.allow-insecure-over-http"] = Setting(
            "true", "Atoll has no password: it asks over HTTP, which is on loopback", _SECURE
        )
    return settings


def _memory(cluster: Cluster, instance: Instance) -> dict[str, Setting]:
    heaps = [slot.heap_bytes for slot in cluster.plan.slots]
    if cluster.tree is None:
        return own_limits(cluster.family, instance.heap_bytes, heaps)
    return limits_to_change(cluster.family, cluster.config, instance.heap_bytes, heaps)


def _threads(cluster: Cluster) -> dict[str, Setting]:
    return _at_most(
        cluster,
        "task.concurrency",
        _concurrency(max(slot.threads for slot in cluster.plan.slots)),
        "threads per operator: as many as the largest slot has, as a power of two from 2 to "
        "32, which is Trino's rule. The default counts the machine's CPUs. It is the same on "
        "all nodes, because plans made on the coordinator run on workers",
    )


def _pool(cluster: Cluster, slot: Slot) -> dict[str, Setting]:
    return _at_most(
        cluster,
        "task.max-worker-threads",
        2 * slot.threads,
        "twice the slot's threads: the default's rule, applied to the slot and not to the machine",
    )


def _at_most(cluster: Cluster, name: str, most: int, why: str) -> dict[str, Setting]:
    """A number of threads; nothing if the user has a smaller one, or if there is no ceiling."""
    theirs = cluster.config.get(name, "")
    if cluster.is_whole_machine or (theirs.isdecimal() and int(theirs) <= most):
        return {}
    return {name: Setting(str(most), why, _TASKS)}


def _concurrency(threads: int) -> int:
    return min(max(1 << (threads - 1).bit_length(), _LEAST_CONCURRENCY), _MOST_CONCURRENCY)


def authenticates(cluster: Cluster) -> bool:
    """Whether the user's configuration asks for a password over HTTP, too."""
    return _AUTHENTICATION in cluster.config and cluster.family.authenticates_http


def serves_tls(config: Mapping[str, str]) -> bool:
    return config.get("http-server.https.enabled", "").lower() == "true"


def asks_password(config: Mapping[str, str]) -> bool:
    return "PASSWORD" in config.get(_AUTHENTICATION, "").upper()


def node_settings(
    cluster: Cluster, instance: Instance, node: Mapping[str, str]
) -> dict[str, Setting]:
    """What Atoll sets in node.properties, which has `node`."""
    settings = {
        "node.id": Setting(instance.name, "names the instance, also after a restart", _DEPLOY),
        "node.data-dir": Setting(
            f"{cluster.scratch}/{instance.name}", "each instance has its own folder", _DEPLOY
        ),
        "node.bind-ip": Setting(
            instance.address,
            "nothing listens on the network"
            if instance.address == LOOPBACK
            else "it listens at this address only, as --listen requests",
        ),
        "node.internal-address": Setting(
            instance.address, "other nodes reach it where it listens", _DEPLOY
        ),
    }
    if "node.environment" not in node:
        settings["node.environment"] = Setting(
            "atoll", "the same for all instances of a cluster", _DEPLOY
        )
    return settings


# ---- folders that instances cannot share ---------------------------------------------------------

_SPILL = Why(
    "each instance has its own folder: at its start it deletes what others spilled",
    "Trino 476, FileSingleStreamSpillerFactory",
)
_CACHE = Why(
    "each instance has its own folders: a cache knows only the files that it wrote itself",
    "Trino's manual, File system cache",
)
# Setting -> the name of the folder that replaces the user's, and why.
_OWN_FOLDERS = {
    "spiller-spill-path": ("spill", _SPILL),
    "experimental.spiller-spill-path": ("spill", _SPILL),
    "fs.cache.directories": ("cache", _CACHE),
    "cache.base-directory": ("cache", _CACHE),
    "fragment-result-cache.base-directory": ("fragments", _CACHE),
}
OWN_FOLDERS: Reasons = {key: why for key, (_, why) in _OWN_FOLDERS.items()}


def own_folders(name: str, text: str, instance: Instance, scratch: str) -> dict[str, str]:
    """Settings of the file `name` that get folders of the instance's own: as many folders as the
    user named, since other settings may have one value per folder."""
    found = {}
    for key, value in read_properties(text, where=name).items():
        if key in _OWN_FOLDERS:
            scheme = "file://" if value.startswith("file:") else ""
            stem = os.path.basename(name).removesuffix(".properties")
            folder = f"{scheme}{scratch}/{instance.name}/{_OWN_FOLDERS[key][0]}-{stem}"
            found[key] = ",".join(f"{folder}-{at}" for at, _ in enumerate(value.split(",")))
    return found
