"""Faults during a bench, with real processes: hangs, kills, a taken port, a full disk.

A toy engine where the fault is in the client or in the start, DuckDB where a query must be under
way. After each: a clear error, the finished results kept, and no process left.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from atoll.bench import deploy, passes
from atoll.bench.job import NAME
from atoll.bench.results import read_results
from atoll.bench.runner import Tick
from atoll.engines.api import Client, QueryResult
from atoll.errors import DownloadFailed, EngineFailed, ServerGone
from atoll.host.local import LocalHost
from atoll.inspect.processes import MARK, environment, process_table
from atoll.schema.results import BlockFailed, PassDone
from atoll.supervise import client_calls, records
from atoll.supervise.stop import listing
from tests.parts.deployment import (
    KILLED,
    bench_command,
    bench_up_to,
    end_whoever_watches,
    is_of_another_run,
    stop_all,
    until,
)
from tests.parts.toy import ToyClient, ToyEngine
from tests.parts.toy_bench import NAME as TOY
from tests.parts.toy_bench import QUERY_LIMIT_S, Work, bench

HOST = LocalHost()


class AskedBy(ToyEngine):
    """With clients of another kind."""

    def __init__(self, client: Callable[[str], Client]) -> None:
        super().__init__()
        self._client = client

    def connect(self, endpoints: Sequence[str], *, timeout_s: float) -> list[Client]:
        return [self._client(path) for path in endpoints]


class HungClient(ToyClient):
    """A client library that never comes back, whatever its limit, nor closes."""

    def execute(self, sql: str, *, timeout_s: float) -> QueryResult:
        if sql == "hang":
            threading.Event().wait()
        return super().execute(sql, timeout_s=timeout_s)

    def close(self) -> None:
        threading.Event().wait()


def left(name: str) -> list[int]:
    """Processes of the deployment that live; not of another run of the tests (left_over)."""
    found = []
    for pid, stat in process_table(HOST).items():
        variables = environment(HOST, pid)
        is_ours = not is_of_another_run(variables.get("PATH", ""))
        if stat.lives and is_ours and variables.get(MARK, "").startswith(f"{name}:"):
            found.append(pid)
    return found


def test_a_bench_of_somebody_else_is_not_of_this_run() -> None:
    env = {MARK: f"{NAME}:1"}
    foreign, own = (
        subprocess.Popen(["/bin/sleep", "600"], env=env | {"PATH": path})
        for path in ("/bin", os.environ["PATH"])
    )
    try:
        assert left(NAME) == [own.pid]
    finally:
        for one in (foreign, own):
            one.kill()
            one.wait()


@pytest.fixture(autouse=True)
def nothing_is_left() -> object:
    yield
    assert left(TOY) == [] and TOY not in records.names()


@pytest.mark.installed  # it waits for a whole limit
def test_a_client_that_hangs_is_given_up_and_its_deployment_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second deployment's measured pass hangs, in a library that keeps to no limit."""
    for module in (passes, client_calls):
        monkeypatch.setattr(module, "SLACK_S", 0.5)
    monkeypatch.setattr(client_calls, "_CLOSE_S", 0.2)
    path = tmp_path / "r.jsonl"
    work = Work(query_of=lambda turn: "hang" if turn == 3 else "select 1")
    bench(path, AskedBy(HungClient), work, blocks=3)
    found = read_results(path)
    (failed,) = [line for line in found.lines if isinstance(line, BlockFailed)]
    assert failed.block == 1
    assert "q1 hangs" in failed.error and f"limit of {QUERY_LIMIT_S:g} s" in failed.error
    assert [line.block for line in found.lines if isinstance(line, PassDone)] == [0, 2]


