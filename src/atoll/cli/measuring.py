"""The options and the output that bench, replay, decompose and demo share. Not a command."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import click

from atoll.bench.axes import Grid, make_axis, make_grid
from atoll.bench.job import BenchRequest, Job, Length, make_job
from atoll.bench.outcome import require_answers, require_pairs, require_speed
from atoll.bench.results import read_results, require_output
from atoll.bench.runner import Tick, WrongAnswer
from atoll.cli.options import FiniteRange, Span, base_option, gathered, machine_for
from atoll.cli.terminal import print_changes, show
from atoll.errors import UsageError
from atoll.host.local import LocalHost
from atoll.plan.request import Choices
from atoll.report.bench.progress import bench_progress, preparation
from atoll.schema.machine import Machine
from atoll.store.paths import state_dir
from atoll.suites import registry as suites
from atoll.supervise.interrupts import terminate_is_interrupt

_QUERY_LIMIT_S = 300.0
_RUN_OPTIONS = (
    click.option(
        "--blocks",
        metavar="N",
        type=click.IntRange(min=1),
        help="Number of blocks in the file; each measures everything once (default: 5; after "
        "--resume the number of the file). Intervals need at least 5.",
    ),
    click.option(
        "--within",
        "--minutes",
        "within_s",
        metavar="TIME",
        type=Span(),
        help="Measure as many whole blocks as fit into this time, such as 2h, 90m or 45s (a plain "
        "number: minutes), and at least one. A grid (--axis) needs time for 5 blocks.",
    ),
    click.option(
        "--warmup",
        metavar="N",
        type=click.IntRange(min=0),
        default=1,
        show_default=True,
        help="Number of warm-up passes before each measured pass.",
    ),
    click.option(
        "--query-limit",
        metavar="SECONDS",
        type=FiniteRange(min=0, min_open=True),
        default=_QUERY_LIMIT_S,
        show_default=True,
        help="A query that takes longer is cancelled and left out.",
    ),
    click.option(
        "-o",
        "--output",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Results file (default: a new one in Atoll's state folder, whose path is printed).",
    ),
    click.option(
        "--resume", is_flag=True, help="Continue the file of -o after its last whole block."
    ),
    click.option(
        "--fail-if-slower",
        metavar="RATIO",
        type=FiniteRange(min=1),
        help="End with exit code 1 if something certainly takes more than RATIO times as long as "
        "its baseline, for example 1.05.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON."),
)
_SCALE_FACTOR = 0.1
_SUITE_OPTIONS = (
    base_option,
    click.option(
        "--suite",
        metavar="NAME|DIR",
        default="tpch",
        show_default=True,
        help=f"Queries and their data: {', '.join(suites.names())}, or a folder of your own SQL.",
    ),
    click.option(
        "--sf",
        "scale_factor",
        metavar="F",
        type=float,
        help=f"Scale factor of the data (default: {_SCALE_FACTOR:g}).",
    ),
    click.option(
        "--queries", metavar="LIST", help="Queries to run, for example 1,3-5 (default: all)."
    ),
    click.option(
        "--streams",
        metavar="N",
        type=click.IntRange(min=1),
        help="Number of concurrent queries (default: 1; one per server if there are several; one "
        "per thread if a query runs on one thread).",
    ),
)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options that bench, decompose and replay share."""

    blocks: int | None
    within_s: float | None
    warmup: int
    query_limit: float
    output: Path | None
    resume: bool
    fail_if_slower: float | None
    as_json: bool

    @property
    def length(self) -> Length:
        """Raises UsageError."""
        if self.blocks is not None and self.within_s is not None:
            raise UsageError("give either --blocks or --within, not both")
        return Length(self.blocks, self.within_s)


@dataclass(frozen=True, slots=True)
class SuiteOptions:
    """The options that bench, decompose and tune share."""

    base: str | None
    suite: str
    scale_factor: float | None  # None: not asked for
    queries: str | None
    streams: int | None


def run_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a run, which it receives as `run`."""
    return gathered("run", RunOptions, _RUN_OPTIONS)(command)


def suite_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a suite, which it receives as `options`."""
    return gathered("options", SuiteOptions, _SUITE_OPTIONS)(command)


