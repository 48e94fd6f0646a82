"""How people reach the servers of an engine with a server per slot."""

from __future__ import annotations

import re

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


@pytest.mark.parametrize("engine", [PostgreSQLEngine(), MariaDBEngine()])
def test_a_port_asks_for_a_password_that_only_files_have(engine: ServerPerSlot) -> None:
    with_ports = engine.with_ports()
    plan = make_plan(milan(2), engine.traits, "win", count=2)
    assert (engine.ports(plan), with_ports.ports(plan)) == (0, 2)
    installed = Installation("15.1", "/usr", cache="/cache/x")
    layout = with_ports.layout(plan, installed, run_dir="/run/x", ports=(7000, 7001))
    scheme = next(iter(engine.facts.ports))
    assert [access.address for access in layout.access] == [
        f"{scheme}://127.0.0.1:7000",
        f"{scheme}://127.0.0.1:7001",
    ]
    (file,) = {"pgpass", "client.cnf"} & layout.files.keys()
    password = re.findall(r"[0-9a-f]{32}", layout.files[file])
    assert len(password) == 1
    public = [*map(str, layout.access), *map(str, layout.processes)]
    assert password[0] not in "".join(public)
    assert all(access.remark == f"the password lies in /run/x/{file}" for access in layout.access)
    plain = engine.layout(plan, installed, run_dir="/run/x", ports=())
    assert "127.0.0.1" not in "".join(plain.files.values())
