"""`atoll tune`: find the settings that make a command or an engine better, by running it."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path

import click
from click.core import ParameterSource

from atoll.advice.reading import loadable, read_limits, read_situation, release
from atoll.advice.situation import Situation
from atoll.bench import switches
from atoll.bench.axes import Axis, Grid
from atoll.bench.job import make_job
from atoll.cli.advise import subject_of
from atoll.cli.measuring import SuiteOptions, suite_options, suite_request
from atoll.cli.options import Span, machine_for
from atoll.cli.terminal import has_colour, progress, width
from atoll.engines import registry
from atoll.errors import UsageError
from atoll.host.local import LocalHost
from atoll.knobs.journal import JournalFolder
from atoll.report.bench.progress import preparation
from atoll.report.terminal.tuning import standing_text, tuning_text
from atoll.schema.advice import Workload
from atoll.schema.base import Record
from atoll.schema.machine import Machine
from atoll.schema.span import span
from atoll.schema.text import plural
from atoll.schema.tuning import LeftOut, Tuning
from atoll.store.document import write_document
from atoll.store.paths import state_dir, state_path
from atoll.supervise.interrupts import terminate_is_interrupt
from atoll.tune import documents, search
from atoll.tune.conduct import Work, conduct
from atoll.tune.engine_runs import EngineRuns, plan_of
from atoll.tune.factors import Recipe, factors, recipe
from atoll.tune.metric import Metric, parse_metric, parse_pass_metric
from atoll.tune.runs import EMPTY, CommandRuns, Runs, stdin_path


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog="Examples: atoll tune -- ./prog --size 3; atoll tune --time 2m --factors malloc,thp "
    "-o plan.json -- ./prog; atoll tune --metric 'tps = ([0-9.]+)' -- ./bench; "
    "atoll tune --engine duckdb --queries 1,18 --sf 1",
)
@click.option(
    "--time",
    "time_s",
    type=Span(),
    metavar="SPAN",
    default="10m",
    show_default=True,
    help="Stop after this time.",
)
@click.option(
    "--factors",
    metavar="NAME,...",
    help="Vary only these of malloc, placement, memory, thp, autonuma, smt, workers.",
)
@click.option(
    "--metric",
    default="time",
    show_default=True,
    metavar="METRIC",
    help="time, rss (peak memory), or a REGEX whose first group is a number in the output: more "
    "is better, and less with p99=REGEX or time=REGEX. An engine has time, throughput and p99.",
)
@click.option("--engine", metavar="ENGINE", help="Tune an engine that runs a suite.")
@suite_options
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write a plan for 'atoll apply --plan', or with --engine for 'atoll up'.",
)
@click.option("--json", "as_json", is_flag=True, help="Print an atoll/tuning document.")
@click.argument("command", nargs=-1, metavar="[-- CMD...]", type=click.UNPROCESSED)
def command(
    options: SuiteOptions,
    time_s: float,
    factors: str | None,
    metric: str,
    engine: str | None,
    output: str | None,
    as_json: bool,
    command: tuple[str, ...],
) -> None:
    """Run CMD again and again with other mallocs, threads' places, huge pages, and find what pays.

    Each setting runs beside the command as it is now, in blocks. Values that seem worse are
    dropped; what is left is judged on fresh blocks. 'Leave it' is a result too. Switches of the
    whole system are turned only if --factors names them, and are always restored.

    With --engine, each run starts the engine, warms it up, and measures a pass of the suite.

    Exit code 0: decided, also to leave it. 1: CMD fails too often on the way. 2: CMD cannot be
    measured.
    """
    if bool(command) == (engine is not None):
        raise UsageError("give either a command behind -- or an engine with --engine")
    if command and (given := _suite_options_given()):
        raise UsageError(f"{given[0]}: is for --engine; leave it out, or tune an engine")
    if output is not None:  # before the work
        _require_place(Path(output))
    names = _names(factors)
    with terminate_is_interrupt():
        # First: what is read next is what is compared.
        restored = switches.restore(LocalHost(), JournalFolder())
        machine = machine_for()
        if engine is None:
            target = _of_command(command, names, metric, time_s, machine)
        else:
            target = _of_engine(engine, options, names, metric, time_s, machine)
        found = _tuned(target, tuple(filter(None, [restored, target.caution])))
    _give(found, target.plan, output, as_json=as_json)


def _give(
    found: Tuning, plan: Callable[[Tuning], Record], output: str | None, *, as_json: bool
) -> None:
    """Print what was found, and write its plan; without `output` only a plan that must be kept."""
    path = output
    if path is None and found.needs_plan:
        stamp = time.strftime("%Y%m%d-%H%M%S")
        path = str(state_path("plans") / f"{found.command[2]}-{stamp}.json")
    verb = ("up",) if found.suite else ("apply", "--plan")
    base = found.command[3:] if found.suite else ()
    how = shlex.join(["atoll", *verb, str(path), *base])
    if as_json:
        print(found.model_dump_json(indent=1))
    else:
        said = tuning_text(found, width=min(width(), 100), colour=has_colour(), follow=how)
        print(said, end="")
    if path is None:
        return
    if output is None:
        state_dir("plans")
    write_document(path, plan(found))
    if as_json and output is None:
        print(f"atoll: plan: {path}", file=sys.stderr)
    elif found.best and not as_json and not found.needs_plan:
        print(f"Plan: {how}")


def _suite_options_given() -> list[str]:
    names, context = {one.name for one in fields(SuiteOptions)}, click.get_current_context()
    return [
        option.opts[0]
        for option in context.command.params
        if option.name in names
        and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE
    ]


def _require_place(output: Path) -> None:
    """Raises UsageError."""
    if output.is_dir():
        raise UsageError(f"{output}: is a folder; name a file")
    if not output.absolute().parent.is_dir():
        raise UsageError(f"{output}: its folder does not exist; create it first")


def _names(factors: str | None) -> list[str]:
    if factors is None:
        return []
    names = [name.strip() for name in factors.split(",")]
    if not all(names):
        raise UsageError("--factors: give names with commas between, such as malloc,thp")
    return names


@dataclass(frozen=True, slots=True)
class _Target:
    """What is tuned, and the plan that what was found makes."""

    command: tuple[str, ...]
    suite: str
    situation: Situation
    work: Work
    plan: Callable[[Tuning], Record]
    caution: str = ""


def _of_command(
    command: tuple[str, ...], names: list[str], metric: str, time_s: float, machine: Machine
) -> _Target:
    host, read = LocalHost(), parse_metric(metric)
    stdin, caution = stdin_path()
    situation, mallocs = _situation(machine, command=command)

    def start(knobs_folder: str) -> Runs:
        return CommandRuns(host, command, stdin=stdin, knobs_folder=knobs_folder)

    hint = " (its stdin is empty; '< FILE' gives it one)" if stdin == EMPTY else ""
    work = _work(shlex.join(command), read, names, situation, time_s, start, hint)

    def plan(found: Tuning) -> Record:
        return documents.plan(found, work.factors, situation, recipe=work.recipe, mallocs=mallocs)

    return _Target(command, "", situation, work, plan, caution)


def _of_engine(
    engine: str,
    options: SuiteOptions,
    names: list[str],
    metric: str,
    time_s: float,
    machine: Machine,
) -> _Target:
    host, read, traits = LocalHost(), parse_pass_metric(metric), registry.get(engine).traits
    situation, _ = _situation(machine, engine=engine)
    request = suite_request(options, (engine,), Grid((Axis("policy", ("auto",)),)))
    with preparation() as say:
        job = make_job(request, host=host, machine=machine, progress=say)
    header = job.header
    entrant = header.entrants[-1]
    read.require_queries(len(header.queries) * entrant.streams)
    size = "" if header.scale_factor is None else f" SF {header.scale_factor:g}"
    streams = plural(entrant.streams, "stream")
    suite = f"{header.suite}{size}, {plural(len(header.queries), 'query')} in {streams}"

    def start(knobs_folder: str) -> Runs:
        return EngineRuns(host, job, traits, knobs_folder=knobs_folder)

    hint = ": more queries, or a larger --sf"
    work = _work(f"{engine}, {suite}", read, names, situation, time_s, start, hint)

    def plan(found: Tuning) -> Record:
        return plan_of(work.recipe(tuple(sorted(found.best.items()))), job, traits)

    base = ("--base", options.base) if options.base else ()
    return _Target(("atoll", "up", engine, *base), suite, situation, work, plan)


def _situation(
    machine: Machine, *, engine: str | None = None, command: tuple[str, ...] = ()
) -> tuple[Situation, dict[str, str]]:
    host = LocalHost()
    mallocs, limits = loadable(host), read_limits(host, machine)
    subject = subject_of(host, machine, mallocs, engine=engine, pid=None, command=command)
    situation = read_situation(
        host, machine, subject, Workload.UNKNOWN, mallocs=mallocs, limits=limits
    )
    return situation, mallocs


def _work(
    name: str,
    metric: Metric,
    names: list[str],
    situation: Situation,
    time_s: float,
    start: Callable[[str], Runs],
    if_short: str,
) -> Work:
    varied = factors(names, situation)

    def made(setting: search.Setting) -> Recipe:
        return recipe(setting, varied, situation)

    return Work(name, metric, varied, made, time_s, start, if_short)


def _tuned(target: _Target, cautions: tuple[str, ...]) -> Tuning:
    host, work = LocalHost(), target.work
    with progress(f"tuning for at most {span(work.time_s)}") as say:
        last = ""

        def watch(block: search.Block, number: int, left_s: float) -> None:
            nonlocal last
            if sys.stderr.isatty() or block.doing != last:  # in a file: one line a stage
                say(standing_text(block, number, left_s))
            last = block.doing

        result = conduct(host, work, JournalFolder(), watch)
    without = [LeftOut(what=one.name, why=one.why_none) for one in work.factors if one.why_none]
    return documents.tuning(
        result.outcome,
        command=target.command,
        suite=target.suite,
        metric=work.metric,
        situation=target.situation,
        kernel=release(host),
        best=work.recipe(result.outcome.best),
        seconds=result.seconds,
        left_out=[*without, *result.left_out],
        cautions=[*cautions, *result.cautions],
        runs=result.runs,
    )
