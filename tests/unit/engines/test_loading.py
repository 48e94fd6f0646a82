"""Loading tables into the cache: whole or not at all, and the error when it fails."""

from __future__ import annotations

import errno
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from atoll.engines.api import Data
from atoll.engines.loading import server as loading_server
from atoll.engines.loading.server import started
from atoll.engines.loading.templates import Meter, loaded_path, make_loaded, run_all
from atoll.errors import DiskFull, EngineFailed, NotPermitted
from atoll.host.local import LocalHost
from tests.parts.faults import fails

DATA = Data("tpch-sf1", "0123456789abcdef" * 4, ())


def made(folder: Path) -> None:
    folder.mkdir()
    (folder / "rows").write_text("all")


def make(target: Path, how: Callable[[Path], None] = made, needed_bytes: int = 0) -> list[str]:
    said: list[str] = []
    make_loaded(
        target,
        DATA,
        needed_bytes=needed_bytes,
        progress=lambda what, part: said.append(what),
        make=how,
    )
    return said


def test_the_content_of_the_data_is_in_the_name() -> None:
    assert loaded_path("/c/15", DATA) == "/c/15-tpch-sf1-0123456789ab-2"


def test_it_is_made_once_and_what_a_killed_one_left_is_removed(tmp_path: Path) -> None:
    unfinished = tmp_path / ".t.unfinished"
    made(unfinished)
    make(tmp_path / "t")
    assert not unfinished.exists()
    assert (tmp_path / "t/rows").read_text() == "all"

    def never(folder: Path) -> None:
        raise AssertionError

    make(tmp_path / "t", never)


@pytest.mark.parametrize(
    ("fault", "kind", "named"),
    [
        (DiskFull("COPY: all is lost"), DiskFull, ("tpch-sf1", "COPY: all is lost")),
        (EngineFailed("syntax error"), EngineFailed, ("syntax error",)),
        (OSError(errno.ENOSPC, "No space left on device", "/c/x"), DiskFull, ("tpch-sf1",)),
        (OSError(errno.EACCES, "Permission denied", "/c/x"), NotPermitted, ("/c/x",)),
        (KeyboardInterrupt(), KeyboardInterrupt, ()),
    ],
)
def test_one_that_fails_leaves_nothing(
    tmp_path: Path, fault: BaseException, kind: type[BaseException], named: tuple[str, ...]
) -> None:
    def fill(folder: Path) -> None:
        made(folder)
        raise fault

    with pytest.raises(kind) as caught:
        make(tmp_path / "t", fill)
    assert all(value in str(caught.value) for value in named)
    assert [path.name for path in tmp_path.iterdir()] == [".t.lock"]


def test_too_little_room_is_told_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Usage(NamedTuple):
        free: int

    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(free=999))
    with fails(DiskFull, folder=tmp_path, what="tpch-sf1", needed="1000 B", free="999 B"):
        make(tmp_path / "t", needed_bytes=1000)
    assert not (tmp_path / "t").exists()


def test_what_makes_a_template_dies_with_us(tmp_path: Path) -> None:
    made_by = ("sh", "-c", f"echo $$ > {tmp_path}/pid; exec sleep 600")
    call = f"make_empty({str(tmp_path / 't')!r}, {made_by}, {{}}, LocalHost())"
    code = (
        "from atoll.engines.loading.templates import make_empty; "
        f"from atoll.host.local import LocalHost; {call}"
    )
    loader = subprocess.Popen([sys.executable, "-c", code])
    pid = tmp_path / "pid"
    eventually(lambda: pid.exists() and pid.read_text().endswith("\n"))
    loader.kill()
    loader.wait()
    eventually(lambda: not Path("/proc", pid.read_text().strip()).exists())


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# ---- the server that loads


def program(text: str) -> tuple[str, ...]:
    return (sys.executable, "-c", text)


SLEEPS = program("import time; time.sleep(600)")


def test_a_server_that_ends_is_told_with_its_telling_line(tmp_path: Path) -> None:
    text = "print('starting'); print('FATAL: no luck'); print('bye'); raise SystemExit(3)"
    with (
        fails(EngineFailed, name="X", status=3, line="FATAL: no luck"),
        started("X", program(text), host=LocalHost(), env={}, log=tmp_path / "log") as server,
    ):
        server.await_answer(lambda: False)


