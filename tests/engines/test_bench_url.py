"""`atoll replay ENGINE URL --suite DIR` against a real, running PostgreSQL."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from atoll.bench.address import parse_address
from atoll.bench.cluster import look_at_cluster
from atoll.bench.results import read_results
from atoll.host.local import LocalHost
from atoll.schema.base import parse
from atoll.schema.results import (
    BlockFailed,
    ClusterLook,
    PassDone,
    QueryFailed,
    QueryTime,
    VerifyResult,
)
from atoll.schema.summary import BenchSummary
from atoll.supervise.launch import launch
from tests.parts.cluster import PASSWORD, Cluster, cluster, suite
from tests.parts.toy import ToyEngine, this_machine, toy_plan

pytestmark = pytest.mark.installed

QUERIES = [
    ("q10", "select n, n * 1.5::float8 as f from numbers where n % 7 = 0 order by n limit 20;"),
    ("q2", "-- how many; of them\nselect count(*) from numbers"),
    ("unordered", "select n % 3 as rest, sum(n) from numbers group by 1"),
]
CPU = str(min(os.sched_getaffinity(0)))


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster") / "c", "taskset", "-c", CPU) as found:
        yield found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return suite(tmp_path / "mine", QUERIES)


def atoll(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "atoll", "replay", "postgresql", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, **environment},
    )


def test_a_whole_replay(up: Cluster, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    arguments = (up.url, "--suite", str(folder), "-o", str(path))
    done = atoll(*arguments, "--blocks", "2", "--json")
    assert done.returncode == 0, done.stderr
    summary = parse(BenchSummary, done.stdout, where="stdout")
    (one,) = summary.entrants
    assert (one.label, one.url, one.policy, one.baseline) == (up.label, up.told, None, None)
    assert summary.queries == ("q2", "q10", "unordered"), "numbers by their value"
    assert summary.suite == "mine" and summary.scale_factor is None
    assert one.blocks_done == 2
    codes = {warning.code for warning in summary.warnings}
    assert not codes & {"answer-changed", "block-failed", "cluster-unseen", "page-cache", "drift"}
    assert summary.fingerprint.engine_versions["postgresql"].startswith("PostgreSQL ")

    found = read_results(path)
    times = [line for line in found.lines if isinstance(line, QueryTime)]
    assert len(times) == 2 * 2 * 3
    assert {line.answer for line in times} == {"ok"}
    assert not any(isinstance(line, VerifyResult) for line in found.lines)
    looks = [line for line in found.lines if isinstance(line, ClusterLook)]
    assert [look.when for look in looks] == ["before", "after"] * 2
    for look in looks:
        assert not look.unknown
        # The postmaster, its helpers, and our connection's own; all where it was started.
        assert len(look.processes) >= 4
        assert {seen.process for seen in look.processes} == {"postgres"}
        assert {mask for seen in look.processes for mask in seen.masks} == {CPU}
        assert not any(seen.drift for seen in look.processes)
    assert any(seen.bytes_by_node for seen in looks[1].processes)

    told = path.read_text() + done.stdout + done.stderr
    for format_ in ("html", "md", "csv"):
        report = subprocess.run(
            [sys.executable, "-m", "atoll", "report", str(path), "--format", format_],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert up.label in report.stdout
        told += report.stdout
    assert f"CPUs {CPU}" in told and up.told in told
    assert "s3cret" not in told

    more = atoll(*arguments, "--blocks", "3", "--resume")
    assert more.returncode == 0, more.stderr
    resumed = read_results(path)
    assert resumed.whole_blocks == 3
    assert resumed.lines[: len(found.lines) - 1] == found.lines[:-1]

    (folder / "q2.sql").write_text("select count(*) + 1 from numbers")
    other = atoll(*arguments, "--blocks", "4", "--resume")
    assert other.returncode == 2
    assert "it differs in its SQL" in other.stderr


def test_two_clusters_in_the_same_blocks_and_a_change_is_told(
    up: Cluster, folder: Path, tmp_path: Path
) -> None:
    """The second answers from a table of its own schema, with one row more."""
    made = up.sql(
        "create schema if not exists other; drop table if exists other.numbers;"
        "create table other.numbers as select generate_series(1, 1001) as n"
    )
    assert made.returncode == 0, made.stderr
    path = tmp_path / "r.jsonl"
    there = f"{up.url}?options=-csearch_path%3Dother"
    done = atoll(
        *(up.url, there, "--suite", str(folder), "-o", str(path)),
        *("--queries", "q2,q10", "--blocks", "2", "--streams", "2"),
    )
    assert done.returncode == 0, done.stderr
    found = read_results(path)
    first, second = (entrant.label for entrant in found.header.entrants)
    assert (first, second) == (up.label, f"{up.label}-2")
    assert found.header.entrants[1].baseline == first
    times = [line for line in found.lines if isinstance(line, QueryTime)]
    assert len(times) == 2 * 2 * 2 * 2 * 2  # blocks, clusters, phases, queries, streams
    changed = {(line.label, line.query) for line in times if line.answer == "changed"}
    assert changed == {(second, "q2")}
    assert f"{second}: the answer to q2 differed from the first one" in " ".join(
        done.stdout.split()
    )


def test_bad_queries_are_left_out_and_the_rest_is_measured(up: Cluster, tmp_path: Path) -> None:
    """One is wrong, one hangs and is cancelled on the server, one ends its own session."""
    bad = {
        "wrong": "select nosuch from numbers",
        "hang": "select pg_sleep(601)",
        "quits": "select pg_terminate_backend(pg_backend_pid())",
    }
    folder = suite(tmp_path / "mine", [*QUERIES, *bad.items()])
    path = tmp_path / "r.jsonl"
    arguments = (up.url, "--suite", str(folder), "-o", str(path))
    done = atoll(*arguments, "--blocks", "3", "--query-limit", "5")
    assert done.returncode == 5, done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert "3 of 6 queries failed and were left out" in last and "the rest was measured" in last
    told = " ".join(done.stdout.split())
    assert f"wrong failed on {up.label} in block 3 (warm-up) and is left out: column" in told
    assert f"hang failed on {up.label} in block 2 (warm-up) and is left out: no answer" in told
    assert PASSWORD not in told + path.read_text()
    found = read_results(path)
    failed = {line.query for line in found.lines if isinstance(line, QueryFailed)}
    assert failed == set(bad)
    lost = [line.error for line in found.lines if isinstance(line, BlockFailed)]
    assert len(lost) == 2 and all(error.startswith("quits: ") for error in lost)
    assert [line.block for line in found.lines if isinstance(line, PassDone)] == [2]
    times = {line.query for line in found.lines if isinstance(line, QueryTime) and line.block == 2}
    assert times == {name for name, _ in QUERIES}
    still = "do $$ begin assert not exists (select from pg_stat_activity where query like "
    assert up.sql(f"{still} '%pg_sleep' || '(601)%'); end $$").returncode == 0


def looked_at(path: Path) -> dict[str, set[int]]:
    """By label the processes that were seen."""
    found: dict[str, set[int]] = {}
    for line in read_results(path).lines:
        if isinstance(line, ClusterLook):
            assert not line.unknown
            found.setdefault(line.label, set()).update(one.pid for one in line.processes)
    return found


def test_of_two_servers_at_one_port_each_has_its_own_processes(
    up: Cluster, folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "r.jsonl"
    with cluster(tmp_path / "c", address="127.0.0.2", port=up.port) as other:
        done = atoll(
            *(up.url, other.url, "--suite", str(folder), "-o", str(path)),
            *("--queries", "q2", "--blocks", "1"),
        )
        assert done.returncode == 0, done.stderr
        seen = looked_at(path)
        assert up.process is not None and other.process is not None
        assert up.process.pid in seen[up.label] and other.process.pid in seen[other.label]
        assert not seen[up.label] & seen[other.label]


def test_where_the_url_says_nothing_libpqs_own_server_is_looked_at(
    up: Cluster, folder: Path, tmp_path: Path
) -> None:
    """By its socket, not by the port, which another server listens at as well."""
    path = tmp_path / "r.jsonl"
    with cluster(tmp_path / "c", address="127.0.0.2", port=up.port) as other:
        done = atoll(
            *("postgresql://tester@/postgres", "--suite", str(folder), "-o", str(path)),
            *("--queries", "q2", "--blocks", "1"),
            PGHOST=str(other.folder),
            PGPORT=str(other.port),
            PGPASSWORD=PASSWORD,
        )
        assert done.returncode == 0, done.stderr
        assert up.process is not None and other.process is not None
        (seen,) = looked_at(path).values()
        assert other.process.pid in seen and up.process.pid not in seen


def test_a_cluster_that_goes_away_and_comes_back(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "r.jsonl"
    # The fourth time, which is in block 2's measured pass, it waits to be killed.
    suite(folder, [("w", "select pg_sleep(case when nextval('turn') = 4 then 300 else 0 end)")])
    with cluster(tmp_path / "c") as mine:
        assert mine.sql("create sequence turn").returncode == 0
        arguments = (mine.url, "--suite", str(folder), "-o", str(path))

        def kill_in_block_2() -> None:
            while not (path.exists() and b'"record":"query","block":1' in path.read_bytes()):
                time.sleep(0.02)
            mine.kill()

        killer = threading.Thread(target=kill_in_block_2, daemon=True)
        killer.start()
        done = atoll(*arguments, "--blocks", "2")
        killer.join(60)
        assert done.returncode == 5, done.stderr
        last = done.stderr.strip().splitlines()[-1]
        assert f"{mine.label} no longer answers" in last
        assert "--resume" in last and PASSWORD not in done.stderr

        found = read_results(path)
        assert found.whole_blocks == 1
        assert found.end is not None and found.end.status == "stopped"
        assert not any(isinstance(line, BlockFailed) for line in found.lines)

        gone = atoll(*arguments, "--resume")
        assert gone.returncode == 5 and "cannot log in to PostgreSQL" in gone.stderr

        mine.start()
        changed = mine.sql("insert into numbers values (1001); select setval('turn', 4)")
        assert changed.returncode == 0
        again = atoll(*arguments, "--blocks", "2", "--resume")
        assert again.returncode == 0, again.stderr
        resumed = read_results(path)
        passes = [line for line in resumed.lines if isinstance(line, PassDone)]
        assert [line.block for line in passes] == [0, 1]
        late = {
            (line.query, line.answer)
            for line in resumed.lines
            if isinstance(line, QueryTime) and line.block == 1
        }
        assert ("q2", "changed") in late and ("q10", "ok") in late


def test_ps_does_not_show_the_password(up: Cluster, tmp_path: Path) -> None:
    folder = suite(tmp_path / "slow", [("slow", "select pg_sleep(1)")])
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "atoll", "replay", "postgresql", up.url),
            *("--suite", str(folder), "--blocks", "50", "-o", str(tmp_path / "r.jsonl")),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while not (tmp_path / "r.jsonl").exists():
            assert process.poll() is None
            time.sleep(0.05)
        shown = Path(f"/proc/{process.pid}/cmdline").read_text().split("\0")
    finally:
        process.terminate()
        process.wait(60)
    assert not any("s3cret" in word for word in shown)
    assert "--suite" in shown, "nothing else is hidden"


def test_the_url_may_come_from_the_environment(up: Cluster, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    done = atoll(
        *("--suite", str(folder), "--queries", "q2", "--blocks", "1", "-o", str(path)),
        ATOLL_URL=up.url,
    )
    assert done.returncode == 0, done.stderr
    assert read_results(path).header.entrants[0].url == up.told


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--suite", "{folder}"], "URL"),
        (["postgresql://u:hush@127.0.0.1:1/x"], "--suite"),
        (["host=h password=hush", "--suite", "{folder}"], "SCHEME://"),
        (["http://h", "--suite", "{folder}/none"], "{folder}/none"),
        (["http://h", "--suite", "{folder}", "--queries", "q3"], "'q3'"),
        (["http://h", "--suite", "{folder}", "--resume"], "--resume"),
    ],
)
def test_wrong_use_is_one_line(arguments: list[str], words: str, folder: Path) -> None:
    done = atoll(*(one.format(folder=folder) for one in arguments))
    assert done.returncode == 2, done.stderr
    assert words.format(folder=folder) in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "hush" not in done.stderr


def test_nobody_there_is_told_without_the_password(folder: Path) -> None:
    done = atoll("postgresql://u:hush@127.0.0.1:1/x", "--suite", str(folder))
    assert done.returncode == 5
    assert "127.0.0.1:1" in done.stderr and "hush" not in done.stderr


@pytest.mark.parametrize("deep", [False, True])
def test_a_process_of_a_deployment_is_held_against_its_plan(deep: bool) -> None:
    """Under the name that it has there; and what lies elsewhere is reported."""
    host = LocalHost()
    with launch(
        toy_plan(),
        ToyEngine(),
        machine=this_machine(),
        host=host,
        name="toy-look",
    ) as running:
        port = running.deployment.processes[0].spec.ready_port
        here = parse_address(f"http://127.0.0.1:{port}", {})
        seen, unknown = look_at_cluster(host, [here], deep=deep)
        assert [one.process for one in seen] == ["coordinator"], unknown
        assert bool(seen[0].bytes_by_node) == deep
        elsewhere = parse_address("http://192.0.2.1:8080", {})
        both, unknown = look_at_cluster(host, [here, elsewhere], deep=deep)
        assert len(both) == 1
        assert "1 of its 2 addresses" in unknown
