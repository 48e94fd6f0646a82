"""What tells Trino from Presto. All else about them is the same (`atoll.engines.trino.cluster`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

CATALOGS: Mapping[str, str] = {
    "tpch": "connector.name=tpch\n",
    "tpcds": "connector.name=tpcds\n",
}


@dataclass(frozen=True, slots=True)
class Family:
    # Where it is found, and with which Java.
    name: str
    version: str  # or a later one
    jar: str  # a file of lib whose name ends with the version
    java_major: int
    java_or_later: bool
    jdk: str  # the part that `atoll engine install` brings
    ratio_source: str  # of the heap's share

    # How it is asked.
    header: str  # X-...-User
    file_scheme: str  # of a table's location
    answers_one: bool  # its own tree lets nobody but one secret user ask
    authenticates_http: bool  # and not HTTPS alone

    # How it is started.
    main_class: str
    plugins: tuple[str, ...]
    secrets_plugins: str  # the folder of what reads secrets for a tree; empty: there is none
    flags: tuple[str, ...]  # of Atoll's own jvm.config
    arguments: tuple[str, ...]  # the JVM's own, which no jvm.config has; {port}: the instance's
    files: Mapping[str, str]  # of etc, that these name

    # How it is configured.
    suite_catalog: str  # {scratch}: where the metastore lies
    own_config: Mapping[str, str]  # only where the user brings none
    coordinator_config: Mapping[str, str]
    config: Mapping[str, str | None]  # placement's, beside what both have
    per_node_limits: tuple[str, ...]  # settings that limit what queries take on a node
