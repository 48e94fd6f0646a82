"""`atoll bench`: measure policies against each other, block by block."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click
from click.core import ParameterSource
from rich.console import Console

from atoll.bench.address import parse_address
from atoll.bench.analysis import summarise
from atoll.bench.job import Job, Wish, is_path, make_job, require_blocks
from atoll.bench.replay import ReplayJob, ReplayWish, make_replay
from atoll.bench.results import read_results, require_output
from atoll.bench.runner import WrongAnswer
from atoll.cli.machine import machine_for
from atoll.cli.planned import base_option
from atoll.errors import UsageError
from atoll.host import arguments
from atoll.host.local import LocalHost
from atoll.report.bench.progress import bench_progress, preparation
from atoll.report.bench.text import bench_text
from atoll.store.paths import state_dir
from atoll.suites import registry as suites
from atoll.supervise.interrupts import terminate_is_interrupt


@click.command(
    epilog="Example: atoll bench spark --policies wim,wic --sf 0.1 --queries 1,6,18 -o r.jsonl, "
    "then atoll report r.jsonl -o report.html"
)
@click.argument("targets", metavar="ENGINE|PLAN...", nargs=-1, required=True)
@click.option(
    "--suite",
    metavar="NAME|DIR",
    default="tpch",
    show_default=True,
    help="With --url a folder of .sql files, a query each.",
)
@click.option(
    "--url",
    "urls",
    metavar="URL",
    multiple=True,
    envvar="ATOLL_URL",
    help="Replay the SQL of --suite DIR against a cluster that runs already; nothing is started. "
    "Given twice, the second is compared with the first. With a password in it, rather set "
    "ATOLL_URL, which is read where --suite is a folder.",
)
@click.option(
    "--streams",
    metavar="N",
    type=click.IntRange(min=1),
    help="Number of queries to run at the same time (default: 1; one per server if there are "
    "several; one per thread if a query runs on one thread).",
)
@click.option(
    "--decompose",
    is_flag=True,
    help="Instead of policies, measure the steps from wim to bound instances: one JVM with "
    "as many GC threads as the instances have in sum, where that differs; spmwin; win with first "
    "touch; win bound.",
)
@click.option(
    "-n",
    "instances",
    metavar="N",
    type=click.IntRange(min=1),
    help="With --decompose: how many instances (default: one per NUMA node).",
)
@click.option(
    "--sf",
    metavar="F",
    type=float,
    default=0.1,
    show_default=True,
    help="Scale factor of the data.",
)
@click.option(
    "--policies",
    metavar="P,P,...",
    help="wim,win,wicp,wicp-mixed,wic,spmwin,auto (default: each of wim, win, wicp, wic that "
    "differs on this machine). WIM, the baseline, is always measured.",
)
@click.option(
    "--scheduler",
    "schedulers",
    metavar="S,S",
    help="Which scheduler runs the engine's tasks: its own (default) or atoll. Two names, with a "
    "comma between them, compare both. Only for engines with several schedulers.",
)
@base_option
@click.option(
    "--blocks",
    metavar="N",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Every policy once is a block; below 5 there are no intervals.",
)
@click.option("--queries", metavar="LIST", help="Which queries, as in 1,3-5 (default: all).")
@click.option(
    "--query-limit",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    default=300.0,
    show_default=True,
    help="After this time a query, and with it its block, has failed.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Results file (default: a new one in Atoll's state folder, printed at the end).",
)
@click.option("--resume", is_flag=True, help="Go on with -o after its last whole block.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@click.pass_context
def command(
    context: click.Context,
    targets: tuple[str, ...],
    suite: str,
    urls: tuple[str, ...],
    streams: int | None,
    decompose: bool,
    instances: int | None,
    sf: float,
    policies: str | None,
    schedulers: str | None,
    base: str | None,
    blocks: int,
    queries: str | None,
    query_limit: float,
    output: Path | None,
    resume: bool,
    as_json: bool,
) -> None:
    """Measure ENGINEs under several policies, or PLANs from files, on this machine.

    A block brings every policy up once, warms it up, runs one pass and takes it down; the order
    is reversed from block to block. Answers are checked in every pass. Results are appended as
    they come, so that nothing is lost, whatever happens.
    """
    if resume and output is None:
        raise UsageError("--resume goes on with a results file; name it with -o")
    if suite in suites.names() and _source(context, "urls") is ParameterSource.ENVIRONMENT:
        urls = ()  # whatever is set in somebody's shell, a suite of Atoll's is measured as ever
    if output is not None:
        require_output(output, resume=resume, scale_factor=None if urls else sf)
    for url in urls:
        for secret in parse_address(url, {}).secrets:
            arguments.hide(secret)
    _refuse_idle(context, urls=bool(urls), decompose=decompose)
    host = LocalHost()
    job: Job | ReplayJob
    with terminate_is_interrupt():
        machine = machine_for()
        if urls:
            if len(targets) > 1 or is_path(targets[0]):
                raise UsageError("--url: name one engine, whose cluster it is")
            replay = ReplayWish(
                engine=targets[0],
                urls=urls,
                suite=suite,
                queries=queries,
                streams=streams or 1,
                blocks=blocks,
                query_limit_s=query_limit,
                command=("atoll", *sys.argv[1:]),
            )
            job = make_replay(replay, host=host, machine=machine)
        else:
            _require_known(suite)
            names = _names("--policies", policies, "wim,wic")
            wish = Wish(
                targets=targets,
                suite=suite,
                scale_factor=sf,
                policies=lambda _engine: names,
                schedulers=_names("--scheduler", schedulers, "NAME,atoll"),
                decompose=decompose,
                instances=instances,
                streams=streams,
                base=base,
                queries=queries,
                blocks=blocks,
                query_limit_s=query_limit,
                command=shlex.join(["atoll", *sys.argv[1:]]),
            )
            with preparation() as progress:
                job = make_job(wish, host=host, machine=machine, progress=progress)
        path = output or state_dir("results") / f"{job.header.run_id}.jsonl"
        try:
            _measure(job, path, host, resume)
        finally:
            if path.exists():
                print(f"results: {path}", file=sys.stderr)
    summary = summarise(read_results(path))
    if as_json:
        print(summary.model_dump_json(indent=2))
    else:
        Console(highlight=False).print(bench_text(summary))
    require_blocks(summary)


def _refuse_idle(context: click.Context, *, urls: bool, decompose: bool) -> None:
    """Raises UsageError for an option that would say nothing beside the others."""
    given = {
        name for name in context.params if _source(context, name) is ParameterSource.COMMANDLINE
    }
    if urls and "suite" not in given:
        raise UsageError("--url: name the folder of your .sql files with --suite DIR")
    idle = {
        # They say how a deployment is made, or which data: of a cluster that runs both are there.
        "--url": {"sf", "policies", "schedulers", "decompose", "instances", "base"}
        if urls
        else set(),
        "--decompose": {"policies"} if decompose else set(),
    }
    missing = {"--decompose": set() if decompose else {"instances"}}
    options = {"schedulers": "--scheduler", "instances": "-n"}
    for words, found in (("says nothing beside", idle), ("goes with", missing)):
        for other, names in found.items():
            for name in sorted(names & given):
                raise UsageError(f"{options.get(name, f'--{name}')} {words} {other}")


def _source(context: click.Context, name: str) -> ParameterSource | None:
    return context.get_parameter_source(name)


def _require_known(suite: str) -> None:
    if suite not in suites.names():
        raise UsageError(
            f"--suite {suite}: is none of {', '.join(suites.names())}; SQL of your own wants data "
            "of your own: name the cluster that has it with --url"
        )


def _measure(job: Job | ReplayJob, path: Path, host: LocalHost, resume: bool) -> None:
    with bench_progress(len(job.header.entrants), job.header.blocks_asked) as progress:
        for note in job.header.notes:
            progress.note(note)
        try:
            job.run(path, host=host, resume=resume, tick=progress.tick, say=progress.say)
        except WrongAnswer as fault:
            progress.note(fault.detail)
            raise


def _names(option: str, listed: str | None, example: str) -> tuple[str, ...] | None:
    if listed is None:
        return None
    names = tuple(name.strip() for name in listed.split(",") if name.strip())
    if not names:
        raise UsageError(f"{option} names none; write for example {example}")
    return names
