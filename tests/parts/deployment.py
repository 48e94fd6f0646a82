"""For the tests of deployments: the toy is started, owned by a process, and looked for.

What is left of a deployment is looked for from outside, by the mark that every process of it
carries in its environment.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from click.testing import CliRunner, Result

from atoll.cli import cli
from atoll.errors import AtollError
from atoll.host.local import LocalHost
from atoll.host.procfs import parse_stat
from atoll.inspect.processes import descendants, process_table
from atoll.schema.deployment import Deployment, ProcessId
from atoll.supervise import records
from atoll.supervise.launch import Progress, Running, launch
from atoll.supervise.stop import down
from tests.conftest import PRIVATE_PREFIX
from tests.parts.paths import ROOT
from tests.parts.toy import ToyEngine, this_machine, toy_plan

HOST = LocalHost()
PATIENCE_S = 180.0
# In `make test`, where the test of another file has the OOM killer end some.
KILLED = (
    r"\(killed by SIGKILL"
    r"(: out of memory; the OOM killer acted in its cgroup \(see dmesg\)|"
    r"; the OOM killer ended \d+ process(es)? \(see dmesg\))?\)"
)


def start(
    name: str,
    engine: ToyEngine | None = None,
    workers: int = 2,
    progress: Progress = lambda line: None,
) -> Running:
    return launch(
        toy_plan(workers),
        engine or ToyEngine(),
        machine=this_machine(),
        host=HOST,
        name=name,
        grace_s=1.0,
        progress=progress,
    )


def left_over(name: str) -> list[str]:
    """Living processes of a deployment of that name, its keeper and supervisor too. Not those of
    another run of the tests."""
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
        variables = environ.split(b"\0")
        (path, *_) = [line[5:] for line in variables if line.startswith(b"PATH=")] or [b""]
        if is_of_another_run(path.decode(errors="replace")):
            continue
        of_it = any(line.startswith(f"ATOLL_DEPLOYMENT={name}:".encode()) for line in variables)
        if stat.lives and (of_it or request_of(name, command)):
            found.append(f"{entry} {stat.comm} {command.replace(bytes(1), b' ')!r}")
    return found


def is_of_another_run(path: str) -> bool:
    """Or of somebody's own bench. By the mark of this run in its PATH (tests/conftest.py), which
    engines inherit; in the guest there is none, and only one run."""
    return not _marks(os.environ["PATH"]) <= _marks(path)


def _marks(path: str) -> set[str]:
    folders = path.split(os.pathsep)
    return {folder for folder in folders if Path(folder).name.startswith(PRIVATE_PREFIX)}


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


def until(
    what: Callable[[], bool], saying: Callable[[], object], *, patience_s: float = PATIENCE_S
) -> None:
    deadline = time.monotonic() + patience_s
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
            [sys.executable, "-m", "tests.parts.toy", "owner", "--name", name, *flags],
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


def bench_command(engine: str, path: Path) -> list[str]:
    return [
        *(sys.executable, "-m", "atoll", "bench", engine, "--policies", "wim", "--sf", "0.01"),
        *("--queries", "1,6", "--blocks", "2", "-o", str(path)),
    ]


@contextmanager
def bench_up_to(point: bytes, command: list[str], path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A bench that has written these words into its results. It is killed at the end."""
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        deadline = time.monotonic() + 600
        while not (path.exists() and point in path.read_bytes()):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.005)
        yield process
    finally:
        process.kill()
        process.wait()


# ---- the command line


def atoll(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def message(result: Result) -> str:
    assert isinstance(result.exception, AtollError), result.output
    return str(result.exception)


# ---- kill -9 of several


def kill_at_once(pids: Collection[int]) -> None:
    """None of them acts on the death of another; returns when all have gone."""
    stop_all(pids)
    for pid in pids:
        signal_if_there(pid, signal.SIGKILL)
    until(lambda: not any(map(HOST.identify, pids)), lambda: pids)


def stop_all(pids: Collection[int]) -> None:
    for pid in pids:
        signal_if_there(pid, signal.SIGSTOP)
    until(lambda: all(map(stands_still, pids)), lambda: pids)


def signal_if_there(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):  # a supervisor whose work was done ends by itself
        os.kill(pid, number)


def stands_still(pid: int) -> bool:
    """Whether every thread is stopped. A process that starts another is not, until that one has
    begun."""
    try:
        found = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    except (FileNotFoundError, ProcessLookupError):
        return False  # a thread has ended meanwhile
    return all(parse_stat(text).state in "TtZX" for text in found)


def end_whoever_watches(tool: int) -> list[ProcessId]:
    """kill -9 of a bench, its keeper and its supervisor at once. The engines are left."""
    watching: set[int] = set()
    found = {tool}
    while found - watching:  # who is stopped starts no other
        stop_all(found - watching)
        watching |= found
        below = descendants(process_table(HOST), tool)
        found = {tool, *(one.pid for one in below if is_keeper(one.pid))}
    kill_at_once(watching)
    return [one for one in below if one.pid not in watching]


def is_keeper(pid: int) -> bool:
    """Or the supervisor, which is its fork."""
    try:
        return b"atoll.supervise.keeper" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
