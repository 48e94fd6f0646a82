"""Trino on a user's own tree, as a user goes it: render, up, a login, verify, bench, down.

The tree has what such trees have; see `trino_tree`. It must be the same afterwards.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from atoll.bench.results import read_results
from atoll.engines import registry
from atoll.engines.trino.client import reach
from atoll.engines.userconfig.apply import with_user_tree
from atoll.engines.userconfig.merge import read_flags, read_properties
from atoll.errors import EngineFailed
from atoll.host.local import LocalHost
from atoll.host.topology import read_machine
from atoll.plan import make_plan
from atoll.schema.deployment import Deployment, UpOptions
from atoll.schema.results import QueryTime
from atoll.store.plan_file import read_plan
from atoll.supervise import records
from atoll.supervise.launch import launch
from tests.parts.deployment import left_over
from tests.parts.render import state_of
from tests.parts.trino_servers import START_LIMIT_S
from tests.parts.trino_tree import AGENT_FLAG, PASSWORD, USER, write_tree

pytestmark = [pytest.mark.installed, pytest.mark.long]

NAME = "trino-of-mine"
PLUGINS = ("hive", "tpch", "password-authenticators", "resource-group-managers")
GIB = 1 << 30


def atoll(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "atoll", *arguments],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )


class Ours:
    """A tree, a plan with small heaps, and what the tree wants of the environment."""

    def __init__(self, folder: Path) -> None:
        engine, machine = registry.get("trino"), read_machine()
        try:
            found = engine.locate(LocalHost())
        except EngineFailed as fault:
            pytest.skip(str(fault))
        # With a tree of the user's all plugins are loaded, which takes minutes for all of them.
        home = folder / "home"
        (home / "plugin").mkdir(parents=True)
        (home / "lib").symlink_to(f"{found.home}/lib")
        for plugin in PLUGINS:
            (home / "plugin" / plugin).symlink_to(f"{found.home}/plugin/{plugin}")
        self.tree = folder / "etc trino"
        self.certificate = write_tree(self.tree)
        self.lake = folder / "lake"
        (self.lake / "metastore").mkdir(parents=True)
        self.before = state_of(self.tree)
        self.variables = {
            "TRINO_HOME": str(home),
            "LAKE": str(self.lake),
            "CLUSTER_SECRET": "0123456789abcdef",
        }
        count = min(2, len(machine.allowed_cores))
        plan = make_plan(machine, engine.traits, "wic", count=count, heap_limit_bytes=count * GIB)
        self.plan = folder / "plan.json"
        self.plan.write_text(plan.model_dump_json())

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return atoll(*arguments, **self.variables)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Ours:
    return Ours(tmp_path_factory.mktemp("trino-base"))


@pytest.fixture(scope="module")
def record(ours: Ours) -> Iterator[Deployment]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ours.variables.items():
            patch.setenv(name, value)
        host = LocalHost()
        engine, _ = with_user_tree(registry.get("trino"), str(ours.tree), host)
        launch(
            read_plan(str(ours.plan)),
            engine,
            machine=read_machine(),
            host=host,
            name=NAME,
            options=UpOptions(timeout_s=START_LIMIT_S),
        ).detach()
    found = records.read(NAME)
    assert found is not None
    yield found
    if NAME in records.names():
        ended(ours, found)


def ended(ours: Ours, record: Deployment) -> None:
    done = ours.run("down", NAME)
    assert done.returncode == 0, done.stderr
    assert left_over(NAME) == []
    assert [path for path in (record.run_dir, record.scratch_dir) if os.path.exists(path)] == []
    assert state_of(ours.tree) == ours.before


def in_tree(record: Deployment, instance: str, name: str) -> str:
    return (Path(record.run_dir) / instance / "etc" / name).read_text()


def test_a_variable_that_is_not_set_is_told_before_anything_starts(ours: Ours) -> None:
    for command in (
        ("up", str(ours.plan), "--base", str(ours.tree), "--name", f"{NAME}-not"),
        ("bench", str(ours.plan), "--base", str(ours.tree), "--sf", "0.01"),
    ):
        done = atoll(*command, TRINO_HOME=ours.variables["TRINO_HOME"], LAKE=str(ours.lake))
        assert done.returncode == 2
        assert re.fullmatch(
            rf"atoll: {ours.tree}/config.properties:12: .* CLUSTER_SECRET is not set; .*\n",
            done.stderr,
        ), done.stderr
    assert f"{NAME}-not" not in records.names()


def test_a_user_logs_in_over_tls_with_a_password(
    ours: Ours, record: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = read_properties(in_tree(record, "coordinator", "config.properties"), where="")
    place = f"127.0.0.1:{config['http-server.https.port']}"
    assert [access.address for access in record.access] == [f"https://{place}"]
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(ours.certificate))
    client = reach(f"https://{USER}:{PASSWORD}@{place}/tpch/tiny", timeout_s=60)
    told = client.execute("select current_user, (select count(*) from nation)", timeout_s=60)
    assert told.rows == [(USER, 25)]
    groups = client.execute(
        f"select distinct resource_group_id[1] from system.runtime.queries where user = '{USER}'",
        timeout_s=60,
    )
    assert groups.rows == [("ours",)]
    client.close()
    with pytest.raises(EngineFailed, match="401") as caught:
        reach(f"https://{USER}:wrong@{place}", timeout_s=60)
    assert "wrong" not in str(caught.value)


def test_the_users_catalogs_read_and_write(ours: Ours, record: Deployment) -> None:
    (client,) = registry.get("trino").connect(record.endpoints, timeout_s=60)
    client.execute("create schema lake.here", timeout_s=60)
    client.execute("create table lake.here.n as select * from tpch.tiny.nation", timeout_s=60)
    assert client.execute("select count(*) from lake.here.n", timeout_s=60).rows == [(25,)]
    client.close()
    assert [path for path in ours.lake.rglob("*") if path.name.startswith("20")], "its files"


def test_instances_are_as_planned_and_all_else_as_it_was(ours: Ours, record: Deployment) -> None:
    done = ours.run("verify", NAME)
    assert done.returncode == 0, done.stdout + done.stderr
    folders = set()
    for slot in record.plan.slots:
        worker = f"worker-{slot.index}"
        flags = read_flags(in_tree(record, worker, "jvm.config"), where="")
        assert {"-server", f"-Xmx{slot.heap_bytes >> 20}m", "-XX:G1HeapRegionSize=4M"} <= set(flags)
        assert {"-Dours=a b", "-Djava.security.properties=etc/java.security"} <= set(flags)
        assert not [flag for flag in flags if "54G" in flag or "GCThreads" in flag]
        found = read_properties(in_tree(record, worker, "config.properties"), where="")
        assert found["query.max-run-time"] == "1h"
        folders |= set(found["spiller-spill-path"].split(","))
    assert len(folders) == 2 * len(record.plan.slots)


def test_each_instance_has_the_users_agents_at_its_own_ports(record: Deployment) -> None:
    """One that answers at once, as an exporter does, and the server's own for JMX."""
    head, tail = AGENT_FLAG.split("{}")
    agents, registries = [], []
    for process in record.processes:
        name = process.spec.name
        flags = read_flags(in_tree(record, name, "jvm.config"), where="")
        (flag,) = (flag for flag in flags if flag.startswith(head))
        agents.append(int(flag.removeprefix(head).removesuffix(tail)))
        with socket.create_connection(("127.0.0.1", agents[-1]), timeout=30) as answer:
            assert answer.recv(100) == b"metrics\n"
        config = read_properties(in_tree(record, name, "config.properties"), where="")
        registries.append(int(config["jmx.rmiregistry.port"]))
        socket.create_connection(("127.0.0.1", registries[-1]), timeout=30).close()
    for found, first in ((agents, 9404), (registries, 9080)):
        # Ports that were taken are skipped.
        assert first <= found[0] and sorted(set(found)) == found


