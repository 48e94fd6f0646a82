"""`atoll replay`: run your SQL against running clusters."""

from __future__ import annotations

import sys

import click

from atoll.bench.address import parse_address
from atoll.bench.replay import ReplayRequest, make_replay
from atoll.cli.measuring import RunOptions, measure, prepare_output, run_options
from atoll.cli.options import machine_for
from atoll.errors import UsageError
from atoll.host import arguments
from atoll.host.local import LocalHost
from atoll.supervise.interrupts import terminate_is_interrupt


@click.command(
    epilog="Example: atoll replay trino https://ann@db.example:8443/hive/sales --suite my-queries/"
)
@click.argument("engine", metavar="ENGINE")
@click.argument("urls", metavar="URL...", nargs=-1, required=True, envvar="ATOLL_URL")
@click.option(
    "--suite",
    metavar="DIR",
    required=True,
    help="Folder of .sql files, one query per file.",
)
@click.option(
    "--queries", metavar="LIST", help="Files to run, for example daily,q7 (default: all)."
)
@click.option(
    "--streams",
    metavar="N",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Number of concurrent queries.",
)
@run_options
def command(
    run: RunOptions,
    engine: str,
    urls: tuple[str, ...],
    suite: str,
    queries: str | None,
    streams: int,
) -> None:
    """Run your own SQL against the running clusters at URL, and measure it.

    Atoll starts and stops nothing. Give two URLs to compare the second cluster with the first. If
    a URL contains a password, put it in the environment variable ATOLL_URL instead. A query that
    fails or is too slow is left out, and the rest is measured; the exit code is then 5.
    """
    if "://" in engine:  # not repeated here: it may contain a password
        raise UsageError("the engine comes before the URLs: atoll replay ENGINE URL...")
    for url in urls:
        for secret in parse_address(url, {}).secrets:
            arguments.hide(secret)
    length = run.length
    prepare_output(run, None)
    host = LocalHost()
    with terminate_is_interrupt():
        request = ReplayRequest(
            engine=engine,
            urls=urls,
            suite=suite,
            queries=queries,
            streams=streams,
            length=length,
            warmups=run.warmup,
            query_limit_s=run.query_limit,
            command=("atoll", *sys.argv[1:]),
        )
        job = make_replay(request, host=host, machine=machine_for())
        measure(job, run, host)
