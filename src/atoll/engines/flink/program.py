"""Flink 2.2 with a job of Atoll's: 44 operators in the manner of a shared plan for TPC-W.

A JobManager, which runs the job that is on its class path, and a task manager. The job is Java
source, which the JDK compiles once into Atoll's cache, and a table of operators that it builds
itself from (job.json).
"""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Any, ClassVar

from atoll.engines.api import Installation
from atoll.engines.facts import EngineFacts
from atoll.engines.flink import settings
from atoll.engines.flink.documents import JobLine
from atoll.engines.flink.facts import FACTS, PART
from atoll.engines.flink.rest import Rest
from atoll.engines.flink.running import FlinkJob
from atoll.engines.java import find_java
from atoll.engines.loading.server import Server, started
from atoll.errors import EngineFailed, ServerGone, UsageError
from atoll.host.api import Host
from atoll.host.ports import free_ports
from atoll.host.programs import find_program
from atoll.install import installed
from atoll.install.parts import kept_by
from atoll.schema.cpulist import format_cpulist
from atoll.schema.operators import Kind
from atoll.schema.plan import LOOPBACK
from atoll.schema.text import first_of, one_line
from atoll.store.files import write_atomic
from atoll.store.once import make_once

JAVA_MAJOR = 17
_FOLDER = Path(__file__).parent
_JOB = "StreamJob"
_COMPILE_S = 300.0
_KEY_S = 120.0
_CLASSES_BYTES = 1 << 20
_WARM_S = 30.0
_AT_RATE = 0.95
_KINDS = {
    "source": Kind.SCAN,
    "filter": Kind.FILTER,
    "join": Kind.JOIN,
    "window": Kind.AGGREGATE,
    "topn": Kind.SORT,
}


@cache
def table() -> tuple[dict[str, Any], ...]:
    """The job's operators."""
    return tuple(json.loads((_FOLDER / "job.json").read_text("utf-8"))["operators"])


def kinds() -> dict[str, Kind]:
    """By the name that Flink gives the vertex."""
    return {
        f"Source: {each['name']}" if each["kind"] == "source" else each["name"]: _KINDS[
            each["kind"]
        ]
        for each in table()
        if each["kind"] in _KINDS
    }


@dataclass(frozen=True, slots=True)
class FlinkProgram:
    """See `atoll.engines.placeable.Placeable` and `Attachable`."""

    facts: ClassVar[EngineFacts] = FACTS

    @property
    def name(self) -> str:
        return "flink"

    @property
    def independent(self) -> bool:
        return False

    def locate(self, host: Host) -> Installation:
        """Raises EngineFailed with what to install."""
        home = installed(PART)
        if not home:
            raise EngineFailed(
                f"Flink {settings.VERSION} is not installed; install it with: "
                f"atoll engine install {self.name}"
            )
        java, java_version = find_java(
            host,
            major=JAVA_MAJOR,
            wanted_by=f"Flink {settings.VERSION}",
            engine=self.name,
            part=installed(f"openjdk-{JAVA_MAJOR}"),
        )
        cache = str(kept_by(self.name))
        return Installation(settings.VERSION, home, java, java_version, cache)

    @contextlib.contextmanager
    def start(self, host: Host, folder: Path, cpus: Sequence[int]) -> Iterator[FlinkJob]:
        installation = self.locate(host)
        classes = _compiled(installation, host)
        rpc_port, rest_port = free_ports(2)
        _write_files(host, installation, folder, rpc_port, rest_port)
        command = partial(
            settings.command, installation.java, installation.home, str(folder), str(classes)
        )
        job = ("--job-classname", _JOB, str(_FOLDER / "job.json"))
        jvms = {
            "JobManager": command(settings.JOB_MANAGER, job),
            "task manager": command(settings.TASK_MANAGER, ()),
        }
        rest = Rest("http", LOOPBACK, rest_port)
        with contextlib.ExitStack() as stack:
            servers = [
                stack.enter_context(
                    started(
                        f"{name} of Flink",
                        (*_on(cpus), *argv),
                        host=host,
                        env={},
                        log=folder / f"{name.replace(' ', '')}.log",
                        abort=signal.SIGTERM,  # it removes its files
                    )
                )
                for name, argv in jvms.items()
            ]
            servers[0].await_answer(lambda: _runs(rest, servers[1]))
            running = FlinkJob(host, rest, _one_job(rest).id, kinds(), counting=True)
            _warm_up(host, running)
            yield running

    @contextlib.contextmanager
    def attach(self, host: Host, url: str) -> Iterator[FlinkJob]:
        """`url` may end in /jobs/ID; without it there must be one job that runs."""
        base, _, job = url.partition("/jobs/")
        rest = Rest.at(base)
        yield FlinkJob(host, rest, job.strip("/") or _one_job(rest).id)


