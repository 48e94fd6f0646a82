"""What `up` and `bench` will change in a user's configuration, before they start anything."""

from __future__ import annotations

from atoll.engines import registry
from atoll.engines.api import ConfigurableEngine
from atoll.engines.userconfig.tree import UserTree
from atoll.plan import make_plan
from atoll.render.deployment import summary_before_start
from tests.parts.machines import milan
from tests.parts.render import THERE


def test_folders_and_ports_of_a_start_to_come_are_not_named() -> None:
    """`up` and `bench` choose them later; those of agents are certain."""
    texts = {
        "config.properties": "coordinator=true\nhttp-server.http.port=8080\n",
        "node.properties": "node.environment=p\nnode.data-dir=/var/lib/trino\n",
        "jvm.config": "-javaagent:/jmx.jar=9404:/x\n",
    }
    tree = UserTree("/etc/trino", texts)
    engine = registry.get("trino")
    assert isinstance(engine, ConfigurableEngine)
    based = engine.on(tree)
    plans = [make_plan(milan(1, 2, 4), based.traits, policy) for policy in ("wim", "wicp")]
    lines = [line.partition(" (")[0] for line in summary_before_start(based, plans, THERE, tree)]
    assert "  http-server.http.port: 8080 -> PORT" in lines
    assert "  -javaagent:/jmx.jar: port 9404 -> 9405, 9406 on workers" in lines
    (folder,) = (line for line in lines if "node.data-dir" in line)
    assert folder.startswith("  node.data-dir: /var/lib/trino -> SCRATCH_FOLDER/coordinator, ")
