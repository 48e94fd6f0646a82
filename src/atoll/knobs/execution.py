"""Executes a bookkeeper's steps: on the machine, or as a dry run for a script."""

from __future__ import annotations

import signal
from collections.abc import Generator
from typing import Protocol

from atoll.host.api import Host
from atoll.knobs.bookkeeper import Keep, Read, Report, Run, Step, Write
from atoll.knobs.journal import JournalFolder
from atoll.knobs.values import value_of
from atoll.schema.knobs import Journal

_ENDS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


class Executor(Protocol):
    """A method may raise OSError, which the bookkeeper handles; other exceptions end the run."""

    def read(self, path: str) -> str: ...

    def write(self, path: str, value: str) -> None: ...

    def keep(self, journal: Journal) -> None: ...


class LiveExecutor:
    """Uses the machine's switches and the journal on disk; the caller holds its lock."""

    def __init__(self, host: Host, folder: JournalFolder) -> None:
        self._host = host
        self._folder = folder

    def read(self, path: str) -> str:
        return value_of(self._host.read_text(path))

    def write(self, path: str, value: str) -> None:
        self._host.write_text(path, value + "\n")

    def keep(self, journal: Journal) -> None:
        self._folder.keep(journal)


class DryRun:
    """Reads the machine and writes nothing: records what would be written in `steps`, and the
    values read before in `seen`."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._written: dict[str, str] = {}
        self.seen: dict[str, str] = {}
        self.steps: list[Write | Keep] = []

    def read(self, path: str) -> str:
        if path in self._written:
            return self._written[path]
        return self.seen.setdefault(path, value_of(self._host.read_text(path)))

    def write(self, path: str, value: str) -> None:
        self._written[path] = value
        self.steps.append(Write(path, value))

    def keep(self, journal: Journal) -> None:
        self.steps.append(Keep(journal))


def execute(run: Run, executor: Executor) -> Report:
    """Executes every step. Signals that would end the process wait until all steps are done."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
    try:
        return _run(run, executor)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _run(run: Generator[Step, str, Report], executor: Executor) -> Report:
    try:
        step = next(run)
        while True:
            try:
                answer = _execute_step(step, executor)
            except OSError as fault:
                step = run.throw(fault)
            else:
                step = run.send(answer)
    except StopIteration as end:
        report: Report = end.value
        return report


def _execute_step(step: Step, executor: Executor) -> str:
    match step:
        case Read(path):
            return executor.read(path)
        case Write(path, value):
            executor.write(path, value)
        case Keep(journal):
            executor.keep(journal)
    return ""
