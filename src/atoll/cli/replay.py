"""`atoll replay`: run your SQL against running clusters."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from atoll.bench.address import parse_address
from atoll.bench.replay import ReplayRequest, make_replay
from atoll.cli.measuring import (
    blocks_option,
    json_option,
    measure,
    output_option,
    prepare_output,
    query_limit_option,
    resume_option,
)
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
@blocks_option
@query_limit_option
@output_option
@resume_option
@json_option
def command(
    engine: str,
    urls: tuple[str, ...],
    suite: str,
    queries: str | None,
    streams: int,
    blocks: int,
    query_limit: float,
    output: Path | None,
    resume: bool,
    as_json: bool,
) -> None:
    """Run your own SQL against the running clusters at URL, and measure it.

    Atoll starts and stops nothing. Give two URLs to compare the second cluster with the first. If
    a URL contains a password, put it in the environment variable ATOLL_URL instead.
    """
    if "://" in engine:  # not repeated here: it may contain a password
        raise UsageError("the engine comes before the URLs: atoll replay ENGINE URL...")
    for url in urls:
        for secret in parse_address(url, {}).secrets:
            arguments.hide(secret)
    prepare_output(output, resume, None)
    host = LocalHost()
    with terminate_is_interrupt():
        request = ReplayRequest(
            engine=engine,
            urls=urls,
            suite=suite,
            queries=queries,
            streams=streams,
            blocks=blocks,
            query_limit_s=query_limit,
            command=("atoll", *sys.argv[1:]),
        )
        job = make_replay(request, host=host, machine=machine_for())
        measure(job, output, host, resume=resume, as_json=as_json)
