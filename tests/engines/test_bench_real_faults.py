"""Faults of real engines during a bench: hung, out of memory, their disk full, all of it killed.

After each: the engine's or the kernel's own words for the block or the query that failed, the next
block finished, and no process and no folder left.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from atoll.bench.job import NAME
from atoll.bench.results import Results, read_results
from atoll.engines.postgresql.client import PostgreSQLClient
from atoll.engines.postgresql.engine import PostgreSQLEngine
from atoll.errors import EngineFailed
from atoll.host.local import LocalHost
from atoll.inspect.processes import process_table
from atoll.schema.results import BlockFailed, PassDone, QueryFailed
from atoll.store.paths import cache_dir, run_dir
from atoll.supervise import records
from atoll.supervise.stop import down
from tests.parts import bench_fault_jobs
from tests.parts.deployment import (
    bench_command,
    bench_up_to,
    end_whoever_watches,
    kill_at_once,
    left_over,
    until,
)
from tests.parts.paths import ROOT
from tests.parts.postgresql import ORDINARY_USER, pids
from tests.parts.server import up

pytestmark = pytest.mark.installed

HOST = LocalHost()
AS_USER = {"duckdb": (), "postgresql": ORDINARY_USER}
# A tmpfs over the folder for spilled data, which only what follows sees.
SMALL_DISK = (
    *("unshare", "--user", "--map-root-user", "--mount", "sh", "-c"),
    'mount -t tmpfs -o size="$1" none "$2" && shift 2 && exec "$@"',
    "sh",
)


@pytest.fixture(params=["duckdb", "postgresql"])
def engine(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if name == "postgresql":
        try:
            PostgreSQLEngine().find(HOST)
        except EngineFailed as fault:
            pytest.skip(str(fault))  # it is not installed, or refuses this account
    return name


@contextmanager
def memory_cgroup(limit_bytes: int) -> Iterator[Path]:
    """An empty cgroup with so much memory; the test is skipped where none can be made."""
    root = Path("/sys/fs/cgroup")
    first = (root / "memory").is_dir()  # version 1
    group = (root / "memory" if first else root) / f"atoll-test-{os.getpid()}"
    limit = "memory.limit_in_bytes" if first else "memory.max"
    try:
        group.mkdir()
    except OSError as fault:
        pytest.skip(f"no memory cgroup can be made here: {fault.strerror}")
    try:
        try:
            (group / limit).write_text(str(limit_bytes))
        except OSError as fault:
            pytest.skip(f"no memory cgroup can be made here: {fault.strerror}")
        yield group
    finally:
        until_removed(group)


def until_removed(group: Path) -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            group.rmdir()
        except OSError:
            assert time.monotonic() < deadline, (group / "cgroup.procs").read_text()
            time.sleep(0.05)
        else:
            return


def job(engine: str, path: Path, fault: str, *more: str, prefix: tuple[str, ...] = ()) -> Results:
    """What a bench with that fault has left, once it came to its end."""
    script = (sys.executable, "-m", "tests.parts.bench_fault_jobs", engine, str(path), fault)
    done = subprocess.run(
        [*prefix, *AS_USER[engine], *script, *more],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert left_over(NAME) == []
    assert NAME not in records.names()
    found = read_results(path)
    assert found.end is not None and found.end.status == "complete"
    return found


def error(found: Results, kind: type[BlockFailed | QueryFailed] = BlockFailed) -> str:
    """Of the block, or of the query, which leaves the block whole."""
    (failed,) = [one for one in found.lines if isinstance(one, BlockFailed | QueryFailed)]
    assert isinstance(failed, kind) and failed.block == 0
    done = [one.block for one in found.lines if isinstance(one, PassDone)]
    assert done == ([1] if kind is BlockFailed else [0, 1])
    assert "\n" not in failed.error
    return failed.error


def test_a_hung_engine_is_ended_after_its_limit(engine: str, tmp_path: Path) -> None:
    said = error(job(engine, tmp_path / "r.jsonl", "hung"))
    assert f"no answer within {bench_fault_jobs.QUERY_LIMIT_S:g} s" in said


def test_what_the_kernel_kills_for_want_of_memory_is_told_as_that(
    engine: str, tmp_path: Path
) -> None:
    with memory_cgroup(8 << 20) as group:
        said = error(job(engine, tmp_path / "r.jsonl", "killed for memory", str(group)))
    assert "worker-0 died" in said
    assert re.search(r"the OOM killer ended \d+ process", said), said


def test_a_query_that_gets_no_memory_is_left_out(engine: str, tmp_path: Path) -> None:
    said = error(job(engine, tmp_path / "r.jsonl", "refused memory"), QueryFailed)
    assert "memory" in said.lower()


def test_a_query_that_finds_the_disk_full_is_left_out(engine: str, tmp_path: Path) -> None:
    folder, size = str(cache_dir("scratch")), "96m" if engine == "postgresql" else "16m"
    probe = subprocess.run(
        [*SMALL_DISK, size, folder, "true"], capture_output=True, text=True, check=False
    )
    if probe.returncode:
        pytest.skip(f"no disk can be mounted here: {probe.stderr.strip()}")
    prefix = (*SMALL_DISK, size, folder)
    said = error(job(engine, tmp_path / "r.jsonl", "full disk", prefix=prefix), QueryFailed)
    assert re.search(r"no space left|could not write|offload", said, re.IGNORECASE), said


# ---- kill -9 of the tool, its keeper and its supervisor, and of no engine


POINTS = [
    b'"record":"pass"',
    *(
        pytest.param(point, marks=pytest.mark.long)
        for point in (b'"record":"header"', b'"record":"up"', b'"phase":"warm-up"')
    ),
]


@pytest.mark.parametrize("point", POINTS)
def test_engines_that_nobody_watches_any_more_are_ended_by_the_next_bench(
    engine: str, point: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "r.jsonl"
    command = [*AS_USER[engine], *bench_command(engine, path)]
    with bench_up_to(point, command, path) as process:
        namespace = os.open(f"/proc/{process.pid}/ns/user", os.O_RDONLY)
        orphans = end_whoever_watches(process.pid)
    # As the same user in the same user namespace: in another one it may not look at their marks.
    # Held by a file, as each of its processes may end.
    start = len(AS_USER[engine])
    user = ["nsenter", f"--user=/proc/self/fd/{namespace}", "--preserve-credentials"]
    again = subprocess.run(
        [*(user if start else ()), *command[start:], "--resume"],
        pass_fds=[namespace],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    os.close(namespace)
    assert again.returncode == 0, again.stderr
    assert [one for one in orphans if HOST.identify(one.pid) == one] == []
    found = read_results(path)
    assert [one.block for one in found.lines if isinstance(one, PassDone)] == [0, 1]
    assert NAME not in records.names()
    assert list(run_dir().iterdir()) == []


def test_a_busy_session_that_lost_its_server_is_found_without_a_cgroup(tmp_path: Path) -> None:
    """It has written over its environment, and does not see that it is alone before it answers."""
    sql = "select sum(sqrt(i * j)) from generate_series(1, 100000) i, generate_series(1, 100000) j"
    with up("postgresql", "pg-alone", "wim") as record:
        client = PostgreSQLClient.at(record.endpoints[0], timeout_s=60)
        session = client.execute("select pg_backend_pid()", timeout_s=60).rows[0][0]
        alone = HOST.identify(session)
        asking = threading.Thread(target=ask_in_vain, args=(client, sql), daemon=True)
        asking.start()
        until(lambda: is_busy(session), lambda: "the query does not run")
        assert record.keeper is not None and record.supervisor is not None
        kill_at_once([record.keeper.pid, record.supervisor.pid, *pids(record)])
        records.write(record.model_copy(update={"cgroup": ""}))
        until(lambda: parent_of(session) not in pids(record), lambda: "the server still lives")
        assert HOST.identify(session) == alone
        assert "ATOLL" not in Path(f"/proc/{session}/environ").read_text()
        down("pg-alone", HOST)  # from here: a command in a user namespace of its own sees nothing
        assert HOST.identify(session) != alone
        with contextlib.suppress(OSError):  # where one could be made
            Path(record.cgroup).rmdir()
        asking.join(30)


def ask_in_vain(client: PostgreSQLClient, sql: str) -> None:
    with contextlib.suppress(EngineFailed):
        client.execute(sql, timeout_s=600)


def is_busy(pid: int) -> bool:
    """Whether it has had a tick of CPU time since it was last asked to."""
    before = Path(f"/proc/{pid}/stat").read_text().split()[13]
    time.sleep(0.1)
    return Path(f"/proc/{pid}/stat").read_text().split()[13] != before


def parent_of(pid: int) -> int:
    return process_table(HOST)[pid].parent
