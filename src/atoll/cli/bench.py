"""`atoll bench`: compare policies block by block."""

from __future__ import annotations

import click

from atoll.bench.axes import KINDS, axes_of, make_axis, make_grid, parse_axis
from atoll.cli.measuring import (
    RunOptions,
    SuiteOptions,
    measure_suite,
    run_options,
    suite_options,
)
from atoll.cli.planning import planning_options
from atoll.plan.request import Choices
from atoll.schema.policy import Policy


@click.command(
    epilog="Examples: atoll bench spark --policies wim,wic --sf 0.1 --queries 1,6,18 -o r.jsonl, "
    "then atoll report r.jsonl -o report.html; atoll bench spark --axis n=2,4,8 --axis "
    "memory=bind,interleave --within 2h -o grid.jsonl, and the same with --resume at its end to "
    "continue it; atoll bench duckdb --policies wim,wic --axis cores=1,2,4,8 --product"
)
@click.argument("targets", metavar="ENGINE|PLAN...", nargs=-1, required=True)
@click.option(
    "--policies",
    metavar="P,P,...",
    help=f"Policies to compare: {', '.join(Policy)}, auto (default: each of wim, win, wicp, wic "
    "that differs on this machine). WIM is the baseline and is always measured.",
)
@click.option(
    "--scheduler",
    "schedulers",
    metavar="S,S",
    help="Which scheduler runs the engine's tasks: its own (default) or atoll. Two names, with a "
    "comma between them, compare both under every policy (as --product does). Only for engines "
    "with several schedulers.",
)
@click.option(
    "--axis",
    "axes",
    metavar="NAME=V,V",
    multiple=True,
    help="Vary something (repeatable): "
    + "; ".join(f"{name} ({kind.takes})" for name, kind in KINDS.items())
    + "; knob:NAME (as 'atoll apply' takes it; needs root). One axis at a time against WIM; an "
    "axis of one value holds for all. The other options of a deployment are axes of one value: "
    "--memory bind is --axis memory=bind. Speed-ups are over WIM; the table of an axis is over the "
    "axis's own default.",
)
@click.option(
    "--product",
    is_flag=True,
    help="Measure all combinations of the values of all axes, beside WIM with the defaults.",
)
@planning_options
@suite_options
@run_options
def command(
    options: SuiteOptions,
    run: RunOptions,
    choices: Choices,
    targets: tuple[str, ...],
    policies: str | None,
    schedulers: str | None,
    axes: tuple[str, ...],
    product: bool,
) -> None:
    """Compare policies on this machine, for ENGINEs or for PLANs from files.

    A block starts every policy in turn, warms it up, runs one measured pass and stops it. The
    order is reversed from block to block. Answers are checked in every pass. A query that fails or
    is too slow is left out, and the rest is measured; the exit code is then 5. Each result is
    written to the file at once, so an interrupted bench loses nothing.
    """
    fixed, rest = axes_of(choices)
    asked = [parse_axis(text) for text in axes]
    for name, option, listed in (
        ("policy", "--policies", policies),
        ("scheduler", "--scheduler", schedulers),
    ):
        if listed is not None:
            named = [part.strip() for part in listed.split(",")]
            asked.append(make_axis(name, filter(None, named), option=option))
            # Each policy under each scheduler.
            product = product or (name == "scheduler" and asked[-1].varied)
    grid = make_grid([*asked, *fixed], product=product)
    measure_suite(options, run, targets, grid=grid, choices=rest)
