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


class Hands(Protocol):
    """A method may raise OSError, which the bookkeeper handles; other exceptions end the run."""

    def read(self, path: str) -> str: ...

    def write(self, path: str, value: str) -> None: ...

    def keep(self, journal: Journal) -> None: ...


class Live:
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


class Paper:
    """Reads the machine and writes nothing: records what would be written in `steps`, and the
    values
    read before in `seen`."""

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


def perform(run: Run, hands: Hands) -> Report:
    """Executes every step. Signals that would end the process wait until all steps are done."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
    try:
        return _driven(run, hands)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _driven(run: Generator[Step, str, Report], hands: Hands) -> Report:
    try:
        step = next(run)
        while True:
            try:
                answer = _done(step, hands)
            except OSError as fault:
                step = run.throw(fault)
            else:
                step = run.send(answer)
    except StopIteration as end:
        report: Report = end.value
        return report


def _done(step: Step, hands: Hands) -> str:
    match step:
        case Read(path):
            return hands.read(path)
        case Write(path, value):
            hands.write(path, value)
        case Keep(journal):
            hands.keep(journal)
    return ""
