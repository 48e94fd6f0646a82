"""For the tests of deployments: the toy is started, owned by a process, and looked for.

What is left of a deployment is looked for from outside, by the mark that every process of it
carries in its environment.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from atoll.host.local import LocalHost
from atoll.host.procfs import parse_stat
from atoll.schema.deployment import Deployment
from atoll.supervise import records
from atoll.supervise.launch import Running, launch
from atoll.supervise.stop import down
from tests.engines.toy import ToyEngine, this_machine, toy_plan

ROOT = Path(__file__).resolve().parents[2]
HOST = LocalHost()
PATIENCE_S = 30.0


def start(name: str, engine: ToyEngine | None = None, workers: int = 2) -> Running:
    return launch(
        toy_plan(workers),
        engine or ToyEngine(),
        machine=this_machine(),
        host=HOST,
        name=name,
        grace_s=1.0,
    )


def left_over(name: str) -> list[str]:
    """Living processes of a deployment of that name, its keeper and supervisor too."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            environ = Path(f"/proc/{entry}/environ").read_bytes()
            command = Path(f"/proc/{entry}/cmdline").read_bytes()
            stat = parse_stat(Path(f"/proc/{entry}/stat").read_text())
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        of_it = f"ATOLL_DEPLOYMENT={name}:".encode() in environ
        if stat.lives and (of_it or request_of(name, command)):
            found.append(f"{entry} {stat.comm} {command.replace(bytes(1), b' ')!r}")
    return found


def request_of(name: str, command: bytes) -> bool:
    """Whether it is the keeper or the supervisor of that name."""
    words = command.decode(errors="replace").split("\0")
    if "atoll.supervise.keeper" not in words:
        return False
    try:
        text = Path(words[words.index("atoll.supervise.keeper") + 1]).read_text()
    except FileNotFoundError:
        return False
    return f'"name":"{name}"' in text


def until(what: Callable[[], bool], saying: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < deadline, saying()
        time.sleep(0.05)


def until_gone(name: str) -> None:
    until(lambda: not left_over(name), lambda: left_over(name))
    lock = None

    def is_free() -> bool:
        nonlocal lock
        lock = records.try_lock(name)
        return lock is not None

    until(is_free, lambda: f"{name}: locked")
    assert lock is not None
    os.close(lock)


class Owner:
    """A process of its own that launches the toy, so that it can be killed."""

    def __init__(self, name: str, *flags: str) -> None:
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.engines.toy", "owner", "--name", name, *flags],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def until_says(self, line: str) -> None:
        assert self.process.stdout is not None
        heard = []
        for said in self.process.stdout:
            heard.append(said)
            if line in said:
                return
        raise AssertionError("".join(heard))

    def record(self) -> Deployment:
        record = records.read(self.name)
        assert record is not None
        return record


@contextmanager
def owner(name: str, *flags: str) -> Iterator[Owner]:
    held = Owner(name, *flags)
    try:
        yield held
    finally:
        held.process.kill()
        held.process.communicate()
        if name in records.names():
            down(name, HOST)
        assert not left_over(name)
