"""A side of `make perf-duckdb`: one database in its own process, driven by commands.

The process stays for the whole comparison, so that CPU time, switches and memory are those of one
database and of nothing else; between requests it waits on a pipe. CPU time is that of all its
threads and counts until a moment after the answer, so that who spins on pays for it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import re
import resource
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import duckdb

from atoll.engines.api import Column, QueryResult
from atoll.store.paths import cache_dir
from perf.duckdb_pairs import Figures
from perf.harness import WrongAnswer

SETTLE_S = 0.005  # after an answer; workers that found nothing sleep by then
TIMEOUT_S = 300.0  # for an answer; a round of streams at scale factor 1 takes 25 s on one CPU
END_S = 30.0  # for a process that has hung up, until its exit status is there
Open = Callable[[Path, int], duckdb.DuckDBPyConnection]  # database, threads
_MIGRATIONS = re.compile(r"^se\.nr_migrations\s*:\s*(\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Run:
    figures: Figures
    answers: tuple[tuple[str, QueryResult], ...]  # (query, what it returned)


@dataclass(frozen=True, slots=True)
class Facts:
    """What a process says of itself, since its start."""

    peak_bytes: int  # resident
    idle_s: float  # between requests
    idle_cpu_s: float  # meanwhile
    migrations: int | None  # of its threads to another CPU; None: the kernel does not say
    threads: int
    scheduler: str
    settings: Mapping[str, str]  # DuckDB's


def plain(path: Path, threads: int) -> duckdb.DuckDBPyConnection:
    """DuckDB as it is."""
    config = _config() | {"threads": threads, "pin_threads": "off"}
    return duckdb.connect(str(path), read_only=True, config=config)


def on_atoll(path: Path, threads: int) -> duckdb.DuckDBPyConnection:
    """On the task runtime, with the policy that users get."""
    import atoll.duckdb

    return atoll.duckdb.connect(str(path), workers=threads, read_only=True, config=_config())


class Side:
    """The process, as the comparison sees it. Every fault of it is a WrongAnswer."""

    def __init__(
        self, name: str, opened: Open, database: Path, threads: int, queries: Mapping[str, str]
    ) -> None:
        self.name = name
        context = multiprocessing.get_context("spawn")  # a fork would share this process's state
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, opened, database, threads, dict(queries)), daemon=True
        )
        self._process.start()
        theirs.close()

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._pipe.send(None)
        self._process.join(TIMEOUT_S)
        self._process.kill()

    def run(self, query: str) -> Run:
        answer: Run = self._ask("run", query)
        return answer

    def run_streams(self, streams: Sequence[Sequence[str]]) -> Run:
        """A thread with a cursor for each stream, all at once."""
        answer: Run = self._ask("run_streams", streams)
        return answer

    def facts(self) -> Facts:
        answer: Facts = self._ask("facts", None)
        return answer

    def _ask(self, what: str, argument: object) -> Any:
        try:
            self._pipe.send((what, argument))
            if not self._pipe.poll(TIMEOUT_S):
                raise WrongAnswer(f"{self.name}: no answer to {what} within {TIMEOUT_S:g} s")
            done, answer = self._pipe.recv()
        except (EOFError, OSError) as fault:
            self._process.join(END_S)
            raise WrongAnswer(
                f"{self.name}: its process ended with {self._process.exitcode} ({fault!r})"
            ) from None
        if not done:
            raise WrongAnswer(f"{self.name}: {what}: {answer}")
        return answer


# ---- in the process ------------------------------------------------------------------------------


class _Server:
    def __init__(self, database: duckdb.DuckDBPyConnection, queries: Mapping[str, str]) -> None:
        self._database = database
        self._queries = queries
        self._idle_s = 0.0
        self._idle_cpu_s = 0.0

    def waited(self, wall_s: float, cpu_s: float) -> None:
        self._idle_s += wall_s
        self._idle_cpu_s += cpu_s

    def run(self, query: str) -> Run:
        clock = _Clock()
        answer = _fetched(self._database, query, self._queries[query])
        return clock.stop([answer])

    def run_streams(self, streams: Sequence[Sequence[str]]) -> Run:
        answers: list[tuple[str, QueryResult]] = []
        faults: list[Exception] = []
        ready = threading.Barrier(len(streams) + 1)

        def stream(cursor: duckdb.DuckDBPyConnection, order: Sequence[str]) -> None:
            ready.wait()
            try:
                answers.extend(_fetched(cursor, query, self._queries[query]) for query in order)
            except Exception as fault:
                faults.append(fault)

        cursors = [self._database.cursor() for _ in streams]
        threads = [
            threading.Thread(target=stream, args=own) for own in zip(cursors, streams, strict=True)
        ]
        for thread in threads:
            thread.start()
        clock = _Clock()
        ready.wait()
        for thread in threads:
            thread.join()
        run = clock.stop(answers)
        for cursor in cursors:
            cursor.close()
        if faults:
            raise faults[0]
        return run

    def facts(self, _: None) -> Facts:
        rows = self._database.execute("select name, value from duckdb_settings()").fetchall()
        return Facts(
            peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            idle_s=self._idle_s,
            idle_cpu_s=self._idle_cpu_s,
            migrations=_migrations(),
            threads=len(list(Path("/proc/self/task").iterdir())),
            scheduler=str(getattr(self._database, "atoll", "DuckDB's own scheduler")),
            settings={name: str(value) for name, value in rows},
        )


class _Clock:
    """Wall time, CPU time and switches from here to `stop`."""

    def __init__(self) -> None:
        self._before = resource.getrusage(resource.RUSAGE_SELF)
        self._start = time.perf_counter()

    def stop(self, answers: Sequence[tuple[str, QueryResult]]) -> Run:
        wall_s = time.perf_counter() - self._start
        time.sleep(SETTLE_S)
        before, after = self._before, resource.getrusage(resource.RUSAGE_SELF)
        switches = after.ru_nvcsw + after.ru_nivcsw - before.ru_nvcsw - before.ru_nivcsw
        figures = Figures(wall_s, _cpu_s(after) - _cpu_s(before), switches)
        return Run(figures, tuple(answers))


def _serve(
    pipe: Connection, opened: Open, path: Path, threads: int, queries: Mapping[str, str]
) -> None:
    """Answers each request with (True, result) or (False, a line); ends at None."""
    try:
        server = _Server(opened(path, threads), queries)
    except Exception as fault:
        pipe.recv()
        pipe.send((False, _line(fault)))
        return
    while True:
        start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
        request = pipe.recv()
        cpu_s = _cpu_s(resource.getrusage(resource.RUSAGE_SELF)) - _cpu_s(before)
        server.waited(time.perf_counter() - start, cpu_s)
        if request is None:
            return
        what, argument = request
        try:
            pipe.send((True, getattr(server, what)(argument)))
        except Exception as fault:
            pipe.send((False, _line(fault)))


def _config() -> dict[str, str | bool | int | float | list[str]]:
    """The settings of both sides. Nothing is fetched from the network."""
    spill = str(cache_dir("scratch", "perf-duckdb"))
    return {"temp_directory": spill, "autoinstall_known_extensions": False}


def _fetched(
    connection: duckdb.DuckDBPyConnection, query: str, sql: str
) -> tuple[str, QueryResult]:
    connection.execute(sql)
    columns = tuple(Column(name, str(kind).lower()) for name, kind, *_ in connection.description)
    return query, QueryResult(columns, connection.fetchall(), engine_seconds=0.0)


def _cpu_s(usage: resource.struct_rusage) -> float:
    return usage.ru_utime + usage.ru_stime


def _migrations() -> int | None:
    counts: list[int] = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended, or this kernel has no such file
            counts += [int(found) for found in _MIGRATIONS.findall((task / "sched").read_text())]
    return sum(counts) if counts else None


def _line(fault: Exception) -> str:
    return " ".join(traceback.format_exception_only(fault)[-1].split())
