"""The workloads of atoll-kernels beside the best public references (perf.workloads_peers).

Graphs: BFS, PageRank, components, shortest paths and triangles beside GAP's kernels, on one
Kronecker graph that both read from a file, with as many threads. GAP has two kernels for PageRank
and for components; the better one counts. A time is the mean of a process's timed runs, of which
each begins at another vertex where it begins at one. Our answers are verified in every run, GAP's
once by its own -v, and counts that both print are compared. GAP checks triangles by counting them
again one vertex at a time, which takes minutes: there the compared counts are the check.

GUPS: suspended tasks beside the plain loop, and with one worker beside RandomAccess of the HPC
Challenge, whose loop over 128 numbers is not worth OpenMP's threads. Graph500: edges
a second beside its reference with as many MPI processes, each from its own generator of the same
shape. StreamCluster beside PARSEC's, whose time has the making of its points. StreamCluster and SGD
against the roofline: the bytes that a run must move, over the rate at which the probe finds that
the same CPUs read memory.

Kronecker's edges are made beside a plain fill of the same memory, by the program itself.

A line says which workload this build does not have, and which peer is not there.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from atoll.host.local import LocalHost
from atoll.probing.probe import Probe, find_probe
from atoll.probing.requests import Move, Sampling
from perf.harness import (
    Interval,
    Seconds,
    WrongAnswer,
    at_least,
    at_most,
    interleave,
    median,
    note,
    ratio,
    timed,
)
from perf.workloads_peers import Peers, TooSlow, run, trial_s

ROUNDS = 5
LONG_ROUNDS = 3  # of what takes some seconds
SCALES = (20, 22)
GRAPH_TARGET = 0.9
GUPS_TARGET = 0.4
AHEAD_TARGET = 1.1
GUPS_MIB = 1024
ROOF_TARGET = 0.9
EDGES_TARGET = 0.8
POINTS, CHUNK = 100_000, 100_000  # PARSEC's run takes some seconds
DIMENSIONS = 128
LARGEST_CACHES = 4  # a chunk is as many times the L3, so that memory serves its passes
READ_BYTES = 1 << 30
READING_S = 0.3
REFERENCE_LIMIT_S = 150.0  # of a run of Graph500: one process takes a fifth, two may hang

Subjects = Mapping[str, Callable[[], float]]


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    gap: tuple[str, ...]  # its kernels
    flags: tuple[str, ...]  # of GAP's
    own: tuple[str, ...]  # of ours
    runs: int
    rounds: tuple[int, int] = (ROUNDS, LONG_ROUNDS)  # by scale
    answer: tuple[str, str] | None = None  # our figure, and what GAP -a prints
    checked: bool = True  # by GAP itself too

    @property
    def weighted(self) -> bool:
        return self.name == "sssp"


CASES = (
    Case("bfs", ("bfs",), (), (), 16),
    Case("pr", ("pr", "pr_spmv"), ("-i", "1000", "-t", "1e-4"), (), 2),
    Case("cc", ("cc", "cc_sv"), (), (), 4, answer=("components", r"^There are (\d+) components")),
    Case("sssp", ("sssp",), ("-d", "2"), ("--delta", "2"), 8),
    # Our check is by far the longest part, and is made once for all runs of a process.
    Case("tc", ("tc",), (), (), 2, (2, 1), ("triangles", r"^(\d+) triangles"), checked=False),
)


def compare() -> None:
    threads = len(os.sched_getaffinity(0))
    peers = Peers()
    table = Table()
    built = {one["name"] for one in json.loads(run([_program(), "--describe"]))["workloads"]}

    def has(name: str) -> bool:
        if name not in built:
            note(f"{name}: this build of atoll-kernels has none")
        return name in built

    def graphs(scale: int) -> None:
        for case in CASES:
            if has(case.name):
                _graphs(case, scale, threads, peers, table)

    graphs(SCALES[0])
    if has("gups"):
        for workers in dict.fromkeys((1, threads)):
            _gups(workers, peers, table)
    if has("graph500"):
        _graph500(threads, peers, table)
    if has("streamcluster"):
        _streamcluster(threads, peers, table)
    if has("edges"):
        _edges(threads, table)
    points = str(_points_beyond_caches())
    for name, flags in {
        "streamcluster": ("--points", points, "--chunk", points),
        "sgd": ("--samples", "40000", "--epochs", "2"),
    }.items():
        if name in built:
            _roofline(name, flags, threads, table)
    graphs(SCALES[1])  # last: it takes as long as all before it
    table.print()


class Table:
    """The bars, for the end."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, str, str, str]] = []

    def at_most(self, name: str, found: Interval, target: float) -> None:
        self._add(name, found, f"at most {target:g}", at_most(name, found.value, target))

    def at_least(self, name: str, found: Interval, target: float) -> None:
        self._add(name, found, f"at least {target:g}", at_least(name, found.value, target))

    def _add(self, name: str, found: Interval, target: str, holds: bool) -> None:
        self._rows.append((name, str(found), target, "ok" if holds else "short"))

    def print(self) -> None:
        for row in self._rows:
            note("{:42} {:24} {:12} {}".format(*row))


