"""The task runtime beside its peers: oneTBB, OpenMP, Boost.Fiber, std::async and a bare futex.

Each kernel is one source for all of them (native/perf/runtime) and has no cut-off: every level
forks. Runtimes take turns within a round, each in a process of its own; every answer is checked;
only runs that had their CPUs count. The bars are the table 'Speed' of docs/runtime-perf.md, the
other lines say what everything took.

`python -m perf.runtime --quick` is a look of a minute or two, with few rounds: no measurement.
`python -m perf.runtime --workers N` compares what scales with N workers instead of 1 and 2.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from perf import runtime_runs as runs
from perf.harness import (
    BUSY_LIMIT,
    IDLE_WINDOW_S,
    Interval,
    Seconds,
    WrongAnswer,
    at_most,
    busy_share,
    interleave,
    median,
    no_slower,
    note,
    ratio,
    stretch,
    wait_until_idle,
)
from perf.runtime_runs import OURS, Run, Subject

THIRD = 1 / 3
PINNED = (("OMP_PROC_BIND", "true"),)
PASSIVE = (*PINNED, ("OMP_WAIT_POLICY", "passive"))

ATOLL = Subject("atoll", OURS)
TBB = Subject("oneTBB", "tbb")
OPENMP = Subject("OpenMP", "openmp", PINNED)
FIBER = Subject("Boost.Fiber", "fiber")
RAYON = Subject("rayon", "rayon")
LIBFORK = Subject("libfork", "libfork")
SYSTEM = Subject("std", "system")
SERIAL = Subject("no runtime", "serial")
OPENMP_TASK = Subject("OpenMP passive, task", "openmp", PASSIVE)
OPENMP_TEAM = Subject("OpenMP passive, region", "openmp", PASSIVE, kernel="wake-team")
PROFILED = Subject("atoll, profiled", OURS, kernel="morsels-profiled")
FIBER_YIELD = Subject("Boost.Fiber", "fiber", kernel="yield")
ONE_WORKER = Subject("atoll, 1 worker", OURS, threads=1)
FUTEX = Subject("bare futex", "system", kernel="wake-futex")


@dataclass(frozen=True, slots=True)
class Bar:
    """Ours over the fastest of these peers; `most` is None for 'no slower'."""

    peers: tuple[Subject, ...]
    most: float | None


@dataclass(frozen=True, slots=True)
class Kernel:
    name: str
    threads: int
    item: str  # what a figure is of
    peers: tuple[Subject, ...]
    bar: Bar | None = None
    stretch_ns: float | None = None
    most_ns: float | None = None

    @property
    def label(self) -> str:
        return f"runtime-{self.name}-{self.threads}t"


@dataclass(frozen=True, slots=True)
class Effort:
    rounds: int
    least_s: float  # of a run
    idle_s: int
    patience_s: float  # with other work on the machine, for each kernel


WHOLE = Effort(rounds=10, least_s=0.2, idle_s=10, patience_s=30.0)
QUICK = Effort(rounds=3, least_s=0.05, idle_s=2, patience_s=5.0)


def _forks(name: str, item: str, one: Bar | None, two: Bar, *aims_ns: float) -> list[Kernel]:
    first, second = aims_ns or (None, None)
    peers = (TBB, OPENMP, FIBER, *((RAYON, LIBFORK) if name in OWN_TREES else ()))
    return [
        Kernel(name, 1, item, (*peers, SERIAL), one, first),
        Kernel(name, 2, item, (*peers, SYSTEM), two, second),
    ]


OWN_TREES = ("fib", "skynet")  # what rayon and libfork have
_BEST_OF_ALL = Bar((TBB, OPENMP, RAYON, LIBFORK), 0.6)
_QUARTER_OF_TBB = Bar((TBB,), 0.25)
_THIRD_OF_TBB = Bar((TBB,), THIRD)
_THIRD_OF_FIBER = Bar((FIBER,), THIRD)
_NO_SLOWER = Bar((OPENMP,), None)
_YIELD = Bar((FIBER_YIELD,), 0.3)
GROUP_NS = 2000.0  # to make one and end it

KERNELS = (
    *_forks("fib", "fork", _BEST_OF_ALL, _BEST_OF_ALL, 3.0, 1.5),
    *_forks("skynet", "fork", _QUARTER_OF_TBB, _QUARTER_OF_TBB),
    *_forks("matmul", "fork", _THIRD_OF_TBB, _THIRD_OF_TBB),
    *_forks("nqueens", "spawn", None, Bar((TBB,), 0.75)),
    Kernel("yield", 1, "yield", (FIBER,), Bar((FIBER,), 0.25), 10.0),
    Kernel("yield-group", 1, "yield", (FIBER_YIELD,), _YIELD),
    Kernel("yield-section", 1, "yield", (FIBER_YIELD,), _YIELD),
    Kernel("yield-idle", 2, "yield", ()),
    Kernel("spawn-yield", 1, "task", (FIBER,), _THIRD_OF_FIBER),
    Kernel("spawn-wait", 1, "task", (FIBER,), _THIRD_OF_FIBER),
    Kernel("batch", 1, "task", (FIBER,), _THIRD_OF_FIBER),
    Kernel("batch", 2, "task", (ONE_WORKER,), Bar((ONE_WORKER,), None)),
    Kernel("group", 2, "group", (), most_ns=GROUP_NS),
    Kernel("group-outside", 2, "group", (), most_ns=GROUP_NS),
    Kernel("parallel-for", 1, "item", (OPENMP, TBB, SERIAL), _NO_SLOWER),
    Kernel("parallel-for", 2, "item", (OPENMP, TBB), _NO_SLOWER),
    Kernel("sort", 1, "element", (TBB,)),
    Kernel("sort", 2, "element", (TBB,)),
    Kernel("barrier", 2, "barrier", (OPENMP, SYSTEM), _NO_SLOWER),
)
SCALING = ("fib", "skynet", "matmul", "nqueens", "batch", "parallel-for", "sort", "barrier")
WAKE = Kernel(
    "wake",
    2,
    "wake-up",
    (OPENMP_TASK, OPENMP_TEAM, TBB, FUTEX),
    Bar((OPENMP_TASK, OPENMP_TEAM), None),
)
STEAL = Kernel("steal", 2, "steal", (TBB, OPENMP))
RUN = Kernel("run", 2, "run", (TBB,))
PROFILER = Kernel("morsels", 2, "morsel", (PROFILED,))
PROFILER_MOST = 1.01  # of the time without its sections and its trace
PROFILER_ROUNDS = 3  # times as many as usual: a percent is to be told from noise
MILLION_GIB = 6.0
IDLE_CORE_PERCENT = 0.1


@dataclass(slots=True)
class Report:
    """What was found, for build/perf-runtime/results.json."""

    effort: str
    machine: dict[str, object]
    figures: list[dict[str, object]] = field(default_factory=list)
    bars: list[dict[str, object]] = field(default_factory=list)

    def figure(self, kernel: str, threads: int, who: str, what: str, found: Interval) -> None:
        self.figures.append(
            {
                "kernel": kernel,
                "threads": threads,
                "runtime": who,
                "what": what,
                "median": found.value,
                "low": found.low,
                "high": found.high,
            }
        )

    def bar(self, name: str, value: float, holds: bool) -> None:
        self.bars.append({"name": name, "value": value, "ok": holds})


def compare(effort: Effort = WHOLE, workers: int | None = None) -> None:
    found = runs.build()
    for name, (runtime, how) in (runs.PEERS | runs.OTHER_PEERS).items():
        if name not in found:
            note(f"no peer here: {runtime} ({how})")
    report = Report("quick" if effort is QUICK else "whole", _machine())
    note(f"machine: {', '.join(f'{value}' for value in report.machine.values())}")
    if workers is None:
        _compare_on_two(effort, found, report)
    else:
        for kernel in KERNELS:
            if kernel.name in SCALING and kernel.threads == 2:
                scaled = replace(kernel, threads=workers, stretch_ns=None)
                _compare_times(scaled, effort, found, report)
    results = runs.FOLDER / "results.json"
    results.write_text(
        json.dumps(
            {
                "effort": report.effort,
                "machine": report.machine,
                "bars": report.bars,
                "figures": report.figures,
            },
            indent=1,
        )
        + "\n"
    )
    note(f"all figures: {results}")


def _compare_on_two(effort: Effort, found: frozenset[str], report: Report) -> None:
    for kernel in KERNELS:
        _compare_times(kernel, effort, found, report)
    for kernel in (STEAL, WAKE, RUN):
        _compare_latencies(kernel, effort, found, report)
    _say_profiler(effort, found, report)
    _say_million(effort, found, report)
    _say_idle(effort, found, report)


# ---- rounds --------------------------------------------------------------------------------------


class TooBusy(Exception):
    """Others had the CPUs in most rounds."""


def clean_rounds(
    subjects: Mapping[str, Callable[[], Run]], rounds: int, patience_s: float
) -> dict[str, list[Run]]:
    """The runs of those rounds in which every subject had its CPUs, in the order of the rounds.

    A run without its CPUs is repeated once the machine is idle, for so long in all. Raises TooBusy
    where fewer than half of the rounds are left.
    """
    kept: dict[str, list[Run]] = {name: [] for name in subjects}
    deadline = time.monotonic() + patience_s

    def tried(name: str) -> float:
        while not (run := subjects[name]()).is_clean and time.monotonic() < deadline:
            while busy_share(IDLE_WINDOW_S) > BUSY_LIMIT and time.monotonic() < deadline:
                pass
        kept[name].append(run)
        return run.item_ns

    interleave({name: partial(tried, name) for name in subjects}, rounds=rounds, warmup=0)
    clean = [
        number for number in range(rounds) if all(own[number].is_clean for own in kept.values())
    ]
    if len(clean) < max(2, rounds // 2):
        raise TooBusy(f"only {len(clean)} of {rounds} rounds had their CPUs")
    return {name: [own[number] for number in clean] for name, own in kept.items()}


def _measured(
    kernel: Kernel, effort: Effort, found: frozenset[str], rounds: int
) -> dict[str, list[Run]]:
    """By subject; empty if the machine is too busy, with a line that says so."""
    subjects = {
        subject.name: partial(runs.run, subject, kernel.name, kernel.threads, effort.least_s)
        for subject in (ATOLL, *kernel.peers)
        if subject.program in found
    }
    try:
        return clean_rounds(subjects, rounds, effort.patience_s)
    except TooBusy as fault:
        note(f"{kernel.name}, {_workers(kernel.threads)}: not measured, {fault}")
        return {}


def _of(found: list[Run], counter: str | None = None) -> Seconds:
    return np.array([run.item_ns if counter is None else run.counters[counter] for run in found])


# ---- what is compared ----------------------------------------------------------------------------


def _compare_times(kernel: Kernel, effort: Effort, found: frozenset[str], report: Report) -> None:
    measured = _measured(kernel, effort, found, effort.rounds)
    _say_times(kernel, measured, report)
    if kernel.bar is not None and ATOLL.name in measured:
        _say_bar(kernel, kernel.bar, {name: _of(own) for name, own in measured.items()}, report)
    if ATOLL.name in measured:
        name, ns = f"{kernel.label}-ns", float(np.median(_of(measured[ATOLL.name])))
        if kernel.stretch_ns is not None:
            stretch(name, ns, kernel.stretch_ns)
        if kernel.most_ns is not None:
            report.bar(name, ns, at_most(name, ns, kernel.most_ns))


def _say_times(kernel: Kernel, measured: dict[str, list[Run]], report: Report) -> None:
    for name, own in measured.items():
        interval = median(_of(own))
        report.figure(
            kernel.name, kernel.threads, own[0].runtime, f"ns per {kernel.item}", interval
        )
        share = float(np.median([run.cpu_share for run in own]))
        asleep = f", {share:.0%} of its CPUs used" if share < runs.CLEAN_SHARE else ""
        note(
            f"{kernel.name}, {_workers(kernel.threads)}: {name} {interval} ns per {kernel.item}"
            f"{asleep}"
        )


def _compare_latencies(
    kernel: Kernel, effort: Effort, found: frozenset[str], report: Report
) -> None:
    measured = _measured(kernel, effort, found, effort.rounds)
    quantiles = ("p50_ns", "p99_ns", "p999_ns")
    for name, own in measured.items():
        intervals = {quantile: median(_of(own, quantile)) for quantile in quantiles}
        for quantile, interval in intervals.items():
            who = f"{own[0].runtime} ({name})"
            report.figure(kernel.name, kernel.threads, who, quantile, interval)
        note(
            f"{kernel.name}: {name} p50 {intervals['p50_ns']} ns, p99 {intervals['p99_ns']} ns, "
            f"p99.9 {intervals['p999_ns']} ns"
        )
    if kernel.bar is not None and ATOLL.name in measured:
        p50_ns = {name: _of(own, "p50_ns") for name, own in measured.items()}
        _say_bar(kernel, kernel.bar, p50_ns, report)


def _say_bar(kernel: Kernel, bar: Bar, ns: dict[str, Seconds], report: Report) -> None:
    there = [peer.name for peer in bar.peers if peer.name in ns]
    if not there:
        return  # said at the beginning
    peer = min(there, key=lambda name: float(np.median(ns[name])))
    to_peer = ratio(ns[ATOLL.name], ns[peer])
    name = f"{kernel.label}-to-{re.sub(r'[^a-z0-9]+', '-', peer.lower())}-ratio"
    note(f"{kernel.name}, {_workers(kernel.threads)}: atoll over {peer} {to_peer}")
    if bar.most is None:
        holds = no_slower(name, to_peer)
    else:
        holds = at_most(name, to_peer.value, round(bar.most, 3))
    report.bar(name, to_peer.value, holds)


def _say_profiler(effort: Effort, found: frozenset[str], report: Report) -> None:
    """Sections and trace on, over off: the same work, in turns."""
    measured = _measured(PROFILER, effort, found, PROFILER_ROUNDS * effort.rounds)
    if not measured:
        return
    _say_times(PROFILER, measured, report)
    overhead = ratio(_of(measured[PROFILED.name]), _of(measured[ATOLL.name]))
    note(f"profiler, {_workers(PROFILER.threads)}: on over off {overhead}")
    report.figure(PROFILER.name, PROFILER.threads, ATOLL.name, "profiler on over off", overhead)
    holds = at_most("runtime-profiler-overhead-ratio", overhead.value, PROFILER_MOST)
    report.bar("runtime-profiler-overhead-ratio", overhead.value, holds)


def _say_million(effort: Effort, found: frozenset[str], report: Report) -> None:
    """How much memory they take, and ns for each from its spawn to its end."""
    kernel = Kernel("million", 1, "task", (FIBER,))
    measured = _measured(kernel, effort, found, max(2, effort.rounds // 3))
    for name, own in measured.items():
        peak_gib = median(_of(own, "peak_bytes")).scaled(2**-30)
        report.figure(kernel.name, 1, own[0].runtime, "peak GiB", peak_gib)
        report.figure(kernel.name, 1, own[0].runtime, "ns per task", median(_of(own)))
        note(
            f"{own[0].counters['items']:.0f} live suspended tasks: {name} {peak_gib} GiB, "
            f"{median(_of(own, 'task_bytes'))} B and {median(_of(own))} ns per task"
        )
        if name == ATOLL.name:
            worst_gib = float(_of(own, "peak_bytes").max()) * 2**-30
            holds = at_most("runtime-million-tasks-gib", worst_gib, MILLION_GIB)
            report.bar("runtime-million-tasks-gib", worst_gib, holds)


def _say_idle(effort: Effort, found: frozenset[str], report: Report) -> None:
    kernel = f"idle-{effort.idle_s}s"
    for subject in (ATOLL, TBB, OPENMP):
        if subject.program not in found:
            continue
        run = runs.run(subject, kernel, 2, effort.least_s)
        percent = run.counters["idle_core_percent"]
        interval = Interval(percent, percent, percent)
        report.figure("idle", 2, run.runtime, "percent of a core", interval)
        note(f"idle for {effort.idle_s} s: {subject.name} {percent:.4f} % of a core")
        if subject is ATOLL:
            holds = at_most("runtime-idle-core-percent", percent, IDLE_CORE_PERCENT)
            report.bar("runtime-idle-core-percent", percent, holds)


def _workers(threads: int) -> str:
    return f"{threads} worker{'s' if threads > 1 else ''}"


def _machine() -> dict[str, object]:
    model = "an unknown CPU"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return {
        "cpu": model,
        "cpus": f"{len(os.sched_getaffinity(0))} CPUs",
        "kernel": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
    }


if __name__ == "__main__":
    match sys.argv[1:]:
        case []:
            asked = partial(compare)
        case ["--quick"]:
            asked = partial(compare, QUICK)
        case ["--workers", count] if count.isdecimal() and int(count) > 1:
            asked = partial(compare, workers=int(count))
        case _:
            sys.exit("usage: python -m perf.runtime [--quick | --workers N]")
    wait_until_idle()
    try:
        asked()
    except WrongAnswer as fault:
        sys.exit(f"perf: runtime: wrong answer: {fault}")
