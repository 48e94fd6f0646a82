"""Runs a program under several placements of its operators, block by block, and closes the loop of
query-plan-deployment-poster: "without affecting performance" is measured and not assumed.

A run starts the program, places it, lets it warm up, checks every thread, and measures. If the
packed deployment is not as good as an operator per core (`atoll.operators.judge`), it is planned
again with 0.1 more headroom, and all run again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from atoll.bench.idle import wait_until_idle
from atoll.bench.schedule import in_block
from atoll.engines.placeable import Placeable, Running
from atoll.errors import EngineFailed, UsageError
from atoll.host.api import Host
from atoll.host.environment import emulated, environment
from atoll.operators.judge import judge
from atoll.operators.used import cores_used, watching
from atoll.operators.verify import verify
from atoll.schema.machine import Machine
from atoll.schema.operator_graph import GraphOperator, OperatorGraph
from atoll.schema.operator_runs import OperatorRound, OperatorRun, OperatorRuns
from atoll.schema.placement import Deployment, Placement
from atoll.schema.text import first_of
from atoll.store.locks import try_lock
from atoll.store.paths import cache_dir

Planner = Callable[[OperatorGraph, float, Deployment], Placement]  # with a headroom
_STEP = 0.1  # of headroom
_FOLDER = "operators"


@dataclass(frozen=True, slots=True)
class Setup:
    """What to compare."""

    program: Placeable
    deployments: Sequence[Deployment]
    plan: Planner  # raises UsageError
    headroom: float
    most_headroom: float
    warmup_s: float
    measured_s: float
    blocks: int


@dataclass(slots=True)
class Comparison:
    host: Host
    machine: Machine
    setup: Setup
    say: Callable[[str], None]
    longest_wait_s: float = 5.0  # for an idle machine, before each run
    unit: str = ""
    refused: dict[Deployment, str] = field(default_factory=dict)

    def run(
        self, keep: Callable[[OperatorRuns], None], graph: OperatorGraph | None = None
    ) -> OperatorRuns:
        """`keep` gets the whole blocks after each. Without `graph` the program is profiled first.

        Raises EngineFailed if the program ended, and UsageError if nothing can run or another
        process compares.
        """
        with _only_one():
            graph = graph or self._profiled()
            rounds: list[OperatorRound] = []
            headroom = self.setup.headroom
            while True:
                placements = self._placements(graph, headroom)
                if not placements:
                    raise UsageError("; ".join(self.refused.values()))
                done = OperatorRound(headroom=headroom, placements=tuple(placements))
                for block in range(self.setup.blocks):
                    runs = self._block(placements, block)
                    done = done.model_copy(update={"runs": (*done.runs, *runs)})
                    found = self._found(graph, [*rounds, done])
                    keep(found)
                rounds.append(done)
                result = judge(done)
                if result is None or result.holds or found.emulated:
                    return found
                more = self._roomier(graph, done)
                if more is None:
                    return found
                self.say(f"headroom {headroom:.1f} did not hold: {result.cause}")
                headroom = more

    def _roomier(self, graph: OperatorGraph, last: OperatorRound) -> float | None:
        """The next headroom with which the plan is another one; None if there is none."""
        packed = next(one for one in last.placements if one.deployment == "packed")
        headroom = last.headroom
        while (headroom := round(headroom + _STEP, 2)) <= self.setup.most_headroom:
            try:
                plan = self.setup.plan(graph, headroom, "packed")
            except UsageError as fault:
                self.say(f"headroom {headroom:.1f}: {fault}")
                return None
            if {unit.operators: unit.cpu for unit in plan.units} != {
                unit.operators: unit.cpu for unit in packed.units
            }:
                return headroom
        return None

    def _profiled(self) -> OperatorGraph:
        """At the program's own rate, an operator per core where the machine has the cores."""
        setup, host = self.setup, self.host
        self.say("profile: starting")
        with self._started() as running:
            names = dict.fromkeys(name for one in running.threads() for name in one.operators)
            unknown = OperatorGraph(
                engine=setup.program.name,
                rate=None,
                operators=tuple(GraphOperator(id=name, activity=None) for name in names),
            )
            try:
                running.place(setup.plan(unknown, 0.0, "per-core"))
            except UsageError:
                running.place(setup.plan(unknown, 0.0, "os"))
            host.sleep(setup.warmup_s)
            self.say(f"profile: watching for {setup.measured_s:g} s")
            return running.profile(setup.measured_s)

    def _placements(self, graph: OperatorGraph, headroom: float) -> list[Placement]:
        """Those that this machine can have; the others are in `refused`."""
        placements = []
        for deployment in self.setup.deployments:
            try:
                placements.append(self.setup.plan(graph, headroom, deployment))
            except UsageError as fault:
                self.refused[deployment] = str(fault)
                self.say(f"{deployment} cannot run here: {fault}")
        return placements

    def _block(self, placements: Sequence[Placement], block: int) -> list[OperatorRun]:
        by_name = {str(one.deployment): one for one in placements}
        return [self._run(by_name[name], block) for _, name in in_block(list(by_name), block)]

    def _run(self, placement: Placement, block: int) -> OperatorRun:
        setup, host = self.setup, self.host
        where = f"block {block + 1} of {setup.blocks}, {placement.deployment}"
        self.say(f"{where}: starting")
        idle_before = wait_until_idle(host, self.longest_wait_s)
        with self._started() as running:
            running.place(placement)
            host.sleep(setup.warmup_s)
            threads = running.threads()
            checked = verify(host, threads, placement)
            pids = sorted({one.pid for one in threads})
            self.say(f"{where}: measuring for {setup.measured_s:g} s")
            with watching(host, pids) as cpu_s:
                found = running.measure(setup.measured_s)
        if not found.per_window:
            raise EngineFailed(f"{setup.program.name} measured no whole second")
        self.unit = found.unit
        return OperatorRun(
            block=block,
            deployment=placement.deployment,
            per_window=tuple(found.per_window),
            p50_ms=found.p50_ms,
            p90_ms=found.p90_ms,
            p99_ms=found.p99_ms,
            backlog=found.backlog,
            cores_used=cores_used(cpu_s, self.machine),
            threads=checked.threads,
            drifted=len(checked.faults),
            drift=first_of(checked.faults, 6, "; "),
            idle_before=idle_before,
        )

    @contextmanager
    def _started(self) -> Iterator[Running]:
        with _folder() as folder:
            cpus = [cpu for core in self.machine.allowed_cores for cpu in core.pus]
            with self.setup.program.start(self.host, folder, cpus) as running:
                yield running

    def _found(self, graph: OperatorGraph, rounds: Sequence[OperatorRound]) -> OperatorRuns:
        return OperatorRuns(
            program=self.setup.program.name,
            machine=self.machine,
            environment=environment(self.host, self.machine),
            emulated=emulated(self.host),
            graph=graph,
            unit=self.unit,
            warmup_s=self.setup.warmup_s,
            measured_s=self.setup.measured_s,
            refused=self.refused,
            rounds=tuple(rounds),
        )


@contextmanager
def _folder() -> Iterator[Path]:
    """For one program. What a killed process left there goes first."""
    folder = cache_dir("scratch") / _FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _only_one() -> Iterator[None]:
    """Raises UsageError if another process has the folder."""
    with (cache_dir("scratch") / f".{_FOLDER}.lock").open("a") as lock:
        if not try_lock(lock.fileno()):
            raise UsageError("another 'atoll operators compare' is at work; wait until it ends")
        yield