def _points_beyond_caches() -> int:
    caches = {}
    for cpu in os.sched_getaffinity(0):
        last = Path(f"/sys/devices/system/cpu/cpu{cpu}/cache/index3")
        if last.is_dir():
            size = (last / "size").read_text().strip().removesuffix("K")
            caches[(last / "shared_cpu_list").read_text()] = int(size) << 10
    return max(LARGEST_CACHES * sum(caches.values()) // (4 * DIMENSIONS), CHUNK)


def _graphs(case: Case, scale: int, threads: int, peers: Peers, table: Table) -> None:
    path = peers.graph(scale, weighted=case.weighted)
    programs = {name: program for name in case.gap if (program := peers.gap(name)) is not None}
    if path is None or not programs:
        note(f"{case.name}, scale {scale}: GAP's sources are not there")
        return
    own = ("--graph", str(path), "--runs", str(case.runs), *case.own)
    theirs = ("-f", str(path), "-n", str(case.runs), *case.flags)
    subjects: dict[str, Callable[[], float]] = {"atoll": partial(_ours_s, case.name, threads, own)}
    for name, program in programs.items():
        check = ("-v",) if case.checked and scale == SCALES[0] else ()
        once = run([program, *theirs[:2], "-n", "1", *case.flags, *check, "-a"], threads=threads)
        if check and "Verification:           PASS" not in once:
            raise WrongAnswer(f"GAP's {name}: {once[-300:]}")
        _same_answer(case, once, partial(_kernel, case.name, threads, *own))
        subjects[f"GAP's {name}"] = partial(_gap_s, (program, *theirs), threads)
    label = f"{case.name}-{scale}"
    best, seconds = _raced(label, subjects, rounds=case.rounds[SCALES.index(scale)])
    taken = ratio(seconds["atoll"], seconds[best])
    note(f"{label}: {taken} of the time of {best}, {threads} threads")
    table.at_most(f"workloads-{label}-of-gap", taken, GRAPH_TARGET)


def _same_answer(case: Case, printed: str, run_ours: Callable[[], dict[str, Any]]) -> None:
    if case.answer is None:
        return
    figure, pattern = case.answer
    found = re.search(pattern, printed, re.MULTILINE)
    if found is None:
        note(f"{case.name}: GAP does not print its {figure}")
    elif int(found[1]) != (ours := run_ours()["figures"][figure]):
        raise WrongAnswer(f"{case.name}: {ours} {figure}, GAP has {found[1]}")


def _gups(workers: int, peers: Peers, table: Table) -> None:
    sizes = ("--table-mib", str(GUPS_MIB), "--runs", "1")
    updates = 4 * (GUPS_MIB << 20) // 8
    subjects: dict[str, Callable[[], float]] = {
        one: partial(_ours_s, "gups", workers, (*sizes, "--variant", one))
        for one in ("tasks", "plain", "ahead")
    }
    program = peers.hpcc
    if program is not None and workers == 1:

        def hpcc() -> float:
            rate, entries = run([program, str(GUPS_MIB)]).split()
            if int(entries) * 4 != updates:
                raise WrongAnswer(f"HPCC's table has {entries} entries")
            return updates / (float(rate) * 1e9)

        subjects["HPCC"] = hpcc
    label = f"gups-{workers}"
    _, seconds = _raced(label, subjects, rounds=LONG_ROUNDS)
    for peer in [*subjects][1:]:
        taken = ratio(seconds["tasks"], seconds[peer])
        note(f"{label}: tasks take {taken} of the time of {peer}")
        target = AHEAD_TARGET if peer == "ahead" else GUPS_TARGET
        table.at_most(f"workloads-{label}-of-{peer.lower()}", taken, target)


def _graph500(threads: int, peers: Peers, table: Table) -> None:
    """As seconds for an edge: the harmonic mean over its searches."""
    program = peers.graph500
    if program is None:
        return
    as_root = ("--allow-run-as-root",) if os.geteuid() == 0 else ()
    mean = re.compile(r"^bfs\s+harmonic_mean_TEPS:\s+!?\s*([\d.e+]+)", re.MULTILINE)

    # Its validation of 64 trees takes minutes at scale 20: those of scale 16 are validated.
    def theirs(processes: int, *, scale: int = 20, validate: bool = False) -> float:
        mpi = ["mpirun", *as_root, "--oversubscribe", "-np", str(processes), program]
        mpi += [str(scale), "16"]
        env = {} if validate else {"SKIP_VALIDATION": "1"}
        found = mean.search(run(mpi, env=env, limit_s=REFERENCE_LIMIT_S))
        if found is None:
            raise WrongAnswer("Graph500's reference gave no rate")
        return 1 / float(found[1])

    def ours() -> float:
        return 1 / float(_kernel("graph500", threads, "--scale", "20", "--runs", "8")["per_s"])

    for processes in dict.fromkeys((threads, 1)):
        note(f"graph500-20: the reference with {processes} processes, validated at scale 16")
        subjects: Subjects = {"atoll": ours, "the reference": partial(theirs, processes)}
        try:
            theirs(processes, scale=16, validate=True)
            _, seconds = _raced("graph500-20", subjects, rounds=LONG_ROUNDS)
        except TooSlow as fault:
            note(f"graph500-20: {fault} with {processes} processes")
            continue
        rate = ratio(seconds["the reference"], seconds["atoll"])
        note(f"graph500-20: {rate} times the reference's edges a second")
        table.at_least("workloads-graph500-20-over-reference", rate, 1.0)
        return


def _streamcluster(threads: int, peers: Peers, table: Table) -> None:
    if peers.streamcluster is None:
        return
    sizes = (
        "10",
        "20",
        str(DIMENSIONS),
        str(POINTS),
        str(CHUNK),
        "5000",
        "none",
        os.devnull,
        str(threads),
    )
    flags = ("--points", str(POINTS), "--chunk", str(CHUNK), "--runs", "1")
    program = peers.streamcluster
    subjects: dict[str, Callable[[], float]] = {
        "atoll": partial(_ours_s, "streamcluster", threads, flags),
        "PARSEC": lambda: timed(lambda: run([program, *sizes])),
    }
    _, seconds = _raced("streamcluster", subjects, rounds=LONG_ROUNDS)
    taken = ratio(seconds["atoll"], seconds["PARSEC"])
    note(f"streamcluster: {taken} of PARSEC's time")
    table.at_most("workloads-streamcluster-of-parsec", taken, 1.0)


def _edges(threads: int, table: Table) -> None:
    """The program fills the same memory in the same process."""
    shares = [_kernel("edges", threads)["figures"]["of_fill"] for _ in range(ROUNDS)]
    share = median(np.array(shares))
    note(f"edges: made at {share} of the rate of a fill")
    table.at_least("workloads-edges-of-fill", share, EDGES_TARGET)


def _roofline(name: str, flags: tuple[str, ...], threads: int, table: Table) -> None:
    """As seconds a gigabyte."""

    def ours() -> float:
        found = _kernel(name, threads, *flags, "--runs", "1")
        return _mean_s(found) / float(found["traffic_bytes"]) * 1e9

    with Probe(LocalHost(), find_probe()) as probe:

        def read() -> float:
            cpus = tuple(sorted(os.sched_getaffinity(0)))
            answer = probe.ask(
                Move(cpus=cpus, node=None, bytes=READ_BYTES, op="read", budget_s=READING_S),
                Sampling(settle=0.0, samples=1_000),
                most_s=READING_S,
                timeout_s=60.0,
            )
            return 1 / float(np.median(answer.gbs))

        _, seconds = _raced(f"{name} in seconds a GB", {"atoll": ours, "reads": read})
    share = ratio(seconds["reads"], seconds["atoll"])
    note(f"{name}: {1 / median(seconds['atoll']).value:.3g} GB/s, {share} of what reads reach")
    table.at_least(f"workloads-{name}-of-roofline", share, ROOF_TARGET)


def _raced(
    label: str, subjects: Subjects, *, rounds: int = ROUNDS
) -> tuple[str, dict[str, Seconds]]:
    """The times, and the fastest of all but the first. A line for each run goes to stderr."""

    def told(name: str, call: Callable[[], float]) -> float:
        print(f"{label}: {name}", file=sys.stderr, flush=True)
        return call()

    spoken = {name: partial(told, name, call) for name, call in subjects.items()}
    seconds = interleave(spoken, rounds=rounds, warmup=1 if rounds > 1 else 0)
    for name, own in seconds.items():
        note(f"{label} {name}: {median(own).scaled(1e3)} ms")
    others = [*subjects][1:]
    return min(others, key=lambda name: float(np.median(seconds[name]))), seconds


def _ours_s(name: str, workers: int, flags: tuple[str, ...]) -> float:
    return _mean_s(_kernel(name, workers, *flags))


def _gap_s(argv: tuple[str | Path, ...], threads: int) -> float:
    return trial_s(run(argv, threads=threads))


def _mean_s(found: Mapping[str, Any]) -> float:
    return float(np.mean(found["runs_s"]))


def _kernel(name: str, workers: int, *flags: str) -> dict[str, Any]:
    """Verified by itself."""
    argv = [_program(), name, "--workers", str(workers), *flags]
    found: dict[str, Any] = json.loads(run(argv))
    return found


def _program() -> str:
    return str(Path(sys.executable).parent / "atoll-kernels")
