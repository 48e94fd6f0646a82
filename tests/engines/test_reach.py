"""Clients of PostgreSQL and MariaDB servers that run already, over TCP and with a password."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from atoll.bench.results import read_results
from atoll.engines import registry
from atoll.engines.api import Client, RemoteEngine
from atoll.engines.mariadb.engine import MariaDBEngine
from atoll.engines.mariadb.settings import make_empty as make_mariadb
from atoll.engines.mariadb.settings import programs
from atoll.engines.postgresql.engine import PostgreSQLEngine
from atoll.engines.postgresql.settings import make_empty as make_postgresql
from atoll.engines.server.per_slot import environment
from atoll.errors import EngineFailed, ServerGone
from atoll.host.local import LocalHost
from atoll.host.ports import free_ports
from atoll.schema.results import ClusterLook
from tests.parts.cluster import suite
from tests.parts.deployment import until
from tests.parts.postgresql import ORDINARY_USER

pytestmark = pytest.mark.installed

PASSWORD = "hush-6f1e"
MMAP = ("-c", "dynamic_shared_memory_type=mmap")  # other tests look into /dev/shm


@dataclass(frozen=True)
class Cluster:
    engine: str
    url: str  # without a password
    variable: str  # that holds the password
    slow: str
    running: str  # whether `slow` runs, as a number
    process: subprocess.Popen[bytes]

    def reach(self, url: str = "", *, timeout_s: float = 30) -> Client:
        engine = registry.get(self.engine)
        assert isinstance(engine, RemoteEngine)
        return engine.reach(url or self.url, timeout_s=timeout_s)

    def with_password(self, password: str) -> str:
        return self.url.replace("me@", f"me:{password}@")


def as_user(argv: Sequence[str], env: Mapping[str, str]) -> None:
    subprocess.run(
        [*ORDINARY_USER, *argv], env={**os.environ, **env}, check=True, capture_output=True
    )


@contextmanager
def serving(argv: Sequence[str], env: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [*ORDINARY_USER, *argv],
        env={**os.environ, **env},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGQUIT)  # both end at once
        process.wait(120)


@contextmanager
def postgresql(folder: Path) -> Iterator[Cluster]:
    _, home = PostgreSQLEngine().find(LocalHost())
    env = environment(home)
    (folder / "password").write_text(PASSWORD)
    make = [word.replace("{}", str(folder / "data")) for word in make_postgresql(home)]
    own = [
        "--username=me",
        "--auth-host=scram-sha-256",
        f"--pwfile={folder / 'password'}",
        "--no-sync",
    ]
    as_user([*make, *own], env)
    (port,) = free_ports(1)
    argv = [f"{home}/postgres", "-D", str(folder / "data"), "-p", str(port), "-c", "fsync=off"]
    with serving([*argv, "-k", "", "-c", "listen_addresses=127.0.0.1", *MMAP], env) as process:
        yield Cluster(
            "postgresql",
            f"postgresql://me@127.0.0.1:{port}/postgres",
            "PGPASSWORD",
            "select pg_sleep(600)",
            "select count(*) from pg_stat_activity where query = 'select pg_sleep(600)'",
            process,
        )


@contextmanager
def mariadb(folder: Path) -> Iterator[Cluster]:
    _, home = MariaDBEngine().find(LocalHost())
    env = environment(home)
    as_user([word.replace("{}", str(folder / "data")) for word in make_mariadb(home)], env)
    (folder / "init.sql").write_text(
        f"create user me@'%' identified by '{PASSWORD}';\n"
        "grant all on *.* to me@'%';\ncreate database d;\n"
    )
    (port,) = free_ports(1)
    own = [f"--datadir={folder}/data", f"--basedir={home}", f"--socket={folder}/s"]
    own += [f"--pid-file={folder}/pid", f"--init-file={folder}/init.sql", f"--port={port}"]
    argv = [programs(home)[0], "--no-defaults", "--bind-address=127.0.0.1", *own]
    with serving(argv, env) as process:
        yield Cluster(
            "mariadb",
            f"mysql://me@127.0.0.1:{port}/d",
            "MYSQL_PWD",
            "select sleep(600)",
            "select count(*) from information_schema.processlist where info like '%sleep(600)' "
            "and id != connection_id()",
            process,
        )


@pytest.fixture(params=[postgresql, mariadb])
def cluster(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Cluster]:
    try:
        with request.param(tmp_path) as made:
            monkeypatch.setenv("HOME", str(tmp_path))  # nobody's own password file
            monkeypatch.setenv(made.variable, PASSWORD)
            until(lambda: answers(made), lambda: f"{made.url}: no answer")
            yield made
    except EngineFailed as fault:
        pytest.skip(str(fault))


def answers(cluster: Cluster) -> bool:
    try:
        cluster.reach().close()
    except EngineFailed:
        return cluster.process.poll() is not None
    return True


def test_a_running_cluster_answers_and_its_end_is_reported(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = cluster.reach()
    assert client.execute("select 1 + 1", timeout_s=60).rows == [(2,)]
    assert client.instances(timeout_s=60) == 1

    slow = cluster.reach()
    with pytest.raises(EngineFailed, match=r"0\.5 s"):
        slow.execute(cluster.slow, timeout_s=0.5)
    until(
        lambda: client.execute(cluster.running, timeout_s=60).rows == [(0,)],
        lambda: "the query still runs",
    )

    monkeypatch.delenv(cluster.variable)
    by_url = cluster.reach(cluster.with_password(PASSWORD))
    assert by_url.execute("select 3", timeout_s=60).rows == [(3,)]
    by_url.close()
    for url in (cluster.url, cluster.with_password("wrong-8d2a")):
        with pytest.raises(EngineFailed, match=r"127\.0\.0\.1") as caught:
            cluster.reach(url)
        assert "wrong-8d2a" not in str(caught.value)
        assert "\n" not in str(caught.value)

    # One that answers nothing any more, and one that is gone.
    os.kill(cluster.process.pid, signal.SIGSTOP)
    with pytest.raises(EngineFailed, match=r"127\.0\.0\.1"):
        cluster.reach(cluster.with_password(PASSWORD), timeout_s=5)
    os.kill(cluster.process.pid, signal.SIGCONT)
    client.execute("select 1", timeout_s=60)
    os.kill(cluster.process.pid, signal.SIGQUIT)  # at once, and no shared memory stays
    cluster.process.wait(120)

    def ask_until_gone() -> None:
        while True:
            client.execute("select 1", timeout_s=60)

    with pytest.raises(ServerGone, match=r"127\.0\.0\.1:\d+"):
        ask_until_gone()


def test_closing_ends_the_query_of_another_thread(cluster: Cluster) -> None:
    """As an interrupted bench does: nothing goes on running at somebody's server."""
    client, busy = cluster.reach(), cluster.reach()
    faults: list[EngineFailed] = []

    def ask() -> None:
        try:
            busy.execute(cluster.slow, timeout_s=600)
        except EngineFailed as fault:
            faults.append(fault)

    def run() -> int:
        return int(client.execute(cluster.running, timeout_s=60).rows[0][0])

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    until(lambda: run() == 1, lambda: "the query does not run")
    busy.close()
    until(lambda: run() == 0, lambda: "the query still runs")
    thread.join(30)
    assert [str(fault).endswith("was closed") for fault in faults] == [True]
    assert not isinstance(faults[0], ServerGone)
    with pytest.raises(EngineFailed, match="was closed"):
        busy.execute("select 1", timeout_s=60)


def test_a_replay_sees_its_processes(cluster: Cluster, tmp_path: Path) -> None:
    """By its port; MariaDB's by its socket too, which PostgreSQL's has none of here."""
    folder, path = suite(tmp_path / "mine", [("q", "select 1 + 1 as two")]), tmp_path / "r.jsonl"
    urls = [cluster.url]
    if cluster.engine == "mariadb":
        urls.append(f"mysql://me@/d?unix_socket={tmp_path}/s")
    done = subprocess.run(
        [sys.executable, "-m", "atoll", "replay", cluster.engine, *urls,
         "--suite", str(folder), "--blocks", "1", "-o", str(path)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    looks = [one for one in read_results(path).lines if isinstance(one, ClusterLook)]
    assert [one.when for one in looks] == ["before", "after"] * len(urls)
    for look in looks:
        assert not look.unknown
        assert cluster.process.pid in [one.pid for one in look.processes]