def test_no_secret_is_told(ours: Ours, record: Deployment) -> None:
    shown = ours.run("render", "trino", "--base", str(ours.tree), "--diff")
    assert shown.returncode == 0
    assert "-Xmx" in shown.stdout
    listed = ours.run("ps", "--json")
    assert NAME in listed.stdout
    told = shown.stdout + shown.stderr + listed.stdout
    for process in record.processes:
        assert process.id
        told += Path(f"/proc/{process.id.pid}/cmdline").read_text()
        told += Path(process.log).read_text(errors="replace")
    for secret in ("open sesame", ours.variables["CLUSTER_SECRET"]):
        assert secret not in told


def test_a_bench_on_the_tree(ours: Ours, tmp_path: Path, record: Deployment) -> None:
    """The last test of this deployment, which ends: two would want the memory of both."""
    ended(ours, record)
    path = tmp_path / "r.jsonl"
    done = ours.run(
        *("bench", str(ours.plan), "--base", str(ours.tree), "--queries", "6", "--sf", "0.01"),
        *("--blocks", "1", "-o", str(path)),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    results = read_results(path)
    assert results.end is not None and results.end.status == "complete"
    answers = [line.answer for line in results.lines if isinstance(line, QueryTime)]
    assert answers and set(answers) == {"ok"}
    assert left_over("bench") == []
    assert state_of(ours.tree) == ours.before