def _on(cpus: Sequence[int]) -> tuple[str, ...]:
    """The launcher that starts a program on these CPUs."""
    launcher = find_program("atoll-exec")
    if launcher is None:
        raise EngineFailed("atoll-exec is not installed; run 'make setup' or reinstall atoll")
    return (launcher, "-C", format_cpulist(cpus), "--")


def _write_files(
    host: Host, installation: Installation, folder: Path, rpc_port: int, rest_port: int
) -> None:
    """What both processes read."""
    for name in ("conf", "tmp", "blob"):
        (folder / name).mkdir(mode=0o700, exist_ok=True)
    password, secret = token_hex(16), folder / "conf/password"
    for name, text in (
        ("password", password),
        ("config.yaml", settings.configuration(str(folder), rpc_port, rest_port, password)),
        ("log4j.properties", settings.LOG),
    ):
        write_atomic(folder / "conf" / name, text, mode=0o600)
    key = folder / settings.KEY
    key.unlink(missing_ok=True)  # of an earlier start
    done = host.run(
        settings.key_command(installation.java, str(key), str(secret)),
        timeout_s=_KEY_S,
        tied=True,
    )
    if done.returncode != 0:
        raise EngineFailed(f"keytool cannot make Flink's key: {one_line(done.stdout)[:300]}")
    key.chmod(0o600)


def _compiled(installation: Installation, host: Host) -> Path:
    """The folder of the job's classes in the cache. Raises EngineFailed."""
    source = _FOLDER / f"{_JOB}.java"
    digest = sha256(source.read_bytes()).hexdigest()[:12]
    target = Path(installation.cache, f"job-{settings.VERSION}-{digest}")

    def make(classes: Path) -> None:
        done = host.run(
            [
                *(installation.java, "-m", "jdk.compiler/com.sun.tools.javac.Main", "-nowarn"),
                *("-cp", f"{installation.home}/lib/flink-dist-{settings.VERSION}.jar"),
                *("-d", str(classes), str(source)),
            ],
            timeout_s=_COMPILE_S,
            tied=True,
        )
        if done.returncode != 0:
            said = one_line(done.stderr + done.stdout)[:300]
            raise EngineFailed(f"{installation.java} cannot compile the job of Flink: {said}")

    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        make_once(target, make, what="the job of Flink", needed_bytes=_CLASSES_BYTES)
    return target


def _runs(rest: Rest, task_manager: Server) -> bool:
    """Whether all tasks of the job run."""
    if (status := task_manager.child.poll()) is not None:
        raise task_manager.failure(f"ended with status {status}")
    try:
        return any(0 < job.tasks.total == job.tasks.running for job in rest.overview().jobs)
    except ServerGone:
        return False


def _one_job(rest: Rest) -> JobLine:
    """Raises UsageError unless one job runs there."""
    jobs = [job for job in rest.overview().jobs if job.state == "RUNNING"]
    if not jobs:
        raise UsageError(f"{rest.url}: no job runs there")
    if len(jobs) > 1:
        listed = first_of([f"{job.id} ({job.name})" for job in jobs], 3)
        raise UsageError(
            f"{rest.url}: several jobs run there: {listed}; choose one with {rest.url}/jobs/ID"
        )
    return jobs[0]


def _warm_up(host: Host, running: FlinkJob) -> None:
    """Wait until the sources give their rate, so that the JVM has compiled the job. Sources that
    cannot give it are as `measure` shows them: there is a backlog."""
    wanted = _AT_RATE * sum(each["per_s"] for each in table() if each["kind"] == "source")
    deadline_s = host.monotonic() + _WARM_S
    while host.monotonic() < deadline_s and running.rate(1.0) < wanted:
        pass
