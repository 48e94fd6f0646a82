"""DuckDB on the task runtime (`atoll.duckdb.connect`) beside plain DuckDB with the same threads.

Each side is a process of its own that has the same file open, and sleeps while the other works;
both restart again and again, since a process can be faster than its twin for as long as it
lives. A block is the 22 queries of TPC-H in a random order, each on both sides one right after the
other. Rounds of eight streams follow, each stream with all queries in an order of its own, as in
TPC-H's throughput test. Every answer is checked. CPU time is that of the whole process, whatever
its threads do; docs/perf.md explains the bars.

`python -m perf.duckdb --quick` is a look of a minute, at a tenth of the data: no measurement.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import duckdb
import numpy as np

from atoll.engines.api import QueryResult
from atoll.host.environment import environment
from atoll.host.local import LocalHost
from atoll.host.topology import read_machine
from atoll.store.paths import cache_dir
from atoll.suites import registry
from atoll.suites.base import Answer, DataSet
from atoll.suites.compare import compare as difference
from perf.duckdb_pairs import Figures, Measure, Pair, over_lives, permutations, turns
from perf.duckdb_side import Facts, Open, Run, Side, on_atoll, plain
from perf.harness import Interval, WrongAnswer, at_most, no_slower, note, wait_until_idle

TPCH = registry.get("tpch")
QUERIES = TPCH.query_names
STREAMS = 8
WARM_UPS = 2
GEOMEAN_MOST = 1.02  # upper end of the interval, of CPU time over plain's
QUERY_MOST = 1.08  # median, of CPU time over plain's
IDLE_CORE_PERCENT = 0.1  # more than plain's: a process is asked now and then while it waits
RESULTS = Path(__file__).resolve().parent.parent / "build/perf-duckdb/results.json"


@dataclass(frozen=True, slots=True)
class Effort:
    name: str
    scale_factor: float
    lives: int  # of both processes; even, so that either side goes first equally often
    blocks: int  # in each life; even as well
    rounds: int  # of streams in each life
    patience_s: float  # with other work on the machine, in all blocks or all rounds of a life


WHOLE = Effort("whole", scale_factor=1, lives=16, blocks=6, rounds=1, patience_s=4.0)
QUICK = Effort("quick", scale_factor=0.1, lives=6, blocks=2, rounds=1, patience_s=1.0)


class Judge:
    """Knows the right answers. What equals an answer found right is right."""

    def __init__(self, expected: Mapping[str, Answer]) -> None:
        self._expected = expected
        self._right: dict[str, QueryResult] = {}

    def check(self, side: str, run: Run) -> None:
        for query, result in run.answers:
            if self._right.get(query) == result:
                continue
            fault = difference(result, self._expected[query])
            if fault is not None:
                raise WrongAnswer(f"{side}: {query}: {fault}")
            self._right[query] = result


class Both:
    """Two sides that do the same work in turns, for one life."""

    def __init__(self, life: int, ours: Side, peer: Side, judge: Judge) -> None:
        self._life, self._ours, self._peer, self._judge = life, ours, peer, judge

    def run(self, block: int, query: str, ours_first: bool) -> Pair:
        return self._pair(block, query, lambda side: side.run(query), ours_first)

    def run_streams(self, number: int) -> Pair:
        streams = permutations(number, STREAMS, QUERIES)
        return self._pair(
            number, "streams", lambda side: side.run_streams(streams), number % 2 == 0
        )

    def facts(self) -> tuple[Facts, Facts]:
        return self._ours.facts(), self._peer.facts()

    def _pair(self, block: int, work: str, on: Callable[[Side], Run], ours_first: bool) -> Pair:
        sides = (self._ours, self._peer) if ours_first else (self._peer, self._ours)
        runs = {side: on(side) for side in sides}
        for side, run in runs.items():
            self._judge.check(side.name, run)
        ours, peer = runs[self._ours].figures, runs[self._peer].figures
        return Pair(self._life, block, work, ours_first, ours, peer)


@dataclass(frozen=True, slots=True)
class Found:
    queries: list[Pair]
    streams: list[Pair]
    # Of each life: before the blocks, after them, after the streams; ours and the peer's.
    lives: list[list[tuple[Facts, Facts]]]


def compare(effort: Effort = WHOLE, ours: Open = on_atoll) -> None:
    threads = len(os.sched_getaffinity(0))
    machine = environment(LocalHost(), read_machine())
    note(
        f"machine: {machine.cpu_model}, {threads} CPUs, {machine.memory_bytes / 2**30:.0f} GiB, "
        f"{machine.virtualization}, Linux {machine.kernel}"
    )
    note(
        f"DuckDB {duckdb.__version__}, TPC-H at scale factor {effort.scale_factor:g}, "
        f"{threads} threads on either side; {effort.lives} pairs of processes, each with "
        f"{effort.blocks} blocks and {effort.rounds} rounds of {STREAMS} streams"
    )
    found = _measure(effort, ours, threads)
    _say_queries(found.queries)
    _say_streams(found.streams)
    idle_percent = [
        _say_side(
            name,
            [[moment[place] for moment in life] for life in found.lives],
            [(pair.ours, pair.peer)[place] for pair in found.queries],
        )
        for place, name in enumerate(("atoll", "plain"))
    ]
    more_percent = idle_percent[0] - idle_percent[1]
    at_most("duckdb-idle-over-plain-core-percent", more_percent, IDLE_CORE_PERCENT)
    _say_settings(*found.lives[0][0])
    if effort is not WHOLE:
        return
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    figures = {"effort": asdict(effort), "machine": machine.model_dump(), **asdict(found)}
    RESULTS.write_text(json.dumps(figures, indent=1) + "\n")
    note(f"all figures: {RESULTS}")


def _measure(effort: Effort, ours: Open, threads: int) -> Found:
    data = TPCH.ensure_data(effort.scale_factor, host=LocalHost(), progress=lambda what, part: None)
    path = database(data)
    judge = Judge({query: TPCH.expected(query, data) for query in QUERIES})
    texts = TPCH.queries("duckdb")
    found = Found([], [], [])
    for life in range(effort.lives):
        with (
            Side("atoll", ours, path, threads, texts) as atoll,
            Side("plain", plain, path, threads, texts) as peer,
        ):
            both = Both(life, atoll, peer, judge)
            for query in QUERIES * WARM_UPS:
                both.run(0, query, ours_first=life % 2 == 0)
            facts = [both.facts()]
            found.queries.extend(
                both.run(block, query, ours_first)
                for block in _when_idle(life, effort.blocks, effort.patience_s)
                for query, ours_first in turns(block, QUERIES)
            )
            facts.append(both.facts())
            found.streams.extend(
                both.run_streams(number)
                for number in _when_idle(life, effort.rounds, effort.patience_s)
            )
            found.lives.append([*facts, both.facts()])
    return found


def database(data: DataSet) -> Path:
    """The data set as a file of DuckDB's, in the cache; made first if it is not there."""
    folder = cache_dir("perf-duckdb")
    path = folder / f"sf{data.scale_factor:g}-{duckdb.__version__}-{data.checksum[:16]}.duckdb"
    if not path.exists():
        making = folder / f".making-{os.getpid()}.duckdb"
        with duckdb.connect(str(making)) as connection:
            for table, file in data.files.items():
                connection.read_parquet(str(file)).create(table)
        making.rename(path)
    return path


