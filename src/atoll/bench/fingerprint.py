"""The environment in which figures were measured, with the engines and the data of a bench."""

from __future__ import annotations

from collections.abc import Mapping

from atoll.engines.api import Installation
from atoll.host.api import Host
from atoll.host.environment import emulated, environment
from atoll.schema.machine import Machine
from atoll.schema.results import Fingerprint


def fingerprint(
    host: Host,
    machine: Machine,
    installations: Mapping[str, Installation],
    *,
    data_checksum: str,
) -> Fingerprint:
    java = sorted({found.java_version for found in installations.values() if found.java_version})
    return Fingerprint(
        **dict(environment(host, machine)),
        engine_versions={name: found.version for name, found in sorted(installations.items())},
        java_version=", ".join(java),
        data_checksum=data_checksum,
        emulated=emulated(host),
        clock="client",
    )
