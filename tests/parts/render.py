"""What the tests of rendering share."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from atoll.engines import registry
from atoll.engines.api import Engine, Installation
from atoll.engines.rendered import Target
from atoll.plan import make_plan
from atoll.render.deployment import UnattendedDeployment, lay_out
from atoll.schema.machine import Machine
from atoll.schema.plan import Placement
from tests.parts.machines import milan

TARGET = Target(name="t", folder="/srv/t", user="engine", port_base=9000, data="/srv/t/data")
THERE = Installation("1", "/opt/engine", "/opt/java/bin/java")
ENGINES: Sequence[str] = ("trino", "presto", "spark", "postgresql", "mariadb")


def unattended(
    engine: str | Engine,
    machine: Machine | None = None,
    policy: str = "wicp",
    target: Target = TARGET,
    placement: Placement = Placement.NONE,
) -> UnattendedDeployment:
    made = registry.get(engine) if isinstance(engine, str) else engine
    plan = make_plan(machine or milan(1, 2, 4), made.traits, policy, placement=placement)
    return lay_out(plan, made, THERE, target)


def state_of(folder: Path) -> str:
    """Changes with any file of it, and with any mode, time of writing or name."""
    digest = hashlib.sha256()
    for path in sorted((folder, *folder.rglob("*"))):
        found = path.lstat()
        digest.update(f"{path} {found.st_mode} {found.st_mtime_ns} {found.st_ino}".encode())
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()
