"""How people reach the servers of an engine with a server per slot."""

from __future__ import annotations

import pytest

from atoll.engines.api import Installation
from atoll.engines.mariadb.engine import MariaDBEngine
from atoll.engines.postgresql.engine import PostgreSQLEngine
from atoll.engines.server.per_slot import ServerPerSlot
from atoll.plan import make_plan
from tests.parts.machines import milan


@pytest.mark.parametrize(
    ("engine", "home", "commands"),
    [
        (
            PostgreSQLEngine(),
            "/usr/lib/postgresql/15/bin",
            [
                f"/usr/lib/postgresql/15/bin/psql -h '/run/my x' -p {port} -U atoll -d postgres"
                for port in (5432, 5433)
            ],
        ),
        (
            MariaDBEngine(),
            "/usr",
            [
                f"/usr/bin/mariadb --no-defaults '--socket=/run/my x/mariadb-{index}.sock' "
                "--user=atoll atoll"
                for index in (0, 1)
            ],
        ),
    ],
)
def test_each_server_has_the_command_of_a_client(
    engine: ServerPerSlot, home: str, commands: list[str]
) -> None:
    plan = make_plan(milan(2), engine.traits, "win", count=2)
    installed = Installation("15.1", home, cache="/cache/x")
    layout = engine.layout(plan, installed, run_dir="/run/my x", ports=())
    assert [access.command for access in layout.access] == commands
    assert tuple(access.address for access in layout.access) == layout.endpoints
