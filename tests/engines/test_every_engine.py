"""Every engine the whole way by the command line, as a user goes it: bench, up, verify, down.

Presto is not among them: it is 2 GB and slow to start (tests/engines/test_presto.py, `long`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from atoll.bench.analysis import summarise
from atoll.bench.results import Results, read_results
from atoll.engines import registry
from atoll.errors import EngineFailed
from atoll.host.local import LocalHost
from atoll.inspect.processes import attribute, process_table
from atoll.inspect.tasks import TaskFinder, Thread
from atoll.schema.deployment import Deployment
from atoll.schema.results import PassPlaces, QueryProfiled, QueryTime, VerifyResult
from atoll.supervise import records
from tests.parts.deployment import left_over, until
from tests.parts.postgresql import ORDINARY_USER

pytestmark = pytest.mark.installed

QUERIES = ("q1", "q6", "q18")
POLICIES = ("wim", "wic")


class Engine(NamedTuple):
    name: str
    run_as: tuple[str, ...] = ()
    options: tuple[str, ...] = ()  # of bench
    long: str = ""  # a query that takes long; empty: its threads cannot be placed


ENGINES = (
    Engine("duckdb", long="select sum(a.range * b.range) from range(1000000) a, range(1000000) b"),
    Engine("duckdb", options=("--scheduler", "atoll")),
    Engine(
        "postgresql",
        run_as=ORDINARY_USER,
        long="select count(*) from generate_series(1, 1000000) a, generate_series(1, 1000000) b",
    ),
    Engine("mariadb", run_as=ORDINARY_USER),
    Engine("spark", long="select sum(a.id * b.id) from range(10000000) a, range(1000000) b"),
    Engine(
        "trino",
        long="select sum(a.orderkey * b.orderkey) from tpch.sf1.orders a, tpch.sf1.orders b",
    ),
)


def label(engine: Engine) -> str:
    return "-".join((engine.name, *engine.options[1:]))


def atoll(engine: Engine, *arguments: str) -> str:
    done = subprocess.run(
        [*engine.run_as, sys.executable, "-m", "atoll", *arguments],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    if done.returncode == 5 and "atoll engine install" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextmanager
def in_the_middle_of(sql: str, record: Deployment) -> Iterator[None]:
    """Ends the query by hanging up."""
    (client,) = registry.get(record.plan.engine).connect(record.endpoints, timeout_s=60)

    def ask() -> None:
        with suppress(EngineFailed):
            client.execute(sql, timeout_s=600)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        until(lambda: bool(tasks_of(record)), lambda: "no thread runs tasks")
        yield
    finally:
        client.close()
        asking.join()


def tasks_of(record: Deployment) -> dict[Thread, int]:
    """The threads that run tasks now."""
    assert record.plan.task_threads is not None
    host = LocalHost()
    finder = TaskFinder(host, record.plan.task_threads)
    origins = attribute(host, record, process_table(host))
    return {thread: slot for slot, one in finder.look(origins).items() for thread in one.tasks}


# Trino's and Spark's answers and places have test files of their own.
@pytest.mark.parametrize(
    "engine",
    [
        pytest.param(one, marks=pytest.mark.long, id=label(one))
        if one.name in ("spark", "trino")
        else pytest.param(one, id=label(one))
        for one in ENGINES
    ],
)
def test_answers_are_right_and_threads_in_place_under_two_policies(
    engine: Engine, tmp_path: Path
) -> None:
    path = tmp_path / "r.jsonl"
    atoll(
        engine,
        *("bench", engine.name, *engine.options, "--policies", ",".join(POLICIES)),
        *("--queries", "1,6,18", "--sf", "0.01", "--blocks", "1", "-o", str(path)),
    )
    results: Results = read_results(path)
    assert results.end is not None and results.end.status == "complete"
    labels = [entrant.label for entrant in results.header.entrants]
    assert len(labels) == len(POLICIES)
    servers = max(entrant.streams for entrant in results.header.entrants)
    answers = Counter(
        (line.label, line.phase, line.query, line.answer)
        for line in results.lines
        if isinstance(line, QueryTime)
    )
    assert answers == {
        (label, phase, query, "ok"): servers
        for label in labels
        for phase in ("warm-up", "measured")
        for query in QUERIES
    }
    looks = [line for line in results.lines if isinstance(line, VerifyResult)]
    assert [(look.label, look.drifted, look.detail) for look in looks] == [
        (label, 0, "") for label in labels
    ]
    assert min(look.threads for look in looks) > 0
    places = [line.places for line in results.lines if isinstance(line, PassPlaces)]
    assert [(one.elsewhere, one.threads > 0) for one in places] == [(0, True)] * len(labels)
    profiles = {
        (line.label, line.query): line.profile
        for line in results.lines
        if isinstance(line, QueryProfiled)
    }
    assert profiles.keys() == {(label, query) for label in labels for query in QUERIES}
    for (_, query), profile in profiles.items():
        assert profile is not None
        tables = {table for one in profile.operators for table in one.tables}
        joined = {"customer", "orders"} if query == "q18" else set()
        assert tables == {"lineitem"} | joined
        assert sum(one.own_s or 0 for one in profile.operators) > 0
    for one in summarise(results).entrants:
        assert one.work is not None and one.work.peak_bytes and one.work.peak_source
    assert left_over("bench") == []


@pytest.mark.parametrize(
    "engine",
    [
        # Their other tests start them, too: test_fleet Spark over two hosts, test_trino Trino.
        pytest.param(one, marks=pytest.mark.long, id=label(one))
        if one.name in ("spark", "trino")
        else pytest.param(one, id=label(one))
        for one in ENGINES
        if not one.options
    ],
)
def test_up_verify_down_and_nothing_is_left(engine: Engine) -> None:
    """With thread placement where it is possible, and then in the middle of a query."""
    name = f"every-{engine.name}"
    placed = ("win", "--placement", "dense") if engine.long else ("wic",)
    atoll(engine, "up", engine.name, "--policy", *placed, "--name", name, "-d")
    record = records.read(name)
    assert record is not None
    with in_the_middle_of(engine.long, record) if engine.long else nullcontext():
        verified = json.loads(atoll(engine, "verify", name, "--json"))
    if engine.long:
        (rows,) = (one["threads"] for one in verified)
        bound = [row["found_cpus"] for row in rows if row["runs_tasks"]]
        assert bound and all(cpus.isdecimal() for cpus in bound)
    assert str(record.processes[0].id.pid if record.processes[0].id else None) in json.dumps(
        verified
    )
    assert atoll(engine, "down", name) == f"{name}: down\n"
    assert left_over(name) == []
    assert [path for path in (record.run_dir, record.scratch_dir) if os.path.exists(path)] == []
