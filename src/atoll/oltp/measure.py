"""Measures transactional workloads, block by block, each run on a fresh copy of its data.

A run goes through these steps:

1. The server starts on a copy of the loaded data, which is brought to the disk.
2. The driver sends transactions: for the warm-up, in which the threads are checked, then for the
   measured time.
3. The conditions are checked, and the database must have what the driver had an answer to.

If the server or the driver ends in the middle of it, the server starts again on the same data, and
the same is checked after its recovery. Then the measurement ends with the error.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from atoll.bench.idle import idle_between, wait_until_idle
from atoll.bench.runner import WrongAnswer
from atoll.bench.schedule import in_block
from atoll.engines.api import Installation
from atoll.engines.facts import facts_of
from atoll.engines.transactions import TransactionalEngine, Transactions
from atoll.errors import EngineFailed, UsageError
from atoll.host.api import Host
from atoll.host.cpu_times import CpuTimes, cpu_times
from atoll.host.environment import emulated, environment
from atoll.inspect.verify import brief
from atoll.oltp.checks import Checks
from atoll.oltp.latencies import measured
from atoll.oltp.seats import Seat
from atoll.schema.cpulist import format_cpulist
from atoll.schema.machine import Machine
from atoll.schema.oltp import OltpRun, OltpRuns
from atoll.schema.text import first_of
from atoll.store.locks import try_lock
from atoll.store.once import sync_file_system
from atoll.store.paths import cache_dir
from atoll.supervise.client_calls import within
from atoll.supervise.launch import Running, launch
from atoll.supervise.prepare import find_launcher

NAME = "oltp"  # of the deployment, and of the folder of its data
_LATE_S = 60.0  # how much longer than asked the driver may take
_ASK_S = 600.0
_DIED_S = 2.0  # until the supervisor knows which process died

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Setup:
    """What to measure."""

    engine: TransactionalEngine
    installation: Installation
    works: Mapping[str, Transactions]
    seats: Sequence[Seat]
    notes: tuple[str, ...]  # of the seats
    warmup_s: int
    measured_s: int
    blocks: int


@dataclass(slots=True)
class Measurement:
    host: Host
    machine: Machine
    setup: Setup
    say: Callable[[str], None]
    longest_wait_s: float = 5.0  # for an idle machine, before each run
    runs: list[OltpRun] = field(default_factory=list)
    durability: Mapping[str, str] = field(default_factory=dict)

    def run(self, keep: Callable[[OltpRuns], None]) -> OltpRuns:
        """`keep` gets the whole blocks after each.

        Raises WrongAnswer if a condition does not hold, EngineFailed if the server or the driver
        ended; UsageError if another process measures.
        """
        entrants = [(name, seat) for name in self.setup.works for seat in self.setup.seats]
        labels = [f"{name} {seat.label}" for name, (seat, _) in entrants]
        with _only_one():
            for block in range(self.setup.blocks):
                done: list[OltpRun] = []
                for _, label in in_block(labels, block):
                    name, seat = entrants[labels.index(label)]
                    where = f"block {block + 1} of {self.setup.blocks}, {label}"
                    with _data_folder(self.setup.engine) as folder:
                        one = _Run(self, name, seat, block, folder, where)
                        done.append(one.measure())
                self.runs += done
                found = self.found()
                keep(found)
        return found

    def found(self) -> OltpRuns:
        setup = self.setup
        return OltpRuns(
            engine=setup.engine.traits.name,
            engine_version=setup.installation.version,
            machine=self.machine,
            environment=environment(self.host, self.machine),
            emulated=emulated(self.host),
            sizes={name: work.size for name, work in setup.works.items()},
            warmup_s=setup.warmup_s,
            measured_s=setup.measured_s,
            durability=dict(self.durability),
            seats=tuple(seat for seat, _ in setup.seats),
            runs=tuple(self.runs),
            warnings=setup.notes,
        )


@dataclass(slots=True)
class _Run:
    of: Measurement
    name: str
    seat: Seat
    block: int
    folder: Path
    where: str
    driving: bool = False
    times: CpuTimes | None = None  # of the server's CPUs, at the end of the warm-up
    idle_before: float = 1.0
    idle_during: float = 1.0
    threads: int = 0
    drift: list[str] = field(default_factory=list)

    def measure(self) -> OltpRun:
        try:
            with self._server() as running:
                return self._measured(running)
        except WrongAnswer:
            raise
        except EngineFailed as fault:
            if self.driving:
                raise self._recovered(fault) from None
            raise

    def _measured(self, running: Running) -> OltpRun:
        setup, work, client = self.of.setup, self._work, running.clients[0]
        host, (seat, _) = self.of.host, self.seat
        self.of.durability = _ask(partial(setup.engine.durability, client, timeout_s=_ASK_S))
        sync_file_system(self.folder)
        _ask(partial(setup.engine.checkpoint, client, timeout_s=_ASK_S))
        self.idle_before = wait_until_idle(host, self.of.longest_wait_s)
        self._drive(running)
        log = work.read(self._driver_files())
        rate, latencies = measured(
            log, work.types, warmup_s=setup.warmup_s, measured_s=setup.measured_s
        )
        self.of.say(f"{self.where}: checking")
        acknowledged = int((log.types == work.types.index(work.counted[0])).sum())
        counted, conditions = self._checks.of(client, acknowledged, exact=True)
        return OltpRun(
            block=self.block,
            workload=self.name,
            seat=seat.label,
            commits_per_s=rate,
            latencies=latencies,
            failed=log.failed,
            acknowledged=acknowledged,
            counted=counted,
            conditions=conditions,
            threads=self.threads,
            drifted=len(self.drift),
            drift=first_of(self.drift, 6, "; "),
            idle_before=self.idle_before,
            idle_during=self.idle_during,
        )

    def _drive(self, running: Running) -> None:
        """Raises EngineFailed if the server or the driver ended early. A driver whose server is
        gone ends by itself, with its log complete."""
        setup, host, (seat, _) = self.of.setup, self.of.host, self.seat
        folder = self.folder / "driver"
        folder.mkdir(mode=0o700)
        seconds = setup.warmup_s + setup.measured_s
        drive = self._work.drive(
            setup.installation,
            running.deployment.endpoints[0],
            clients=seat.cores,
            seconds=seconds,
            seed=self.block + 1,
        )
        for name, text in drive.files.items():
            (folder / name).write_text(text, "utf-8")
        began = host.monotonic()

        def tick() -> None:
            elapsed_s = host.monotonic() - began
            if not self.threads and elapsed_s > setup.warmup_s / 2:
                self._verify(running)
            if self.times is None and elapsed_s >= setup.warmup_s:
                self.times = cpu_times(host, seat.cpus)

        self.driving = True
        self.of.say(f"{self.where}: running for {seconds} s")
        placed = (find_launcher(), "-C", format_cpulist(seat.driver_cpus), "--", *drive.argv)
        try:
            done = host.run(
                placed,
                timeout_s=seconds + _LATE_S,
                env=drive.env,
                cwd=str(folder),
                tied=True,
                tick=tick,
            )
        except TimeoutError:
            raise EngineFailed(
                f"{drive.argv[0]} did not end {_LATE_S:g} s after its time"
            ) from None
        if self.times is not None:
            self.idle_during = idle_between(self.times, cpu_times(host, seat.cpus))
        if done.returncode != 0:
            running.check(wait_s=_DIED_S)  # which explains more
            words = done.stderr.strip().splitlines() or ["no message"]
            how = f"signal {-done.returncode}" if done.returncode < 0 else words[-1]
            raise EngineFailed(f"{drive.argv[0]} ended early: {how}")

    def _verify(self, running: Running) -> None:
        found = running.verify(deep=False)
        self.threads = found.threads
        self.drift = [brief(finding) for finding in found.drift]

    def _recovered(self, fault: EngineFailed) -> EngineFailed:
        """The error to end with, once the server has started again on its data. Raises WrongAnswer
        if a condition does not hold then."""
        self.of.say(f"{self.where}: recovering")
        log = self._work.read(self._driver_files())
        kind, _ = self._work.counted
        acknowledged = int((log.types == self._work.types.index(kind)).sum())
        try:
            with self._server() as running:
                _, found = self._checks.of(running.clients[0], acknowledged, exact=False)
        except WrongAnswer as wrong:
            raise WrongAnswer(f"{fault}; after its recovery, {wrong}", wrong.detail) from None
        except EngineFailed as again:
            return EngineFailed(f"{fault}; it did not recover: {again}")
        return EngineFailed(
            f"{fault}; after its recovery all {len(found)} conditions hold, and none of "
            f"{acknowledged} acknowledged {kind} transactions is lost"
        )

    @property
    def _checks(self) -> Checks:
        return Checks(self._work.conditions, self._work.counted, self.where)

    @property
    def _work(self) -> Transactions:
        return self.of.setup.works[self.name]

    @contextmanager
    def _server(self) -> Iterator[Running]:
        engine = self.of.setup.engine.kept_in(str(self.folder)).holding(self._work.data)
        with launch(
            self.seat[1],
            engine,
            machine=self.of.machine,
            host=self.of.host,
            name=NAME,
            progress=lambda line: self.of.say(f"{self.where}: {line}"),
        ) as running:
            yield running

    def _driver_files(self) -> dict[str, str]:
        folder = self.folder / "driver"
        return {path.name: path.read_text("utf-8", "replace") for path in folder.iterdir()}


@contextmanager
def _only_one() -> Iterator[None]:
    """Raises UsageError if another process has the folder of the data."""
    with (cache_dir("scratch") / f".{NAME}.lock").open("a") as lock:
        if not try_lock(lock.fileno()):
            raise UsageError("another 'atoll oltp run' is at work; wait until it ends")
        yield


@contextmanager
def _data_folder(engine: TransactionalEngine) -> Iterator[Path]:
    """For one server. What a killed process left there goes first."""
    folder = cache_dir("scratch") / NAME

    def clear() -> None:
        if folder.exists() and (remove := facts_of(engine).leftovers):
            remove([folder])
        shutil.rmtree(folder, ignore_errors=True)

    clear()
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        clear()


def _ask(call: Callable[[], T]) -> T:
    return within(_ASK_S, "asking the server", call)
