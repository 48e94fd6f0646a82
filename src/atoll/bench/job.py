"""Puts a bench together (machine, engines, data, entrants, fingerprint) and runs it.

`make_job` finds what is wrong before the first deployment starts: an engine that is not
installed, a policy that the machine cannot hold, a results file that cannot be resumed.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from atoll.bench.api import Deploy, Work
from atoll.bench.axes import Axis, Grid, is_run_axis
from atoll.bench.cells import Cell
from atoll.bench.cost import Budget, budget_for, earlier_results, known_costs, outlook
from atoll.bench.deploy import Deployer
from atoll.bench.entrants import make_chain, make_entrants
from atoll.bench.fingerprint import fingerprint
from atoll.bench.results import Results, ResultsWriter, require_machine
from atoll.bench.runner import Bench, Tick
from atoll.bench.suite_work import notes_on, texts_of, work_of
from atoll.bench.switches import present_values, restore, try_out, turning, without_twins
from atoll.engines import registry
from atoll.engines.api import (
    Engine,
    Installation,
    LoadingEngine,
    Progress,
    ScheduledEngine,
)
from atoll.engines.calls import located, seats_itself, under
from atoll.engines.userconfig.apply import with_user_tree
from atoll.engines.userconfig.tree import UserTree
from atoll.errors import UsageError
from atoll.host.api import Host
from atoll.host.environment import environment
from atoll.knobs.journal import JournalFolder
from atoll.plan import machine_id
from atoll.plan.capacity import check_room
from atoll.plan.cluster import refuse_part
from atoll.plan.request import Choices
from atoll.probing.allocators import library_of
from atoll.render.deployment import summary_before_start
from atoll.schema.machine import Machine
from atoll.schema.plan import EngineTraits
from atoll.schema.results import AxisValues, Entrant, RunHeader, Scheduler
from atoll.schema.span import span
from atoll.stats.paired import MIN_BLOCKS
from atoll.store.paths import state_path
from atoll.store.plan_file import is_plan_file, read_plan
from atoll.suites import registry as suites
from atoll.suites.base import Suite
from atoll.suites.dialects import without_impossible
from atoll.suites.folder import choose
from atoll.suites.own import MANIFEST, Own
from atoll.suites.selection import select_queries

# The name of the bench's deployments in `atoll ps`. A bench runs one deployment at a time, and a
# second bench at the same time fails on this name: the two would disturb each other.
NAME = "bench"
_SIZES = frozenset({"heap_bytes", "page_cache", "reserve_bytes"})


@dataclass(frozen=True, slots=True)
class Length:
    """How long a run is to be: a number of blocks, or as many as fit into a time.

    Neither: MIN_BLOCKS, or the number that a resumed run had.
    """

    blocks: int | None = None
    time_s: float | None = None

    @property
    def is_default(self) -> bool:
        return self.blocks is None and self.time_s is None

    @property
    def blocks_asked(self) -> int | None:
        return self.blocks or (MIN_BLOCKS if self.time_s is None else None)


@dataclass(frozen=True, slots=True)
class BenchRequest:
    """What the user wants to measure."""

    targets: tuple[str, ...]  # names of engines and paths of plan files
    suite: str
    scale_factor: float
    grid: Grid  # what is varied, and what holds for all deployments
    queries: str | None  # for example '1,3-5'; None: all
    length: Length
    query_limit_s: float
    command: str  # the command line, for the record
    warmups: int = 1  # passes before each measured one
    choices: Choices = field(default_factory=Choices)  # of the engines' plans, besides the grid
    decompose: bool = False  # measure the steps from WIM to bound instances instead of policies
    instances: int | None = None  # of a decomposition; None: one per NUMA node
    resumes: Path | None = None  # the results file to continue
    base: str | None = None  # folder of the user's configuration; None: Atoll's configuration


@dataclass(frozen=True, slots=True)
class Job:
    """A bench that is ready to run."""

    header: RunHeader
    work: Work
    # (machine, host, progress) -> what brings an entrant up
    deployer: Callable[[Machine, Host, Callable[[str], None]], Deploy]
    length: Length
    longest_wait_s: float = 5.0  # for an idle machine, before each measured pass
    changes: Sequence[str] = ()  # in the user's configuration, in short
    sized: bool = False  # the user has chosen what decides the sizes of heaps
    knobs: Mapping[str, str] = field(default_factory=dict)  # of the grid: their values before it
    budget: Budget | None = None  # None: the time limits nothing but blocks

    def run(
        self,
        path: Path,
        *,
        host: Host,
        resume: bool,
        tick: Callable[[Tick], None],
        say: Callable[[str], None],
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Measure into `path`. `note` hears first how much that is.

        Raises as `atoll.bench.runner.Bench.run` and the writer do, and UsageError if the grid does
        not fit into the time.
        """
        earlier, first = Results(self.header, ()), 0
        folders = {path.absolute().parent, state_path("results")}
        known = known_costs(self.header, earlier_results(folders))
        if self.budget and not resume:
            self.budget.check(known.by_label, source=known.source)
        costs: dict[str, float] = {}

        def first_block(label: str, elapsed_s: float) -> None:
            costs[label] = elapsed_s
            if self.budget:
                self.budget.check(costs, done=first, kept=str(path))
            if len(costs) == len(self.header.entrants):
                note(f"a block takes {span(sum(costs.values()))}")

        with turning(self.knobs, host, JournalFolder(), note) as turn:
            if resume:
                writer, earlier, first = ResultsWriter.resume(
                    path, self.header, extend=not self.length.is_default, sized=self.sized
                )
                self.work.recall(earlier)
            else:
                writer = ResultsWriter.create(path, self.header)
            note(outlook(earlier.header, first, self.length.time_s, known))
            with writer:
                Bench(
                    header=earlier.header,
                    host=host,
                    deploy=self.deployer(earlier.header.machine, host, say),
                    work=self.work,
                    append=writer.append,
                    tick=tick,
                    longest_wait_s=self.longest_wait_s,
                    time_s=self.length.time_s,
                    left_out=earlier.left_out,
                    profiled=earlier.profiled,
                    turn=turn,
                    check_time=first_block,
                ).run(first_block=first)