@pytest.mark.installed  # it waits for a whole limit
def test_an_engine_that_answers_nothing_any_more_fails_its_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All its processes are stopped (SIGSTOP) while it is measured."""
    # The client gives up first, also where the machine stands still meanwhile.
    monkeypatch.setattr(passes, "SLACK_S", 120.0)
    monkeypatch.setattr(deploy, "_CONNECT_S", 10.0)  # of the look whether it lives
    stopped: list[int] = []

    def stop(tick: Tick) -> None:
        if tick.doing == "measuring" and not stopped:
            stopped.extend(left(TOY))
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)

    path = tmp_path / "r.jsonl"
    bench(path, ToyEngine(), tick=stop)
    found = read_results(path)
    assert len(stopped) >= 3
    (failed,) = [line for line in found.lines if isinstance(line, BlockFailed)]
    assert (failed.block, "timed out" in failed.error) == (0, True), failed
    assert [line.block for line in found.lines if isinstance(line, PassDone)] == [1]


class BlindClient(ToyClient):
    """Answers also where its server has gone: that is found out after the pass."""

    def execute(self, sql: str, *, timeout_s: float) -> QueryResult:
        return QueryResult(columns=(), rows=[(1,)], engine_seconds=0.0)


def test_a_worker_killed_while_another_pass_is_kept(tmp_path: Path) -> None:
    def kill(tick: Tick) -> None:
        if tick.doing == "measuring" and tick.block == 1:
            record = records.read(TOY)
            assert record is not None and record.processes[-1].id is not None
            os.kill(record.processes[-1].id.pid, signal.SIGKILL)
            until(lambda: not left(TOY), lambda: left(TOY))  # its supervisor has told by then

    path = tmp_path / "r.jsonl"
    bench(path, AskedBy(BlindClient), tick=kill)
    found = read_results(path)
    (failed,) = [line for line in found.lines if isinstance(line, BlockFailed)]
    assert failed.block == 1
    assert re.search(f"worker-1 died {KILLED}", failed.error)
    assert [line.block for line in found.lines if isinstance(line, PassDone)] == [0]


class CutOffClient(ToyClient):
    def execute(self, sql: str, *, timeout_s: float) -> QueryResult:
        if sql == "cut off":
            raise ServerGone("toy: it hung up")
        return super().execute(sql, timeout_s=timeout_s)


@pytest.mark.long
def test_why_a_server_is_gone_is_told_by_a_slow_supervisor_too(tmp_path: Path) -> None:
    def kill(tick: Tick) -> None:
        if tick.doing == "measuring":
            record = records.read(TOY)
            assert record is not None and record.supervisor is not None
            assert record.processes[-1].id is not None
            stop_all([record.supervisor.pid])
            threading.Timer(4, os.kill, (record.supervisor.pid, signal.SIGCONT)).start()
            os.kill(record.processes[-1].id.pid, signal.SIGKILL)

    path = tmp_path / "r.jsonl"
    work = Work(query_of=lambda turn: "cut off" if turn == 1 else "select 1")
    bench(path, AskedBy(CutOffClient), work, blocks=1, tick=kill)
    (failed,) = [line for line in read_results(path).lines if isinstance(line, BlockFailed)]
    assert re.search(f"worker-1 died {KILLED}", failed.error)


def test_a_port_that_stays_taken_stops_the_bench_with_its_words(tmp_path: Path) -> None:
    import socket

    path = tmp_path / "r.jsonl"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        engine = ToyEngine(port_of=lambda _: int(taken.getsockname()[1]))
        with pytest.raises(EngineFailed, match="toy/wic"):
            bench(path, engine, blocks=5)
    failed = [line for line in read_results(path).lines if isinstance(line, BlockFailed)]
    assert len(failed) == 3
    assert all("ddress already in use" in line.error for line in failed)


def test_a_full_disk_ends_the_bench_with_whole_lines(tmp_path: Path) -> None:
    """Once it measures, no file may grow beyond what the results have (RLIMIT_FSIZE)."""
    path = tmp_path / "r.jsonl"
    script = """
import resource, signal, sys
from pathlib import Path
from tests.parts.toy import ToyEngine
from tests.parts.toy_bench import bench
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path = Path(sys.argv[1])
def fill(tick):
    if tick.doing == "measuring":
        size = path.stat().st_size + 10
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
bench(path, ToyEngine(), tick=fill)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert DownloadFailed.__name__ in done.stderr, done.stderr
    assert path.name in done.stderr
    found = read_results(path)
    assert found.end is None
    assert path.read_bytes().endswith(b"\n") and len(found.lines) >= 1


POINTS = [
    *(b'"phase":"warm-up"', b'"record":"pass"'),
    *(
        pytest.param(point, marks=pytest.mark.long)
        for point in (b'"record":"header"', b'"record":"up"', b'"record":"profile"')
    ),
]


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_any_point_then_resumed(tmp_path: Path, point: bytes) -> None:
    """kill -9 of the bench, its keeper, its supervisor and all engines at once."""
    path = tmp_path / "r.jsonl"
    command = bench_command("duckdb", path)
    with bench_up_to(point, command, path) as process:
        for engine in end_whoever_watches(process.pid):
            with suppress(ProcessLookupError):
                os.kill(engine.pid, signal.SIGKILL)
    kept = read_results(path)
    again = subprocess.run(
        [*command, "--resume"], capture_output=True, text=True, timeout=300, check=False
    )
    assert again.returncode == 0, again.stderr
    found = read_results(path)
    assert found.end is not None and found.end.status == "complete"
    assert found.header == kept.header
    assert [line.block for line in found.lines if isinstance(line, PassDone)] == [0, 1]
    whole = [line for line in kept.lines if getattr(line, "block", 9) < kept.whole_blocks]
    assert list(found.lines[: len(whole)]) == whole
    assert left(NAME) == []
    assert [one.name for one in listing(HOST)[0] if one.name == NAME] == []
