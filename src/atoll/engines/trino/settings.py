"""What an instance of Trino or Presto is told: the settings that placement decides. Pure.

Both engines are told the same under mostly the same names; what differs is a `Family`. Sizes follow
Trino's manual (Deploying Trino, Resource management properties, Task properties).
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from atoll.engines.api import Installation
from atoll.engines.trino.environment import holds_settings
from atoll.engines.trino.family import Family
from atoll.engines.trino.user_tree import CATALOG_FOLDER, CONFIG, JVM, NODE
from atoll.engines.userconfig.java import COLLECTOR, MACHINE_WIDE, flag_kind
from atoll.engines.userconfig.merge import (
    Settings,
    merge_flags,
    merge_properties,
    read_flags,
    read_properties,
)
from atoll.engines.userconfig.tree import UserTree
from atoll.schema.plan import Plan, Slot

_MIB = 1 << 20
HTTPS_PORT = "http-server.https.port"
# How each name begins that a worker takes for an error: nobody there reads it. The first are for
# clients, who ask the coordinator; the others are the coordinator's work, and clients of HTTP that
# it alone has (the modules of Trino 476 and Presto 0.287).
_NOT_FOR_WORKERS = (
    *("http-server.https.", "http-server.authentication.", "http.authentication.krb5.", "web-ui."),
    *("password-authenticator.", "header-authenticator.", "jwk.", "oauth2-jwk."),
    *("catalog.prune.", "catalog.store", "discovery-server.", "event.", "failure-detector."),
    *("memory-manager.", "memoryManager.", "scheduler.", "transaction."),
    *("worker-info.", "workerInfo."),
)
# Of a machine with one instance: ports and log files that N cannot share, the first of which listen
# to the network; and how many workers there must be, which is the plan's to say.
_ONE_INSTANCE_ONLY = (
    *("jmx.rmiregistry.port", "jmx.rmiserver.port", "http-server.admin.port"),
    *("log.path", "log.output-file", "log.enable-console"),
    *("query-manager.required-workers", "cluster.required-workers-active"),
)
# Folders that an instance takes for its own: one that starts deletes what it finds in them, or
# takes it for its own cache. Key to the name of what it gets instead.
_OWN_FOLDERS = {
    "spiller-spill-path": "spill",
    "experimental.spiller-spill-path": "spill",
    "fs.cache.directories": "cache",
    "cache.base-directory": "cache",
    "fragment-result-cache.base-directory": "fragments",
}
# A folder that instances can share, since dumps have pids in their names; a file they could not.
_DUMPS = re.compile(r"-XX:HeapDumpPath=/.*(?<!\.hprof)$")
_AUTHENTICATION = "http-server.authentication.type"
# The most that Trino takes by default for what no query is charged for.
HEADROOM = 0.3
_LEAST_CONCURRENCY, _MOST_CONCURRENCY = 2, 32


@dataclass(frozen=True, slots=True)
class Instance:
    name: str
    slot: Slot | None  # None: the coordinator
    port: int
    heap_bytes: int
    flags: tuple[str, ...]  # what its JVM is told of its place


def merged(
    texts: Mapping[str, str],
    base: UserTree | None,
    instance: Instance,
    settings: Settings,
    scratch: str,
) -> dict[str, str]:
    root = f"{base.root}/" if base else ""
    node = {
        "node.id": instance.name,
        "node.data-dir": f"{scratch}/{instance.name}",
        "node.bind-ip": "127.0.0.1",
        "node.internal-address": "127.0.0.1",
        "node.external-address": None,
        "node.internal-address-source": None,
        # Here too in packages: where things lie, and what is meant for their start script.
        "plugin.dir": None,
        CATALOG_FOLDER: None,
        "node.launcher-log-file": None,
        "node.server-log-file": None,
    }
    if "node.environment" not in read_properties(texts.get(NODE, ""), where=root + NODE):
        node["node.environment"] = "atoll"
    # They become the JVM's own properties, which go before config.properties.
    node |= {key: None for key in settings if key not in node}
    decided = "|".join(map(re.escape, node))
    flags = _flags(instance, scratch)
    folders = {
        name: merge_properties(text, found, where=root + name)
        for name, text in texts.items()
        if holds_settings(name) and (found := _own_folders(name, text, instance, scratch))
    }
    users = read_flags(texts.get(JVM, ""), where=root + JVM)
    if not any(flag_kind(flag) == COLLECTOR for flag in users):
        # With one CPU a JVM would take Serial, of whose heap a part is not available to the server:
        # it does not start then.
        flags.append("-XX:+UseG1GC")
    if "-XX:+HeapDumpOnOutOfMemoryError" in users and not any(map(_DUMPS.match, users)):
        flags.append(f"-XX:HeapDumpPath={scratch}")  # not into the working folder, see below
    return {
        **folders,
        CONFIG: merge_properties(folders.get(CONFIG, texts[CONFIG]), settings, where=root + CONFIG),
        NODE: merge_properties(texts.get(NODE, ""), node, where=root + NODE),
        JVM: merge_flags(
            texts.get(JVM, ""),
            flags,
            where=root + JVM,
            without=re.compile(f"{MACHINE_WIDE.pattern}|-D(?:{decided})="),
        ),
    }


def _own_folders(name: str, text: str, instance: Instance, scratch: str) -> dict[str, str]:
    """Of the file `name`: as many folders as it names, which other settings may count."""
    found = {}
    for key, value in read_properties(text, where=name).items():
        if key in _OWN_FOLDERS:
            scheme = "file://" if value.startswith("file:") else ""
            stem = os.path.basename(name).removesuffix(".properties")
            folder = f"{scheme}{scratch}/{instance.name}/{_OWN_FOLDERS[key]}-{stem}"
            found[key] = ",".join(f"{folder}-{at}" for at, _ in enumerate(value.split(",")))
    return found


def _flags(instance: Instance, scratch: str) -> list[str]:
    heap = f"{instance.heap_bytes // _MIB}m"
    # A user's -Xms may be above this heap.
    starts = [] if any(flag.startswith("-Xms") for flag in instance.flags) else [f"-Xms{heap}"]
    return [*starts, f"-Xmx{heap}", f"-Djava.io.tmpdir={scratch}", *instance.flags]


def shared_settings(
    family: Family,
    plan: Plan,
    coordinator_port: int,
    installation: Installation,
    run_dir: str,
    base: UserTree | None,
    *,
    catalogs: str,
) -> dict[str, str | None]:
    total = sum(_query_bytes(slot.heap_bytes) for slot in plan.slots)
    return {
        **family.config,
        "http-server.http.enabled": "true",
        "discovery.uri": f"http://127.0.0.1:{coordinator_port}",
        "internal-communication.shared-secret": secrets.token_hex(32),
        "internal-communication.https.required": None,
        "query.max-memory": _mib(total),
        "query.max-total-memory": None,  # twice as much by default
        # Plans are made on the coordinator and run on workers, which must agree on it.
        "task.concurrency": str(_concurrency(max(slot.threads for slot in plan.slots))),
        # Own plugins: the wanted ones only, which starts faster.
        "plugin.dir": f"{installation.home}/plugin" if base else f"{run_dir}/plugin",
        CATALOG_FOLDER: None if catalogs == "catalog" else f"etc/{catalogs}",
    }


def own_settings(
    family: Family,
    instance: Instance,
    base: UserTree | None,
    config: Mapping[str, str],
    ports: Sequence[int],
    scratch: str,
    *,
    stands: bool,
) -> dict[str, str | None]:
    """`config`: what the server would be told by the tree alone."""
    heap = instance.heap_bytes
    settings: dict[str, str | None] = {
        # By default below the working folder, which may lie in memory.
        "http-server.log.path": f"{scratch}/{instance.name}/http-request.log" if base else None,
        "http-server.http.port": str(instance.port),
        **dict.fromkeys(family.per_node_limits, _mib(_query_bytes(heap))),
        "memory.heap-headroom-per-node": _mib(int(heap * HEADROOM)),
        **dict.fromkeys(_ONE_INSTANCE_ONLY),
    }
    if instance.slot is None:
        settings |= {
            "coordinator": "true",
            "node-scheduler.include-coordinator": "false",
            **family.coordinator_config,
        }
        if stands:  # its clients know its port and authenticate; Atoll is none of them
            return settings
        if serves_tls(config):
            settings[HTTPS_PORT] = str(ports[-1])
        if _AUTHENTICATION in config and family.authenticates_http:
            # Atoll has no password: it asks over HTTP, which is on loopback.
            settings["http-server.authentication.allow-insecure-over-http"] = "true"
        return settings
    return settings | {
        "coordinator": "false",
        "node-scheduler.include-coordinator": None,
        **dict.fromkeys(family.coordinator_config),
        "task.max-worker-threads": str(2 * instance.slot.threads),
        **{name: None for name in config if name.startswith(_NOT_FOR_WORKERS)},
    }


def serves_tls(config: Mapping[str, str]) -> bool:
    return config.get("http-server.https.enabled", "").lower() == "true"


def _query_bytes(heap_bytes: int) -> int:
    """All that queries may be charged for on a node: with the headroom it must fit the heap."""
    return heap_bytes - int(heap_bytes * HEADROOM) - _MIB


def _concurrency(threads: int) -> int:
    """Trino's own rule: the next power of two, within bounds."""
    return min(max(1 << (threads - 1).bit_length(), _LEAST_CONCURRENCY), _MOST_CONCURRENCY)


def _mib(size_bytes: int) -> str:
    return f"{size_bytes // _MIB}MB"