def make_job(request: BenchRequest, *, host: Host, machine: Machine, progress: Progress) -> Job:
    """Put a bench together.

    Raises UsageError, EngineFailed (not installed) or DownloadFailed (no data).
    """
    restored = restore(host, JournalFolder())  # first: the fingerprint contains knobs
    if request.resumes is not None:
        require_machine(request.resumes, machine_id(machine), environment(host, machine))
    suite = suites.get(request.suite)
    names = [target for target in request.targets if not is_plan_file(target)]
    plans = [read_plan(target) for target in request.targets if is_plan_file(target)]
    for plan in plans:
        refuse_part(plan, "a bench has one machine")
    grid = request.grid
    of_plans = [axis.name for axis in grid.axes if not is_run_axis(axis.name)]
    if (request.choices or of_plans) and not names:
        raise UsageError("plan files have their own settings; leave out the options of a plan")
    based = {
        name: with_user_tree(registry.get(name), request.base, host)
        for name in (*names, *(plan.engine for plan in plans))
    }
    engines = {name: engine for name, (engine, _) in based.items()}
    queries = _selected(suite, request.queries)
    if isinstance(suite, Own):
        on_queries = suite.notes(queries)
    else:
        queries, on_queries = without_impossible(queries, suite.name, tuple(engines))
    texts = texts_of(suite, engines, queries)
    if request.base is not None and len(engines) > 1:
        raise UsageError("--base is the configuration of one engine; name one engine")
    traits: dict[str, EngineTraits] = {name: engine.traits for name, engine in engines.items()}
    asked = grid.values("scheduler")
    schedulers = {
        name: found for name, engine in engines.items() if (found := schedulers_of(engine, asked))
    }
    if asked:  # the engine's own first
        known = next(iter(schedulers.values()))
        grid = grid.having(Axis("scheduler", tuple(one for one in known if one in asked)))
    installations = {name: located(engine, host) for name, engine in engines.items()}
    for name, found in schedulers.items():
        for scheduler in asked or found[:1]:  # Atoll's may need more than the engine's own
            located(under(engines[name], scheduler), host)
    knobs: dict[str, str] = {}

    def enter(grid: Grid) -> tuple[tuple[Entrant, ...], tuple[str, ...]]:
        return make_entrants(
            machine,
            [traits[name] for name in names],
            [(plan, traits[plan.engine]) for plan in plans],
            grid,
            choices=request.choices,
            schedulers=schedulers,
            knobs=knobs,
        )

    if request.decompose:
        if plans:
            raise UsageError("a decomposition makes its own plans; name an engine, not a plan file")
        entrants, notes = make_chain(
            machine,
            traits[names[0]],
            next(iter(asked or schedulers.get(names[0], ())), None),
            request.instances,
            int(grid.fixed["streams"]) if "streams" in grid.fixed else None,
        )
    else:
        grid = without_twins(grid, host, JournalFolder())
        knobs = present_values(grid.axes, host, JournalFolder())
        entrants, notes = enter(grid)
        for entrant in entrants:
            if entrant.plan is not None:
                library_of(entrant.plan.malloc, host)  # raises
    if restored:
        notes = (*notes, restored)
    if request.base is not None:
        notes = (*notes, f"with the configuration of {os.path.abspath(request.base)}")
    notes = (*notes, *on_queries)
    for plan in plans:
        check_room(plan, traits[plan.engine])
    for entrant in entrants:
        if entrant.scheduler == "atoll" and entrant.plan and entrant.plan.task_threads:
            raise seats_itself(entrant.plan)
    try_out(grid.axes, knobs, host, JournalFolder())
    for name, engine in engines.items():
        if isinstance(engine, LoadingEngine) and not suite.tables:
            raise UsageError(
                f"{name} starts with an empty database; list the tables of {request.suite} as "
                f"Parquet files in its {MANIFEST}"
            )
    data = suite.ensure_data(request.scale_factor, host=host, progress=progress)
    work = work_of(suite, texts, queries, data, progress)
    for name, engine in engines.items():
        if isinstance(engine, LoadingEngine):
            engine.load(data.data, installations[name], host=host, progress=progress)
    header = RunHeader(
        run_id=secrets.token_hex(6),
        started_unix_s=time.time(),
        suite=suite.name,
        suite_checksum=data.suite_checksum,
        scale_factor=data.scale_factor,
        answers_known=not isinstance(suite, Own) or suite.knows_answers,
        queries=queries,
        blocks_asked=request.length.blocks_asked,
        warmups=request.warmups,
        query_limit_s=request.query_limit_s,
        machine=machine,
        machine_id=machine_id(machine),
        entrants=entrants,
        axes=tuple(AxisValues(name=axis.name, values=axis.values) for axis in grid.varied),
        chains=(tuple(entrant.label for entrant in entrants),) if request.decompose else (),
        notes=(*notes, *notes_on(work, queries)),
        fingerprint=fingerprint(
            host,
            machine,
            {name: configured(found, based[name][1]) for name, found in installations.items()},
            data_checksum=data.checksum,
        ),
        command=request.command,
    )

    def deployer(machine: Machine, host: Host, say: Callable[[str], None]) -> Deployer:
        trees = {name: tree for name, (_, tree) in based.items()}
        return Deployer(engines, machine, host, data.data, NAME, say, trees)

    return Job(
        header,
        work,
        deployer,
        request.length,
        changes=_changes(based, entrants, installations),
        sized=not _SIZES.isdisjoint(request.choices),
        knobs=knobs,
        budget=budget_for(
            grid,
            len(entrants),
            request.length.time_s,
            lambda one: [Cell(each.label, each.cells[0].values) for each in enter(one)[0]],
        ),
    )


