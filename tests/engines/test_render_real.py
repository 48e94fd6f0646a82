"""A rendered deployment starts as its page says, each process in its place, without Atoll."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from atoll.engines.postgresql.client import PostgreSQLClient
from atoll.errors import EngineFailed
from atoll.host.local import LocalHost
from atoll.host.procfs import status_field
from atoll.schema.base import parse
from atoll.schema.cpulist import parse_cpulist
from atoll.schema.plan import Plan
from tests.parts.deployment import until
from tests.parts.postgresql import ORDINARY_USER

pytestmark = pytest.mark.installed

HOST = LocalHost()


def ordinary(*command: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*ORDINARY_USER, *command])


def run(*command: str) -> None:
    assert ordinary(*command).wait(timeout=120) == 0, command


def commands(page: str) -> list[list[str]]:
    """What the page has its reader do once, as the engine's account."""
    lines = [line for line in page.splitlines() if line.startswith("sudo -u ")]
    return [shlex.split(line)[3:] for line in lines]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two instances need two CPUs")
def test_postgresql_starts_from_its_scripts(tmp_path: Path) -> None:
    out = tmp_path / "pg"
    atoll = (sys.executable, "-m", "atoll")
    run(*atoll, "render", "postgresql", "--policy", "win", "-n", "2", "-o", str(out))
    plan = parse(Plan, (out / "plan.json").read_bytes(), where="plan")
    small = plan.model_copy(
        update={
            "slots": tuple(
                slot.model_copy(update={"heap_bytes": 64 << 20, "memory_bytes": 256 << 20})
                for slot in plan.slots
            )
        }
    )
    (tmp_path / "small.json").write_text(small.model_dump_json())
    run(*atoll, "render", str(tmp_path / "small.json"), "-o", str(out))
    for command in commands((out / "README.md").read_text()):
        run(*command)
    servers = [ordinary(str(out / "bin" / f"worker-{slot.index}.sh")) for slot in plan.slots]
    try:
        for slot, server in zip(plan.slots, servers, strict=True):
            socket = str(out / f".s.PGSQL.{5432 + slot.index}")
            assert answer(socket, "show fsync", server) == "on"
            postmaster = int(
                (out / f"data/data-{slot.index}/postmaster.pid").read_text().split()[0]
            )
            allowed = status_field(
                HOST.read_text(f"/proc/{postmaster}/status"), "Cpus_allowed_list"
            )
            assert tuple(parse_cpulist(allowed)) == slot.cpus
        verify = (*atoll, "verify", "--rendered", str(out))
        # As the user of the tests, who may look into the namespaces of the servers.
        assert subprocess.run(verify, timeout=120, check=False).returncode == 0
        os.sched_setaffinity(postmaster, os.sched_getaffinity(0) - {*(slot.cpus or ())})
        assert subprocess.run(verify, timeout=120, check=False).returncode == 1
    finally:
        for server in servers:
            server.send_signal(signal.SIGINT)
        for server in servers:
            server.wait(timeout=120)  # it writes what it has


def answer(socket: str, sql: str, server: subprocess.Popen[bytes]) -> object:
    found: list[object] = []

    def ask() -> bool:
        assert server.poll() is None, "the server ended"
        try:
            client = PostgreSQLClient.at(socket, timeout_s=60)
        except EngineFailed:
            return False
        found.extend(client.execute(sql, timeout_s=60).rows[0])
        client.close()
        return True

    until(ask, lambda: found)
    return found[0]
