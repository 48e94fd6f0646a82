"""A PostgreSQL server that nobody of ours started, for the tests of `atoll replay`."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from atoll.engines.postgresql.engine import PostgreSQLEngine
from atoll.errors import EngineFailed
from atoll.host.local import LocalHost
from atoll.host.ports import free_ports
from tests.parts.postgresql import ORDINARY_USER

PASSWORD = "s3cret/of+mine"
_QUOTED = "s3cret%2Fof%2Bmine"


@dataclass
class Cluster:
    home: str
    folder: Path
    port: int
    address: str
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"postgresql://tester:{_QUOTED}@{self.address}:{self.port}/postgres"

    @property
    def told(self) -> str:
        return f"postgresql://tester@{self.address}:{self.port}/postgres"

    @property
    def label(self) -> str:
        return f"postgresql/{self.address}:{self.port}"

    def start(self, *prefix: str) -> None:
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [
                    *(*prefix, *ORDINARY_USER, f"{self.home}/postgres", "-D", self._data),
                    *("-p", str(self.port), "-h", self.address, "-k", str(self.folder)),
                    *("-c", "fsync=off", "-c", "shared_buffers=16MB"),
                ],
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + 300
        while self.sql("select 1").returncode:
            assert self.process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def sql(self, text: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [f"{self.home}/psql", "-X", "-q", "-h", self.address, "-p", str(self.port),
             "-U", "tester", "-d", "postgres", "-c", text],
            env={**os.environ, "PGPASSWORD": PASSWORD},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )  # fmt: skip

    def kill(self) -> None:
        """At once, with all that it started: they notice that their postmaster is gone."""
        if self.process is not None:
            self.process.send_signal(signal.SIGQUIT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(20)
            self.process.kill()
            self.process.wait()
            self.process = None

    @property
    def _data(self) -> str:
        return str(self.folder / "data")


@contextmanager
def cluster(
    folder: Path, *prefix: str, address: str = "127.0.0.1", port: int | None = None
) -> Iterator[Cluster]:
    """Up with a table of 1,000 rows, at a free port unless one is given; the test is skipped where
    there is no PostgreSQL."""
    try:
        _, home = PostgreSQLEngine().find(LocalHost())
    except EngineFailed as fault:
        pytest.skip(str(fault))  # it is not installed, or refuses this account
    folder.mkdir(parents=True)
    secret = folder / "secret"
    secret.write_text(PASSWORD)
    subprocess.run(
        [*ORDINARY_USER, f"{home}/initdb", "-D", str(folder / "data"), "-U", "tester",
         "--auth=scram-sha-256", f"--pwfile={secret}", "--no-sync", "--locale=C"],
        check=True,
        capture_output=True,
        timeout=120,
    )  # fmt: skip
    if port is None:
        (port,) = free_ports(1)  # which no client is given, also while the server is away
    found = Cluster(home, folder, port, address)
    try:
        found.start(*prefix)
        made = found.sql(
            "create table numbers as select generate_series(1, 1000) as n; analyze numbers"
        )
        assert made.returncode == 0, made.stderr
        yield found
    finally:
        found.kill()


def suite(folder: Path, texts: Sequence[tuple[str, str]]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in texts:
        (folder / f"{name}.sql").write_text(text)
    return folder
