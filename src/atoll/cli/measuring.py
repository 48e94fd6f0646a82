"""The options and the output that bench, replay, decompose and demo share. Not a command."""

from __future__ import annotations

import functools
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click

from atoll.bench.job import BenchRequest, Job, make_job, require_blocks
from atoll.bench.results import read_results, require_output
from atoll.bench.runner import Tick, WrongAnswer
from atoll.cli.options import base_option, machine_for
from atoll.errors import UsageError
from atoll.host.local import LocalHost
from atoll.plan.request import Choices
from atoll.report.bench.progress import bench_progress, preparation
from atoll.store.paths import state_dir
from atoll.suites import registry as suites
from atoll.supervise.interrupts import terminate_is_interrupt

blocks_option = click.option(
    "--blocks",
    metavar="N",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Number of blocks (each runs every entrant once). Intervals need at least 5.",
)
query_limit_option = click.option(
    "--query-limit",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    default=300.0,
    show_default=True,
    help="A query that takes longer fails, and its block with it.",
)
output_option = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Results file (default: a new one in Atoll's state folder, whose path is printed).",
)
resume_option = click.option(
    "--resume", is_flag=True, help="Continue the file of -o after its last whole block."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")


_SUITE_OPTIONS = (
    base_option,
    click.option(
        "--suite", metavar="NAME", default="tpch", show_default=True, help="Queries and their data."
    ),
    click.option(
        "--sf",
        "scale_factor",
        metavar="F",
        type=float,
        default=0.1,
        show_default=True,
        help="Scale factor of the data.",
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
    blocks_option,
    query_limit_option,
    output_option,
    resume_option,
    json_option,
)


@dataclass(frozen=True, slots=True)
class SuiteOptions:
    """The options that bench and decompose share."""

    base: str | None
    suite: str
    scale_factor: float
    queries: str | None
    streams: int | None
    blocks: int
    query_limit: float
    output: Path | None
    resume: bool
    as_json: bool


def suite_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the shared options, which it receives as `options`."""

    @functools.wraps(command)
    def wrapped(**given: Any) -> None:
        shared = {field.name: given.pop(field.name) for field in fields(SuiteOptions)}
        command(options=SuiteOptions(**shared), **given)

    for option in reversed(_SUITE_OPTIONS):
        wrapped = option(wrapped)
    return wrapped


def measure_suite(
    options: SuiteOptions,
    targets: tuple[str, ...],
    *,
    policies: tuple[str, ...] | None = None,
    schedulers: tuple[str, ...] | None = None,
    choices: Choices | None = None,
    decompose: bool = False,
    instances: int | None = None,
) -> None:
    """Measure the suite on this machine and print the summary. See `BenchRequest`."""
    if options.suite not in suites.names():
        raise UsageError(
            f"--suite {options.suite}: unknown suite (known: {', '.join(suites.names())}); to run "
            "your own SQL, use 'atoll replay' with a cluster that has the data"
        )
    prepare_output(options.output, options.resume, options.scale_factor)
    host = LocalHost()
    with terminate_is_interrupt():
        machine = machine_for()
        request = BenchRequest(
            targets=targets,
            suite=options.suite,
            scale_factor=options.scale_factor,
            policies=policies,
            schedulers=schedulers,
            choices=choices or {},
            decompose=decompose,
            instances=instances,
            streams=options.streams,
            base=options.base,
            queries=options.queries,
            blocks=options.blocks,
            query_limit_s=options.query_limit,
            command=shlex.join(["atoll", *sys.argv[1:]]),
        )
        with preparation() as progress:
            job = make_job(request, host=host, machine=machine, progress=progress)
        measure(job, options.output, host, resume=options.resume, as_json=options.as_json)


def prepare_output(output: Path | None, resume: bool, scale_factor: float | None) -> None:
    """Raises what is wrong with the results file before minutes are spent on data."""
    if output is not None:
        require_output(output, resume=resume, scale_factor=scale_factor)
    elif resume:
        raise UsageError("--resume continues a results file; name it with -o")


def measure(job: Job, output: Path | None, host: LocalHost, *, resume: bool, as_json: bool) -> None:
    """Run the job and print its summary. Raises EngineFailed if an entrant finished no block."""
    from rich.console import Console

    from atoll.bench.analysis import summarise
    from atoll.report.bench.text import bench_text

    path = output or state_dir("results") / f"{job.header.run_id}.jsonl"
    try:
        run_with_progress(job, path, host, resume=resume)
    finally:
        if path.exists():
            print(f"results: {path}", file=sys.stderr)
    summary = summarise(read_results(path))
    if as_json:
        print(summary.model_dump_json(indent=2))
    else:
        Console(highlight=False).print(bench_text(summary))
    require_blocks(summary)


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
    with bench_progress(len(job.header.entrants), job.header.blocks_asked) as progress:

        def tick(one: Tick) -> None:
            progress.tick(one)
            watch(one)

        for note in job.header.notes:
            progress.note(note)
        try:
            job.run(path, host=host, resume=resume, tick=tick, say=progress.say)
        except WrongAnswer as fault:
            progress.note(fault.detail)
            raise
