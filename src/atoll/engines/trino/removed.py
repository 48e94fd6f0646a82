"""What Atoll removes from a user's own configuration of Trino or Presto, with the reasons. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from atoll.engines.explained import Why
from atoll.engines.trino.settings import Cluster, Instance
from atoll.engines.trino.user_tree import CATALOG_FOLDER, JMX_PORTS
from atoll.engines.userconfig.java import MACHINE_WIDE, SHARED

# A worker refuses to start with settings that it does not read. The first are for clients, which
# ask the coordinator; the others are for the coordinator's work and for HTTP clients that only it
# has (the modules of Trino 476 and Presto 0.287).
_NOT_FOR_WORKERS = (
    *("http-server.https.", "http-server.authentication.", "http.authentication.krb5.", "web-ui."),
    *("password-authenticator.", "header-authenticator.", "jwk.", "oauth2-jwk."),
    *("catalog.prune.", "catalog.store", "discovery-server.", "event.", "failure-detector."),
    *("memory-manager.", "memoryManager.", "scheduler.", "transaction."),
    *("worker-info.", "workerInfo."),
)
_NO_SHARING = Why("instances cannot share it")
# Settings for one instance per machine: ports and log files, which N instances cannot share (the
# first listens on all addresses), and the number of workers, which the plan decides.
_ONE_INSTANCE_ONLY = {
    "http-server.admin.port": _NO_SHARING,
    **dict.fromkeys(
        ("log.path", "log.output-file", "log.enable-console"),
        Why("instances cannot share a log file; each has its log on the console"),
    ),
    **dict.fromkeys(
        ("query-manager.required-workers", "cluster.required-workers-active"),
        Why("the plan decides the number of workers"),
    ),
}
_DECIDED = {
    "internal-communication.https.required": Why("instances talk HTTP"),
    **dict.fromkeys(
        ("http-server.log.path", CATALOG_FOLDER, "node-scheduler.include-coordinator"),
        Why("the plan decides it"),
    ),
}
_CLIENTS_OWN = Why("a worker does not start with settings that only the coordinator reads")


def removed_settings(cluster: Cluster, instance: Instance) -> dict[str, Why]:
    """Settings that are removed from config.properties, unless `server_settings` has them."""
    not_here = [name for name in cluster.config if instance.slot and _is_clients(name)]
    # Those that name a port have their own value in `server_settings`.
    hidden = [name for name in JMX_PORTS if name in cluster.config and not instance.is_first]
    return {
        **dict.fromkeys(hidden, _NO_SHARING),
        **_ONE_INSTANCE_ONLY,
        **_DECIDED,
        **dict.fromkeys((*cluster.family.coordinator_config, *not_here), _CLIENTS_OWN),
    }


def _is_clients(name: str) -> bool:
    return name.startswith(_NOT_FOR_WORKERS)


def removed_flags(cluster: Cluster, node: Mapping[str, object]) -> re.Pattern[str]:
    """JVM flags of the user's that hold for a whole machine, or set what Atoll sets in `node`."""
    decided = "|".join(map(re.escape, node))
    wide = SHARED if cluster.is_whole_machine else MACHINE_WIDE
    return re.compile(f"{wide.pattern}|-D(?:{decided})=")


# In packages, node.properties also has the folders, and settings of the package's start script.
REMOVED_FROM_NODE = {
    "node.external-address": Why("an instance has one address"),
    "node.internal-address-source": Why("an instance has one address"),
    **dict.fromkeys(
        ("plugin.dir", CATALOG_FOLDER), Why("it is in config.properties of the instance")
    ),
    **dict.fromkeys(
        ("node.launcher-log-file", "node.server-log-file"),
        Why("only the package's start script reads it"),
    ),
}
