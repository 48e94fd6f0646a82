"""The fast variants of W1, W2 and W3 beside DuckDB, Polars and DataFusion, and the making of data.

All have the same rows in memory, of two 64-bit integers, ours as pairs and theirs as columns, and
the same number of threads. A time of ours is that of the second run of a fresh process, whose
memory is then there, as theirs is. Theirs has the parsing of the query, and in W1 and W2 the sum of
the groups, which ours makes after the clock has stopped; there are 100 times fewer groups than
rows. Every answer of every run is compared. W1 is also asked for data with one heavy key, and W3
for keys that lie far apart: a join by an array of keys, which DuckDB has too, is then not possible.

Data are made into memory that is there, so the peer is the bandwidth at which `atoll measure` finds
that the same CPUs write, by stores of either kind.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import duckdb
import numpy as np

from atoll.host.local import LocalHost
from atoll.probing.probe import Probe, find_probe
from atoll.probing.requests import Move, Sampling
from perf.harness import WrongAnswer, at_least, interleave, median, note, ratio, timed
from perf.tuning_peers import NAMES, Peer, peers_python

ROUNDS = 9
TARGET = 1.5
DATA_TARGET = 0.8
WRITTEN_BYTES = 512 << 20
WRITING_S = 0.2
SCHEDULERS = ("plain", "atoll")


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    workload: str
    flags: tuple[str, ...]
    peer: str
    query: str  # the answer's rows and sums


def _grouped(aggregate: str) -> str:
    return f"select count(*), sum(a) from (select {aggregate} a from records group by key)"


_MEDIAN = _grouped("(2 * median(value))::bigint")
_JOIN = "select count(*), sum(k.value), sum(r.value) from keys k join records r using (key)"
CASES = (
    Case("w1", "w1", (), "median", _MEDIAN),
    Case("w1-heavy-key", "w1", ("--dataset", "heavy-hitter"), "median", _MEDIAN),
    Case("w2", "w2", (), "count", _grouped("count(value)")),
    Case("w3", "w3", (), "join", _JOIN),
    Case("w3-far-keys", "w3", ("--key-step", "1000003"), "join", _JOIN),
)
DATASETS = ("moving-cluster", "sequential", "runs", "zipf", "heavy-hitter")


def compare() -> None:
    threads = len(os.sched_getaffinity(0))
    python = peers_python()
    for case in CASES:
        with (
            tempfile.TemporaryDirectory(dir="/dev/shm") as folder,
            duckdb.connect() as con,
            ExitStack() as stack,
        ):
            con.execute(f"set threads = {threads}")
            made = _run(case, "plain", threads, "--save", folder)
            peers: dict[str, Peer] = {}
            if python is not None:
                for name in NAMES:
                    peer = Peer(python, name, case.workload, Path(folder), threads)
                    peers[name] = stack.enter_context(peer)
            for file in Path(folder).glob("*.bin"):
                _load(con, file)
                file.unlink()
            _compare(case, made, threads, con, peers)
    _compare_making(threads)


def _compare(
    case: Case,
    made: dict[str, Any],
    threads: int,
    con: duckdb.DuckDBPyConnection,
    peers: dict[str, Peer],
) -> None:
    def asked() -> tuple[int, ...]:
        return tuple(map(int, con.execute(case.query).fetchall()[0]))

    expected = asked()

    def ours(scheduler: str) -> float:
        done = _run(case, scheduler, threads, "--no-check")
        verify(scheduler, (done["answer"]["rows"], *done["answer"]["sums"]))
        return float(done["runs_s"][-1])

    def theirs(name: str) -> float:
        seconds, found = peers[name].ask()
        verify(name, found)
        return seconds

    def verify(name: str, found: tuple[int, ...]) -> None:
        if found != expected:
            raise WrongAnswer(f"{case.name} on {name}: {found}, DuckDB at first: {expected}")

    subjects: dict[str, Callable[[], float]] = {one: partial(ours, one) for one in SCHEDULERS}
    subjects |= {name: partial(theirs, name) for name in peers}
    subjects["duckdb"] = lambda: timed(lambda: verify("duckdb", asked()))
    seconds = interleave(subjects, rounds=ROUNDS, warmup=1)
    size = f"{made['records']:,} records, {made['groups']:,} groups, {made['dataset']}"
    note(f"{case.name}: {size}, {threads} threads, {ROUNDS} rounds")
    for name, own in seconds.items():
        note(f"{case.name} {name}: {median(own).scaled(1e3)} ms")
    best = min(("duckdb", *peers), key=lambda name: median(seconds[name]).value)
    for scheduler in SCHEDULERS:
        bar = f"tuning-{case.name}-{scheduler}"
        gain = ratio(seconds["duckdb"], seconds[scheduler])
        note(f"{case.name} on {scheduler}: DuckDB's {case.peer} takes {gain} times as long")
        at_least(f"{bar}-over-duckdb-speedup", gain.value, TARGET)
        if peers:
            gain = ratio(seconds[best], seconds[scheduler])
            note(f"{case.name} on {scheduler}: the best, {best}, takes {gain} times as long")
            at_least(f"{bar}-over-best-speedup", gain.value, 1.0)


def _compare_making(threads: int) -> None:
    """Each data set beside writes, as seconds a gigabyte."""

    def made(dataset: str) -> float:
        case = Case("data", "w2", ("--dataset", dataset), "", "")
        done = _run(case, "plain", threads, "--no-check")
        return float(done["generate_s"] / done["input_bytes"] * 1e9)

    with Probe(LocalHost(), find_probe()) as probe:

        def written(store: Literal["temporal", "streaming"]) -> float:
            answer = probe.ask(
                Move(
                    cpus=tuple(sorted(os.sched_getaffinity(0))),
                    node=None,
                    bytes=WRITTEN_BYTES,
                    op="write",
                    store=store,
                    budget_s=WRITING_S,
                ),
                Sampling(settle=0.0, samples=1_000),
                most_s=WRITING_S,
                timeout_s=60.0,
            )
            return 1 / float(np.median(answer.gbs))

        streams: dict[str, Callable[[], float]] = {
            "write": lambda: written("temporal"),
            "write, streaming": lambda: written("streaming"),
        }
        subjects = dict(streams)
        subjects |= {dataset: partial(made, dataset) for dataset in DATASETS}
        seconds = interleave(subjects, rounds=ROUNDS, warmup=1)
    stream = min((seconds[name] for name in streams), key=lambda one: float(np.median(one)))
    for name in streams:
        note(f"data: {name} takes {median(seconds[name])} s/GB, {threads} threads, {ROUNDS} rounds")
    for dataset in DATASETS:
        rate = ratio(stream, seconds[dataset])
        note(f"data {dataset}: {median(seconds[dataset])} s/GB, {rate} of the best rate of writes")
        at_least(f"tuning-data-{dataset}-of-stream", rate.value, DATA_TARGET)


def _run(case: Case, scheduler: str, threads: int, *flags: str) -> dict[str, Any]:
    program = str(Path(sys.executable).parent / "atoll-workload")
    argv = [program, case.workload, *case.flags, "--variant", "fast", "--scheduler", scheduler]
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
