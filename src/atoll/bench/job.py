"""A bench put together: machine, engines, data, entrants and fingerprint; then run.

The one way in for the command line. Everything that can be wrong is found here, before the
first deployment is started: an engine that is not installed, a policy that the machine cannot
hold, a results file that cannot be continued.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from atoll.bench import pagecache
from atoll.bench.deploy import Deployer
from atoll.bench.entrants import line_up, line_up_chains
from atoll.bench.fingerprint import fingerprint
from atoll.bench.results import ResultsWriter
from atoll.bench.runner import Bench, Tick
from atoll.engines import registry
from atoll.engines.api import (
    Engine,
    Installation,
    LoadingEngine,
    Progress,
    QueryResult,
    ScheduledEngine,
)
from atoll.engines.calls import located, under
from atoll.engines.userconfig.apply import with_user_tree
from atoll.engines.userconfig.tree import UserTree
from atoll.errors import EngineFailed, UsageError
from atoll.host.api import Host
from atoll.plan import machine_id
from atoll.plan.capacity import check_room
from atoll.schema.base import parse
from atoll.schema.machine import Machine
from atoll.schema.plan import EngineTraits, Plan
from atoll.schema.results import RunHeader, Scheduler
from atoll.schema.summary import BenchSummary
from atoll.suites import registry as suites
from atoll.suites.base import Answer, DataSet, Suite
from atoll.suites.compare import compare
from atoll.suites.selection import select_queries

# The name that the bench's deployments go by in `atoll ps`; one at a time, so one is enough,
# and a second bench beside this one is refused: the two would disturb each other.
NAME = "bench"


@dataclass(frozen=True, slots=True)
class Wish:
    """What the user asks for."""

    targets: tuple[str, ...]  # engines, and paths of plan files
    suite: str
    scale_factor: float
    # Under which policies an engine is measured; None: each that differs on this machine.
    policies: Callable[[str], tuple[str, ...] | None]
    queries: str | None  # '1,3-5'
    blocks: int | None  # None: as many as fit the time box
    query_limit_s: float
    command: str  # as it was typed, for the record
    schedulers: tuple[str, ...] | None = None  # None: each engine's own
    decompose: bool = False  # the steps from WIM to bound instances, instead of policies
    instances: int | None = None  # to decompose into; None: one per NUMA node
    streams: int | None = None  # queries at a time; None: as many as keep a deployment busy
    base: str | None = None  # folder of the user's own configuration; None: Atoll's


@dataclass(frozen=True, slots=True)
class SuiteWork:
    """See `atoll.bench.runner.Work`. The right answers are known before the first pass."""

    texts: Mapping[str, Mapping[str, str]]  # engine -> query -> SQL
    answers: Mapping[str, Answer]
    files: tuple[str, ...]
    differing: Literal["wrong"] = "wrong"

    def sql(self, engine: str, query: str) -> str:
        return self.texts[engine][query]

    def check(self, query: str, result: QueryResult) -> str | None:
        return compare(result, self.answers[query])

    def digest(self, query: str, result: QueryResult) -> str:
        return ""

    def drop_from_cache(self) -> float | None:
        try:
            return pagecache.drop(self.files)
        except OSError as fault:
            raise EngineFailed(
                f"{fault.filename}: the data cannot be read ({fault.strerror}); "
                "begin again, and it is made anew"
            ) from None


@dataclass(frozen=True, slots=True)
class Job:
    """A bench that is ready to run."""

    header: RunHeader
    engines: Mapping[str, Engine]
    data: DataSet
    work: SuiteWork

    def run(
        self,
        path: Path,
        *,
        host: Host,
        resume: bool,
        tick: Callable[[Tick], None],
        say: Callable[[str], None],
        time_box_s: float | None = None,
    ) -> None:
        """Measure into `path`. Raises as `atoll.bench.runner.Bench.run` and the writer do."""
        header, first = self.header, 0
        if resume:
            writer, header, first = ResultsWriter.resume(path, header)
        else:
            writer = ResultsWriter.create(path, header)
        with writer:
            deploy = Deployer(
                engines=self.engines,
                machine=header.machine,
                host=host,
                data=self.data.data,
                name=NAME,
                progress=say,
            )
            Bench(header, host, deploy, self.work, writer.append, tick).run(
                first_block=first, time_box_s=time_box_s
            )


def make_job(wish: Wish, *, host: Host, machine: Machine, progress: Progress) -> Job:
    """Raises UsageError, EngineFailed (not installed) or DownloadFailed (no data)."""
    suite = suites.get(wish.suite)
    queries = select_queries(wish.queries, suite.query_names)
    names = [target for target in wish.targets if not is_path(target)]
    plans = [read_plan(target) for target in wish.targets if is_path(target)]
    based = {
        name: with_user_tree(registry.get(name), wish.base, host)
        for name in (*names, *(plan.engine for plan in plans))
    }
    engines = {name: engine for name, (engine, _) in based.items()}
    if wish.base is not None and len(engines) > 1:
        raise UsageError("--base is the configuration of one engine; name one")
    traits: dict[str, EngineTraits] = {name: engine.traits for name, engine in engines.items()}
    schedulers = {
        name: found
        for name, engine in engines.items()
        if (found := schedulers_of(engine, wish.schedulers))
    }
    installations = {name: located(engine, host) for name, engine in engines.items()}
    for name, found in schedulers.items():
        for scheduler in found:  # Atoll's may want more than the engine's own
            located(under(engines[name], scheduler), host)
    if wish.decompose:
        _require_decomposable(wish, plans, schedulers)
        entrants, notes = line_up_chains(
            machine, [traits[name] for name in names], schedulers, wish.instances, wish.streams
        )
    else:
        entrants, notes = line_up(
            machine,
            [(traits[name], wish.policies(name)) for name in names],
            [(plan, traits[plan.engine]) for plan in plans],
            schedulers,
            wish.streams,
        )
    if wish.base is not None:
        notes = (*notes, f"with the configuration of {os.path.abspath(wish.base)}")
    for plan in plans:
        check_room(plan, traits[plan.engine])
    data = suite.ensure_data(wish.scale_factor, host=host, progress=progress)
    for name, engine in engines.items():
        if isinstance(engine, LoadingEngine):
            engine.load(data.data, installations[name], host=host, progress=progress)
    header = RunHeader(
        run_id=secrets.token_hex(6),
        started_unix_s=time.time(),
        suite=suite.name,
        scale_factor=data.scale_factor,
        queries=queries,
        blocks_asked=wish.blocks,
        query_limit_s=wish.query_limit_s,
        machine=machine,
        machine_id=machine_id(machine),
        entrants=entrants,
        chains=tuple(
            tuple(entrant.label for entrant in entrants if entrant.engine == name)
            for name in (names if wish.decompose else ())
        ),
        notes=notes,
        fingerprint=fingerprint(
            host,
            machine,
            {name: configured(found, based[name][1]) for name, found in installations.items()},
            data_checksum=data.checksum,
        ),
        command=wish.command,
    )
    return Job(header, engines, data, _work(suite, engines, queries, data, progress))


def schedulers_of(engine: Engine, asked: Sequence[str] | None) -> tuple[Scheduler, ...]:
    """Which schedulers to measure the engine under, its own first; empty: it has but its own.

    `asked` None: its own. Raises UsageError for what the engine does not have.
    """
    name = engine.traits.name
    known = engine.schedulers if isinstance(engine, ScheduledEngine) else ()
    if asked is None:
        return known[:1]
    if not known:
        raise UsageError(f"{name} has no scheduler but its own; leave --scheduler out for it")
    if unknown := [one for one in asked if one not in known]:
        raise UsageError(f"{name} has no scheduler {unknown[0]!r}; it has {', '.join(known)}")
    return tuple(one for one in known if one in asked)


def configured(found: Installation, tree: UserTree | None) -> Installation:
    """With what tells one configuration of the user's from another: a run goes on with the same."""
    if tree is None:
        return found
    digest = hashlib.sha256(repr(sorted(tree.texts.items())).encode()).hexdigest()
    return replace(found, version=f"{found.version} with configuration {digest[:12]}")


