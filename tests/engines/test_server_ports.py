"""PostgreSQL and MariaDB with --port: the printed command connects, and nobody else does."""

from __future__ import annotations

import subprocess

import pytest

from atoll.engines.api import RemoteEngine
from atoll.engines.mariadb.engine import MariaDBEngine
from atoll.engines.postgresql.engine import PostgreSQLEngine
from atoll.engines.server.per_slot import ServerPerSlot
from atoll.errors import EngineFailed
from atoll.host.local import LocalHost
from atoll.host.ports import free_ports
from tests.parts.postgresql import ORDINARY_USER
from tests.parts.server import atoll, up

pytestmark = pytest.mark.installed


@pytest.mark.parametrize(
    ("engine", "flag", "url"),
    [
        (PostgreSQLEngine(), "-Atc", "postgresql://{}@127.0.0.1:{}/postgres"),
        (MariaDBEngine(), "-Nse", "mysql://{}@127.0.0.1:{}/atoll"),
    ],
)
def test_a_port_asks_for_the_password_of_the_run_folder(
    engine: ServerPerSlot, flag: str, url: str
) -> None:
    try:
        engine.find(LocalHost())
    except EngineFailed as fault:
        pytest.skip(str(fault))
    assert isinstance(engine, RemoteEngine)
    name = f"{engine.traits.name}-port"
    (port,) = free_ports(1)
    with up(engine.traits.name, name, "wim", "--port", str(port)) as record:
        (access,) = record.access
        shell = ("sh", "-c", f"{access.command} {flag} 'select 40 + 2'")
        asked = subprocess.run([*ORDINARY_USER, *shell], capture_output=True, text=True, check=True)
        assert asked.stdout == "42\n"
        for user in ("atoll", "root", "postgres", "nobody"):
            with pytest.raises(EngineFailed, match="cannot log in"):
                engine.reach(url.format(user, port), timeout_s=60)
        taken = atoll("up", engine.traits.name, "--name", "other", "--port", str(port))
        assert taken.returncode == 5
        assert f"port {port} is in use" in taken.stderr.splitlines()[-1]
