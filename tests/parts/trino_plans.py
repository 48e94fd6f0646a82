"""What the unit tests of Trino's and Presto's layouts share."""

from __future__ import annotations

from typing import Any

import pytest

from atoll.engines import registry
from atoll.engines.api import ConfigurableEngine, Installation, Layout
from atoll.engines.userconfig.merge import read_flags, read_properties
from atoll.engines.userconfig.tree import UserTree
from atoll.plan import make_plan
from atoll.schema.plan import Plan
from tests.parts.machines import milan

BOTH = pytest.mark.parametrize("name", ["trino", "presto"])
INSTALLED = Installation("476", "/opt/engine", "/opt/jdk/bin/java", "25.0.2")
MIB = 1 << 20


def a_plan(name: str = "trino", policy: Any = "wicp") -> Plan:
    return make_plan(milan(2), registry.get(name).traits, policy)


def a_tree(**texts: str) -> UserTree:
    given = {name.replace("__", "/").replace("_", "."): text for name, text in texts.items()}
    given.setdefault("config.properties", "coordinator=true\n")
    return UserTree(root="/etc/trino", texts=given, others=("keystore.jks",))


def lay_out(name: str, plan: Plan, tree: UserTree | None = None) -> Layout:
    engine = registry.get(name)
    if tree:
        assert isinstance(engine, ConfigurableEngine)
        engine = engine.on(tree)
    ports = range(7000, 7000 + engine.ports(plan))
    return engine.layout(plan, INSTALLED, run_dir="/run/x", ports=list(ports), scratch_dir="/var/x")


def config(layout: Layout, instance: str) -> dict[str, str]:
    return read_properties(layout.files[f"{instance}/etc/config.properties"], where="")


def flags(layout: Layout, instance: str) -> list[str]:
    return read_flags(layout.files[f"{instance}/etc/jvm.config"], where="")


def mib(text: str) -> int:
    return int(text.removesuffix("MB"))