def _require_decomposable(
    wish: Wish, plans: Sequence[Plan], schedulers: Mapping[str, Sequence[Scheduler]]
) -> None:
    """Raises UsageError: the chain is made here, of whole engines under one scheduler."""
    if plans:
        raise UsageError("--decompose makes its own plans; name engines, not plan files")
    if len(set(wish.targets)) < len(wish.targets):
        raise UsageError("an engine is named twice; name it once")
    if any(len(found) > 1 for found in schedulers.values()):
        raise UsageError("--decompose compares placements; name one --scheduler")


def is_path(target: str) -> bool:
    """A path ends in .json or holds a slash; everything else is an engine's name."""
    return target.endswith(".json") or os.sep in target


def read_plan(path: str) -> Plan:
    try:
        text = Path(path).read_bytes()
    except OSError as fault:
        raise UsageError(f"{path}: cannot be read ({fault.strerror})") from None
    return parse(Plan, text, where=path)


def require_blocks(summary: BenchSummary) -> None:
    """Raises EngineFailed if an entrant has no block to show."""
    without = [entrant.label for entrant in summary.entrants if not entrant.blocks_done]
    if without:
        raise EngineFailed(f"no block was finished by {', '.join(without)}; see the errors above")


def _work(
    suite: Suite,
    engines: Mapping[str, Engine],
    queries: Sequence[str],
    data: DataSet,
    progress: Progress,
) -> SuiteWork:
    answers: dict[str, Answer] = {}
    for number, query in enumerate(queries):
        progress(f"right answers: {query}", number / len(queries))
        answers[query] = suite.expected(query, data)
    return SuiteWork(
        texts={name: suite.queries(name) for name in engines},
        answers=answers,
        files=tuple(str(file) for file in data.files.values()),
    )
