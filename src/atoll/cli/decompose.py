"""`atoll decompose`: split the gain of WIN over WIM into steps."""

from __future__ import annotations

import click

from atoll.bench.axes import make_axis, make_grid
from atoll.cli.measuring import (
    RunOptions,
    SuiteOptions,
    measure_suite,
    run_options,
    suite_options,
)
from atoll.cli.options import count_option


@click.command(
    epilog="Examples: atoll decompose spark --blocks 15 -o r.jsonl; atoll decompose duckdb -n 2"
)
@click.argument("engine", metavar="ENGINE")
@count_option
@click.option(
    "--scheduler",
    metavar="S",
    help="Which scheduler runs the engine's tasks: its own (default) or atoll.",
)
@suite_options
@run_options
def command(
    options: SuiteOptions, run: RunOptions, engine: str, count: int | None, scheduler: str | None
) -> None:
    """Split the gain of WIN over WIM into steps: GC threads, several processes, CPU locality,
    memory locality.

    WIN has one instance per NUMA node; on a machine with one node, choose -n. Each step is one
    more entrant of every block, and differs from the entrant before it in one thing.
    """
    axes = [] if scheduler is None else [make_axis("scheduler", [scheduler], option="--scheduler")]
    grid = make_grid(axes)
    measure_suite(options, run, (engine,), grid=grid, decompose=True, instances=count)