def _changes(
    based: Mapping[str, tuple[Engine, UserTree | None]],
    entrants: Sequence[Entrant],
    installations: Mapping[str, Installation],
) -> list[str]:
    """All policies together: they differ in sizes and numbers."""
    lines: list[str] = []
    for name, (engine, tree) in based.items():
        plans = [one.plan for one in entrants if one.plan and one.engine == name]
        if tree is not None:
            lines += summary_before_start(engine, plans, installations[name], tree)
    return lines


def schedulers_of(engine: Engine, asked: Sequence[str]) -> tuple[Scheduler, ...]:
    """The schedulers that the engine has, its own first; empty if it has only one.

    Raises UsageError if it lacks one of `asked`.
    """
    name = engine.traits.name
    known = engine.schedulers if isinstance(engine, ScheduledEngine) else ()
    if asked and not known:
        raise UsageError(f"{name} has only its own scheduler; leave out --scheduler")
    if unknown := [one for one in asked if one not in known]:
        raise UsageError(f"{name} has no scheduler {unknown[0]!r}; it has {', '.join(known)}")
    return tuple(known)


def configured(found: Installation, tree: UserTree | None) -> Installation:
    """The installation with a digest of the user's configuration in its version.

    A run resumes only with the same configuration.
    """
    if tree is None:
        return found
    digest = hashlib.sha256(repr(sorted(tree.texts.items())).encode()).hexdigest()
    return replace(found, version=f"{found.version} with configuration {digest[:12]}")


def _selected(suite: Suite, asked: str | None) -> tuple[str, ...]:
    """Raises UsageError."""
    if isinstance(suite, Own):
        return choose(asked, suite.query_names)
    return select_queries(asked, suite.query_names)
