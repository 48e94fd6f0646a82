"""What the tests of Trino and Presto share: answers, what listens, and the end of a deployment."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from atoll.engines import registry
from atoll.engines.api import Client
from atoll.errors import EngineFailed
from atoll.host.local import LocalHost
from atoll.host.topology import read_machine
from atoll.plan import make_plan
from atoll.schema.deployment import Deployment, UpOptions
from atoll.schema.plan import Asked
from atoll.supervise.launch import Running, launch
from tests.parts.answers import attach, data_at, difference
from tests.parts.deployment import left_over, until

# A start takes 100 s of CPU time, most of it Java's compiler's.
START_LIMIT_S = 400.0
LONG = "select count(*) from tpch.sf1000.lineitem a cross join tpch.sf1000.lineitem b"
_LOOPBACK = {  # 127.0.0.1 and 127.0.0.2, as /proc/net has them
    ("tcp", "0100007F"),
    ("tcp6", "0000000000000000FFFF00000100007F"),
    ("tcp6", "0000000000000000FFFF00000200007F"),
}


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
        options=UpOptions(timeout_s=START_LIMIT_S),
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


def one_past_its_limit_fails(running: Running, engine: str) -> None:
    """The coordinator has it as failed, once it has seen to it."""
    (client,) = registry.get(engine).connect(running.deployment.endpoints, timeout_s=60)
    with pytest.raises(EngineFailed, match="cancelled"):
        client.execute(LONG, timeout_s=10)
    with pytest.raises(EngineFailed, match="was closed"):
        client.execute("select 1", timeout_s=60)
    sql = "select state from system.runtime.queries where query like '%cross join%' "
    sql += "and query not like '%system.runtime%'"

    def states() -> list[tuple[str, ...]]:
        return running.clients[0].execute(sql, timeout_s=60).rows

    until(lambda: states() == [("FAILED",)], states)


def listening(running: Running) -> list[tuple[str, str]]:
    """Table and address of every TCP socket that listens and belongs to the deployment."""
    inodes = {
        inode
        for process in running.deployment.processes
        if process.id
        for inode in sockets_of(process.id.pid)
    }
    return [
        (table, fields[1].rsplit(":", 1)[0])
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
        if (fields := line.split())[3] == "0A" and fields[9] in inodes
    ]


def sockets_of(pid: int) -> set[str]:
    """The inodes of the process's sockets."""
    found = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed while we look
            target = os.readlink(link)
            if target.startswith("socket:["):
                found.add(target[8:-1])
    return found


def listening_elsewhere(running: Running) -> list[tuple[str, str]]:
    """And not on loopback."""
    found = listening(running)
    assert found
    return [each for each in found if each not in _LOOPBACK]


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


def said_of_a_killed_worker(running: Running) -> str:
    """What the deployment says while it is asked and a worker is killed."""
    (worker,) = [each for each in running.deployment.processes if each.spec.name == "worker-1"]
    assert worker.id
    os.kill(worker.id.pid, signal.SIGKILL)
    # The query fails too, an instant before or after the deployment's end is known.
    with suppress(EngineFailed):
        running.clients[0].execute(LONG, timeout_s=60)
    with pytest.raises(EngineFailed) as caught:
        running.check(wait_s=60.0)
    return str(caught.value)