def suite_request(options: SuiteOptions, targets: tuple[str, ...], grid: Grid) -> BenchRequest:
    """What the options ask for, on the grid; of default length. Raises UsageError."""
    if options.streams is not None:
        streams = make_axis("streams", [str(options.streams)], option="--streams")
        grid = make_grid([*grid.axes, streams], product=grid.product)
    if not is_named(options.suite) and options.scale_factor is not None:
        raise UsageError(
            f"--sf: the tables of {options.suite} are your own and have no scale factor; leave it "
            "out"
        )
    return BenchRequest(
        targets=targets,
        suite=options.suite,
        scale_factor=_SCALE_FACTOR if options.scale_factor is None else options.scale_factor,
        grid=grid,
        queries=options.queries,
        length=Length(),
        query_limit_s=_QUERY_LIMIT_S,
        base=options.base,
        command=shlex.join(["atoll", *sys.argv[1:]]),
    )


def is_named(suite: str) -> bool:
    """A suite of Atoll, not a folder."""
    return suite.partition(":")[0] in suites.names()


def measure_suite(
    options: SuiteOptions,
    run: RunOptions,
    targets: tuple[str, ...],
    *,
    grid: Grid,
    machine: Machine | None = None,
    choices: Choices | None = None,
    decompose: bool = False,
    instances: int | None = None,
    change: Callable[[Job], Job] | None = None,
) -> None:
    """Measure the suite on this machine (`machine`, if it was read already) and print the summary.

    `change`: of the job, before it runs. For the rest see `BenchRequest`.
    """
    suites.get(options.suite)  # raises what is wrong with it, before anything else is done
    request = replace(
        suite_request(options, targets, grid),
        choices=choices or {},
        decompose=decompose,
        instances=instances,
        resumes=run.output if run.resume else None,
        length=run.length,
        warmups=run.warmup,
        query_limit_s=run.query_limit,
    )
    prepare_output(run, request.scale_factor if is_named(options.suite) else None)
    host = LocalHost()
    with terminate_is_interrupt():
        machine = machine or machine_for()
        with preparation() as progress:
            job = make_job(request, host=host, machine=machine, progress=progress)
            job = change(job) if change else job
        print_changes(job.changes, job.header.entrants[0].engine, options.base)
        measure(job, run, host)


def prepare_output(run: RunOptions, scale_factor: float | None) -> None:
    """Raises what is wrong with the results file before minutes are spent on data."""
    if run.output is not None:
        require_output(run.output, resume=run.resume, scale_factor=scale_factor)
    elif run.resume:
        raise UsageError("--resume continues a results file; name it with -o")


def measure(job: Job, run: RunOptions, host: LocalHost) -> None:
    """Run the job and print its summary. Raises as `atoll.bench.outcome` does, and of a
    KeyboardInterrupt how to go on."""
    from atoll.bench.analysis import summarise
    from atoll.report.bench.text import bench_text

    if run.fail_if_slower is not None:
        require_pairs(job.header)
    path = run.output or state_dir("results") / f"{job.header.run_id}.jsonl"
    try:
        run_with_progress(job, path, host, resume=run.resume)
    except KeyboardInterrupt:
        if not path.exists():
            raise
        same = f"repeat the command with -o {shlex.quote(str(path))} --resume"
        raise KeyboardInterrupt(f"to go on, {same}") from None
    finally:
        if run.output is None and path.exists():
            print(f"results: {path}", file=sys.stderr)
    summary = summarise(read_results(path))
    if run.as_json:
        print(summary.model_dump_json(indent=2))
    else:
        show(bench_text(summary))
    if run.fail_if_slower is not None:
        require_speed(summary, run.fail_if_slower)
    require_answers(summary)


def run_with_progress(
    job: Job,
    path: Path,
    host: LocalHost,
    *,
    resume: bool,
    watch: Callable[[Tick], None] = lambda tick: None,
) -> None:
    """Run the job into `path`, with its notes and its progress on stderr.

    `watch` also receives each tick; an AtollError that it raises stops the job.
    """
    with bench_progress(len(job.header.entrants)) as progress:

        def tick(one: Tick) -> None:
            progress.tick(one)
            watch(one)

        for note in job.header.notes:
            progress.note(note)
        try:
            job.run(path, host=host, resume=resume, tick=tick, say=progress.say, note=progress.note)
        except WrongAnswer as fault:
            progress.note(fault.detail)
            raise