def _when_idle(life: int, number: int, patience_s: float) -> Iterator[int]:
    """The numbers of a life's blocks, each when the machine is idle or patience has run out."""
    for turn in range(life * number, (life + 1) * number):
        start = time.monotonic()
        if patience_s > 0:
            wait_until_idle(patience_s=patience_s)
        patience_s -= time.monotonic() - start
        yield turn


# ---- the output ----------------------------------------------------------------------------------


def _say_queries(pairs: Sequence[Pair]) -> None:
    for query in QUERIES:
        own = [pair for pair in pairs if pair.work == query]
        cpu = over_lives(own, "cpu_s")
        note(
            f"{query}: plain {_of_plain(own, 'cpu_s') * 1e3:.1f} ms of CPU in "
            f"{_of_plain(own, 'wall_s') * 1e3:.1f} ms; atoll over plain: CPU {cpu}, "
            f"wall {over_lives(own, 'wall_s')}"
        )
        at_most(f"duckdb-cpu-{query}-ratio", cpu.value, QUERY_MOST)
    cpu, wall = over_lives(pairs, "cpu_s"), over_lives(pairs, "wall_s")
    note(f"geometric mean of {len(QUERIES)} queries, atoll over plain: CPU {cpu}, wall {wall}")
    at_most("duckdb-cpu-geomean-high-ratio", cpu.high, GEOMEAN_MOST)
    no_slower("duckdb-wall-geomean-ratio", wall)


def _say_streams(pairs: Sequence[Pair]) -> None:
    wall = over_lives(pairs, "wall_s")
    a_second = Interval(1 / wall.value, 1 / wall.high, 1 / wall.low)
    note(
        f"{STREAMS} streams: plain {STREAMS * len(QUERIES) / _of_plain(pairs, 'wall_s'):.1f} "
        f"queries a second; atoll over plain: queries a second {a_second}, "
        f"CPU {over_lives(pairs, 'cpu_s')}"
    )
    no_slower("duckdb-streams-wall-ratio", wall)


def _say_side(name: str, lives: Sequence[Sequence[Facts]], queries: Sequence[Figures]) -> float:
    """What else there is to know of a side; returns its percent of a core while it waited."""
    switches = np.mean([figures.switches for figures in queries])
    moves = [
        between.migrations - start.migrations
        for start, between, _ in lives
        if start.migrations is not None and between.migrations is not None
    ]
    moved = f" and {sum(moves) / len(queries):.2f} moves of threads between CPUs" if moves else ""
    alone = max(between.peak_bytes for _, between, _ in lives) / 2**20
    together = max(end.peak_bytes for *_, end in lives) / 2**20
    idle_s = sum(end.idle_s - start.idle_s for start, _, end in lives)
    idle_cpu_s = sum(end.idle_cpu_s - start.idle_cpu_s for start, _, end in lives)
    idle_percent = 100 * idle_cpu_s / idle_s
    last = lives[-1][-1]
    note(
        f"{name}: {last.scheduler}; {last.threads} threads in the process; a query has "
        f"{switches:.1f} context switches{moved}; at most {alone:.0f} MiB, with streams "
        f"{together:.0f}; {idle_percent:.3f} % of a core while waiting"
    )
    return idle_percent


def _say_settings(ours: Facts, peer: Facts) -> None:
    differ = [
        f"{name} {ours.settings.get(name)} ({peer.settings.get(name)})"
        for name in sorted(ours.settings.keys() | peer.settings.keys())
        if ours.settings.get(name) != peer.settings.get(name)
    ]
    note(f"settings of atoll that differ from plain's: {', '.join(differ) or 'none'}")


def _of_plain(pairs: Sequence[Pair], measure: Measure) -> float:
    return float(np.median([getattr(pair.peer, measure) for pair in pairs]))


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--quick"]):
        sys.exit("usage: python -m perf.duckdb [--quick]")
    wait_until_idle()
    try:
        compare(QUICK if sys.argv[1:] else WHOLE)
    except WrongAnswer as fault:
        sys.exit(f"perf: duckdb: wrong answer: {fault}")
