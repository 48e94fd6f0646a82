"""The fast variants of W1, W2 and W3 beside DuckDB's median, count and join.

Both have the same rows in memory, in 64-bit columns, and the same number of threads. A time of ours
is that of the second run of a fresh process, whose memory is then there, as DuckDB's is. Every
answer is compared.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from perf.harness import WrongAnswer, at_least, interleave, median, note, ratio, timed

ROUNDS = 9
TARGET = 1.5
SCHEDULERS = ("plain", "atoll")


@dataclass(frozen=True, slots=True)
class Case:
    workload: str
    peer: str
    query: str  # the answer's rows and sums


def _grouped(aggregate: str) -> str:
    return f"select count(*), sum(a) from (select {aggregate} a from records group by key)"


CASES = (
    Case("w1", "median", _grouped("(2 * median(value))::bigint")),
    Case("w2", "count", _grouped("count(value)")),
    Case(
        "w3",
        "join",
        "select count(*), sum(k.value), sum(r.value) from keys k join records r using (key)",
    ),
)


def compare() -> None:
    threads = len(os.sched_getaffinity(0))
    for case in CASES:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder, duckdb.connect() as con:
            con.execute(f"set threads = {threads}")
            _compare(case, threads, Path(folder), con)


def _compare(case: Case, threads: int, folder: Path, con: duckdb.DuckDBPyConnection) -> None:
    made = _run(case, "plain", threads, "--save", str(folder))
    for file in folder.glob("*.bin"):
        _load(con, file)
        file.unlink()
    theirs = con.execute(case.query).fetchone()

    def ours(scheduler: str) -> float:
        done = _run(case, scheduler, threads, "--no-check")
        found = (done["answer"]["rows"], *done["answer"]["sums"])
        if theirs is None or found != tuple(map(int, theirs)):
            raise WrongAnswer(f"{case.workload} on {scheduler}: {found}, DuckDB: {theirs}")
        return float(done["runs_s"][-1])

    def subject(scheduler: str) -> Callable[[], float]:
        return lambda: ours(scheduler)

    subjects = {scheduler: subject(scheduler) for scheduler in SCHEDULERS}
    subjects["duckdb"] = lambda: timed(lambda: con.execute(case.query).fetchall())
    seconds = interleave(subjects, rounds=ROUNDS, warmup=1)
    size = f"{made['records']:,} records, {made['groups']:,} groups, {made['dataset']}"
    note(f"{case.workload}: {size}, {threads} threads, {ROUNDS} rounds")
    for name, own in seconds.items():
        note(f"{case.workload} {name}: {median(own).scaled(1e3)} ms")
    for scheduler in SCHEDULERS:
        gain = ratio(seconds["duckdb"], seconds[scheduler])
        note(f"{case.workload} on {scheduler}: DuckDB's {case.peer} takes {gain} times as long")
        at_least(f"tuning-{case.workload}-{scheduler}-over-duckdb-speedup", gain.value, TARGET)


def _run(case: Case, scheduler: str, threads: int, *flags: str) -> dict[str, Any]:
    program = str(Path(sys.executable).parent / "atoll-workload")
    argv = [program, case.workload, "--variant", "fast", "--scheduler", scheduler]
    argv += ["--threads", str(threads), "--runs", "2", *flags]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise WrongAnswer(done.stderr.strip())
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _load(con: duckdb.DuckDBPyConnection, file: Path) -> None:
    """The pairs of integers of a file, as a table of its name."""
    pairs = np.fromfile(file, dtype="<i8").reshape(-1, 2)
    columns = {column: pairs[:, at].copy() for at, column in enumerate(("key", "value"))}
    con.register("pairs", columns)
    con.execute(f"create or replace table {file.stem} as select * from pairs")
    con.unregister("pairs")