def test_a_server_is_not_steered_by_what_is_set_in_a_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGDATA", "/nix")
    monkeypatch.setenv("MYSQL_GROUP_SUFFIX", "-theirs")
    text = "import os; print(*(name for name in os.environ if name[:2] in ('PG', 'MY')), 'end')"
    log = tmp_path / "log"
    with started("X", program(text), host=LocalHost(), env={"MINE": "1"}, log=log) as server:
        server.child.wait(60)
    assert log.read_text() == "end\n"


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server on a machine that stands still for a while is not killed for it."""
    monkeypatch.setattr(loading_server, "_ABORT_S", 60.0)


@pytest.mark.usefixtures("patient")
def test_a_server_has_gone_at_the_end(tmp_path: Path) -> None:
    with started(
        "X", SLEEPS, host=LocalHost(), env={}, log=tmp_path / "log", abort=signal.SIGTERM
    ) as server:
        server.await_answer(lambda: True)
        assert server.child.poll() is None
    assert server.child.poll() == -signal.SIGTERM


def test_a_task_that_fails_ends_the_server_that_the_others_wait_for(tmp_path: Path) -> None:
    with started("X", SLEEPS, host=LocalHost(), env={}, log=tmp_path / "log") as server:

        def load() -> None:
            raise EngineFailed("no such column")

        def waits() -> None:
            server.child.wait(60)
            raise EngineFailed("connection lost")

        with fails(EngineFailed, theirs="no such column"):
            run_all([load, waits], at_once=2, server=server, tell=lambda: None)


@pytest.mark.usefixtures("patient")
def test_a_task_that_fails_lets_the_server_clean_up(tmp_path: Path) -> None:
    """PostgreSQL, killed, would leave its shared memory behind."""
    text = (
        "import pathlib, signal, sys, time\n"
        "def end(*_):\n"
        f"    pathlib.Path({str(tmp_path / 'clean')!r}).touch(); sys.exit(2)\n"
        "signal.signal(signal.SIGQUIT, end); print('up', flush=True); time.sleep(600)"
    )
    log = tmp_path / "log"
    with started(
        "X", program(text), host=LocalHost(), env={}, log=log, abort=signal.SIGQUIT
    ) as server:
        server.await_answer(lambda: "up" in log.read_text())

        def load() -> None:
            raise EngineFailed("no such column")

        with fails(EngineFailed, theirs="no such column"):
            run_all([load], at_once=1, server=server, tell=lambda: None)
    assert (tmp_path / "clean").exists()


def test_a_full_disk_in_the_log_of_the_server_is_the_cause(tmp_path: Path) -> None:
    text = "print('PANIC: No space left on device', flush=True)"
    log = tmp_path / "log"

    def load() -> None:
        with started("X", program(text), host=LocalHost(), env={}, log=log) as server:
            server.child.wait(60)
            raise EngineFailed("checkpoint request failed")

    with fails(DiskFull, theirs="checkpoint request failed", line="PANIC: No space left on device"):
        load()


def test_a_server_that_dies_says_more_than_the_lost_connection(tmp_path: Path) -> None:
    text = "import time; print('PANIC: out of luck', flush=True); time.sleep(600)"
    log = tmp_path / "log"
    with started("X", program(text), host=LocalHost(), env={}, log=log) as server:
        server.await_answer(lambda: "PANIC" in log.read_text())

        def waits() -> None:
            server.child.signal(signal.SIGKILL)
            server.child.wait(60)
            raise EngineFailed("connection lost")

        with fails(EngineFailed, name="X", theirs="connection lost", line="PANIC: out of luck"):
            run_all([waits], at_once=1, server=server, tell=lambda: None)


def test_all_tasks_are_done_and_progress_is_told(tmp_path: Path) -> None:
    meter = Meter({"a": 3, "b": 1})
    told: list[float] = []

    def task(table: str) -> None:
        time.sleep(0.01)
        meter.done[table] = 1.0

    with started("X", SLEEPS, host=LocalHost(), env={}, log=tmp_path / "log") as server:
        run_all(
            [lambda: task("a"), lambda: task("b")],
            at_once=2,
            server=server,
            tell=lambda: told.append(meter.part),
        )
    assert meter.part == 1.0
    assert told == sorted(told)
