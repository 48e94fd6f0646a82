"""What the tests of Trino and Presto share: answers, what listens, and the end of a deployment."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from atoll.engines import registry
from atoll.engines.base import Client
from atoll.errors import EngineFailed
from atoll.host.local import LocalHost
from atoll.host.topology import read_machine
from atoll.plan import make_plan
from atoll.schema.deployment import Deployment
from atoll.schema.plan import Asked
from atoll.supervise.launch import Running, launch
from tests.engines.answers import attach, data_at, difference
from tests.engines.deployment_parts import left_over

# A start takes 100 s of CPU time, most of it Java's compiler's.
_START_LIMIT_S = 400.0
_LOOPBACK = {("tcp", "0100007F"), ("tcp6", "0000000000000000FFFF00000100007F")}


@contextmanager
def up(engine_name: str, policy: Asked, *, workers: int) -> Iterator[Running]:
    """With the tables of TPC-H. Nothing is left of it afterwards."""
    engine, host, machine = registry.get(engine_name), LocalHost(), read_machine()
    try:
        engine.locate(host)
    except EngineFailed as fault:
        pytest.skip(str(fault))
    count = min(workers, len(machine.allowed_cores))
    plan = make_plan(machine, engine.traits, policy, count=count, heap_limit_bytes=count * 1024**3)
    with launch(
        plan,
        engine,
        machine=machine,
        host=host,
        name=f"{policy}-{engine_name}",
        start_timeout_s=_START_LIMIT_S,
    ) as running:
        record = running.deployment
        attach(running.clients[0], engine_name, data_at(0.01))
        yield running
    gone(record)


def gone(record: Deployment) -> None:
    assert not left_over(record.name)
    assert [path for path in (record.run_dir, record.scratch_dir) if os.path.exists(path)] == []


def wrong_answers(client: Client, engine: str, queries: Iterable[str]) -> dict[str, str]:
    data = data_at(0.01)
    return {query: said for query in queries if (said := difference(client, engine, query, data))}


def listening(running: Running) -> set[tuple[str, str]]:
    """Table and address of every TCP socket that listens and belongs to the deployment."""
    inodes = {
        os.readlink(link)[8:-1]
        for process in running.deployment.processes
        if process.id
        for link in Path(f"/proc/{process.id.pid}/fd").iterdir()
        if link.is_symlink() and os.readlink(link).startswith("socket:[")
    }
    return {
        (table, fields[1].rsplit(":", 1)[0])
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
        if (fields := line.split())[3] == "0A" and fields[9] in inodes
    }


def is_on_loopback_only(running: Running) -> bool:
    found = listening(running)
    return bool(found) and found <= _LOOPBACK


def secrets_told(running: Running) -> list[str]:
    """Arguments, environments, logs and the record that tell a secret of the deployment."""
    folder = Path(running.deployment.run_dir)
    config = (folder / "worker-0/etc/config.properties").read_text()
    (line,) = [each for each in config.splitlines() if "shared-secret" in each]
    user = folder / "user"
    secrets = [line.partition("=")[2], *([user.read_text()] if user.exists() else [])]
    heard = {"record": running.deployment.model_dump_json()}
    for process in running.deployment.processes:
        assert process.id
        pid = process.id.pid
        for name in ("cmdline", "environ"):
            heard[f"{pid} {name}"] = Path(f"/proc/{pid}/{name}").read_text(errors="replace")
        heard[process.log] = Path(process.log).read_text(errors="replace")
    return [where for where, text in heard.items() if any(secret in text for secret in secrets)]


def said_of_a_killed_worker(running: Running, sql: str) -> str:
    """What the deployment says while it is asked and a worker is killed."""
    (worker,) = [each for each in running.deployment.processes if each.spec.name == "worker-1"]
    assert worker.id
    os.kill(worker.id.pid, signal.SIGKILL)
    # The query fails too, an instant before or after the deployment's end is known.
    with suppress(EngineFailed):
        running.clients[0].execute(sql, timeout_s=60)
    with pytest.raises(EngineFailed) as caught:
        running.check(wait_s=60.0)
    return str(caught.value)
