"""`atoll bench`: compare policies block by block."""

from __future__ import annotations

import click

from atoll.cli.measuring import RunOptions, SuiteOptions, measure_suite, suite_options
from atoll.cli.planning import planning_options
from atoll.errors import UsageError
from atoll.plan.request import Choices
from atoll.schema.policy import Policy


@click.command(
    epilog="Example: atoll bench spark --policies wim,wic --sf 0.1 --queries 1,6,18 -o r.jsonl, "
    "then atoll report r.jsonl -o report.html"
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
    "comma between them, compare both. Only for engines with several schedulers.",
)
@planning_options
@suite_options
def command(
    options: SuiteOptions,
    run: RunOptions,
    choices: Choices,
    targets: tuple[str, ...],
    policies: str | None,
    schedulers: str | None,
) -> None:
    """Compare policies on this machine, for ENGINEs or for PLANs from files.

    A block starts every policy in turn, warms it up, runs one measured pass and stops it. The
    order is reversed from block to block. Answers are checked in every pass. A query that fails or
    is too slow is left out, and the rest is measured; the exit code is then 5. Each result is
    written to the file at once, so an interrupted bench loses nothing.
    """
    measure_suite(
        options,
        run,
        targets,
        policies=_names("--policies", policies),
        schedulers=_names("--scheduler", schedulers),
        choices=choices,
    )


def _names(option: str, listed: str | None) -> tuple[str, ...] | None:
    if listed is None:
        return None
    names = tuple(name.strip() for name in listed.split(",") if name.strip())
    if not names:
        raise UsageError(f"{option} is empty; give one or more names, with commas between them")
    return names
