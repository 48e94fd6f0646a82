"""What an instance of Trino or Presto is told: the settings that placement decides. Pure.

Both engines are told the same under mostly the same names; what differs is a `Family`. Sizes follow
Trino's manual (Deploying Trino, Resource management properties, Task properties).
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from atoll.engines.base import Base, Installation
from atoll.engines.settings import Settings, merge_flags, merge_properties, read_properties
from atoll.engines.settings_java import MACHINE_WIDE
from atoll.schema.plan import Plan, Slot

CONFIG, NODE, JVM = "config.properties", "node.properties", "jvm.config"

_MIB = 1 << 20
_HTTPS = "http-server.https.enabled"
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
# An instance that starts deletes what it finds there of others.
_SPILL = ("spiller-spill-path", "experimental.spiller-spill-path")
_AUTHENTICATION = "http-server.authentication.type"
# The most that Trino takes by default for what no query is charged for.
HEADROOM = 0.3
_LEAST_CONCURRENCY, _MOST_CONCURRENCY = 2, 32


@dataclass(frozen=True, slots=True)
class Family:
    """What tells Trino from Presto."""

    main_class: str
    plugins: tuple[str, ...]
    flags: tuple[str, ...]  # of Atoll's own jvm.config
    arguments: tuple[str, ...]  # the JVM's own, which no jvm.config has
    catalogs: Mapping[str, str]  # own catalogs beside that of the suites: name -> text
    suite_catalog: str  # {scratch}: where the metastore lies
    own_config: Mapping[str, str]  # only where the user brings none
    coordinator_config: Mapping[str, str]
    config: Mapping[str, str | None]  # placement's, beside what both have
    per_node_limits: tuple[str, ...]  # settings that limit what queries take on a node
    answers_one: bool  # its own tree lets nobody but one secret user ask
    authenticates_http: bool  # and not HTTPS alone


@dataclass(frozen=True, slots=True)
class Instance:
    name: str
    slot: Slot | None  # None: the coordinator
    port: int
    heap_bytes: int
    flags: tuple[str, ...]  # what its JVM is told of its place


def merged(
    texts: Mapping[str, str],
    base: Base | None,
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
        "catalog.config-dir": None,
        "node.launcher-log-file": None,
        "node.server-log-file": None,
    }
    if "node.environment" not in read_properties(texts.get(NODE, ""), where=root + NODE):
        node["node.environment"] = "atoll"
    flags = _flags(instance, scratch)
    if "HeapDumpOnOutOfMemoryError" in texts.get(JVM, ""):
        flags.append(f"-XX:HeapDumpPath={scratch}")  # not into the working folder, see below
    return {
        CONFIG: merge_properties(texts[CONFIG], settings, where=root + CONFIG),
        NODE: merge_properties(texts.get(NODE, ""), node, where=root + NODE),
        JVM: merge_flags(texts.get(JVM, ""), flags, where=root + JVM, without=MACHINE_WIDE),
    }


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
    base: Base | None,
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
        "catalog.config-dir": None,
    }


def own_settings(
    family: Family,
    instance: Instance,
    base: Base | None,
    config: Mapping[str, str],
    ports: Sequence[int],
    scratch: str,
) -> dict[str, str | None]:
    """`config`: what the tree's config.properties says by itself."""
    heap = instance.heap_bytes
    settings: dict[str, str | None] = {
        # By default below the working folder, which may lie in memory.
        "http-server.log.path": f"{scratch}/{instance.name}/http-request.log" if base else None,
        "http-server.http.port": str(instance.port),
        **dict.fromkeys(family.per_node_limits, _mib(_query_bytes(heap))),
        "memory.heap-headroom-per-node": _mib(int(heap * HEADROOM)),
        **dict.fromkeys(_ONE_INSTANCE_ONLY),
        **{name: f"{scratch}/{instance.name}/spill" for name in _SPILL if name in config},
    }
    if instance.slot is None:
        settings |= {
            "coordinator": "true",
            "node-scheduler.include-coordinator": "false",
            **family.coordinator_config,
        }
        if has_https(config):
            settings["http-server.https.port"] = str(ports[-1])
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


def has_https(config: Mapping[str, str]) -> bool:
    return config.get(_HTTPS) == "true"


def _query_bytes(heap_bytes: int) -> int:
    """All that queries may be charged for on a node: with the headroom it must fit the heap."""
    return heap_bytes - int(heap_bytes * HEADROOM) - _MIB


def _concurrency(threads: int) -> int:
    """Trino's own rule: the next power of two, within bounds."""
    return min(max(1 << (threads - 1).bit_length(), _LEAST_CONCURRENCY), _MOST_CONCURRENCY)


def _mib(size_bytes: int) -> str:
    return f"{size_bytes // _MIB}MB"
