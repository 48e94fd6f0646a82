"""`atoll operators compare`: a program under several placements of its operators."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import click

from atoll.cli.blocks import BlockOptions, Blocks, block_options, kept, new_file
from atoll.cli.options import FiniteRange, measured_profile
from atoll.cli.terminal import progress, show, width
from atoll.engines.registry import get_placeable, placeable_names
from atoll.errors import CheckFailed, UsageError
from atoll.host.local import LocalHost
from atoll.operators.place import HEADROOM, place
from atoll.schema.machine import Machine
from atoll.schema.operator_graph import OperatorGraph
from atoll.schema.operator_runs import OperatorRuns
from atoll.schema.placement import Deployment
from atoll.schema.profile import Profile
from atoll.store.operator_files import read_graph
from atoll.supervise.interrupts import terminate_is_interrupt

DEPLOYMENTS: tuple[Deployment, ...] = get_args(Deployment)
MOST_HEADROOM = 0.5

headroom_option = click.option(
    "--headroom",
    type=FiniteRange(0, 0.9),
    metavar="SHARE",
    default=HEADROOM,
    show_default=True,
    help="The part of each core to leave free.",
)


@click.command(
    "compare",
    epilog=f"PROGRAM is one of {', '.join(placeable_names())}. Example: atoll operators compare "
    "PROGRAM --seconds 30 --blocks 5 -o runs.json",
)
@click.argument("program", metavar="PROGRAM")
@click.option(
    "--deployments",
    metavar="NAME,NAME",
    default=",".join(DEPLOYMENTS),
    show_default=True,
    help="os: no binding. per-core: each operator has a core. packed: on the fewest cores.",
)
@click.option("--graph", metavar="FILE", help="Plan by this file; profile nothing.")
@headroom_option
@click.option(
    "--max-headroom",
    type=FiniteRange(0, 0.9),
    metavar="SHARE",
    default=MOST_HEADROOM,
    show_default=True,
    help="The most to try if less is not enough.",
)
@block_options(seconds=60, warmup=10)
def command(
    program: str,
    deployments: str,
    graph: str | None,
    headroom: float,
    max_headroom: float,
    options: BlockOptions,
) -> None:
    """Measure PROGRAM with its operators packed, and without.

    Each run starts the program, places its operators, checks every thread and measures. Packed must
    reach 97 % of the throughput of an operator per core, and 110 % of its 99th percentile of
    latency at most. Otherwise it is planned again with 0.1 more headroom, and all run again.

    Exit code 1: no headroom held. A machine with fewer cores than operators cannot have an operator
    per core: the rest runs, and the comparison is refused.
    """
    machine = options.machine()
    found, path = run_compare(
        program,
        _chosen(deployments),
        options,
        machine=machine,
        measured=measured_profile(machine, options.profile),
        graph=read_graph(graph) if graph is not None else None,
        headroom=headroom,
        most_headroom=max_headroom,
    )
    if options.as_json:
        print(found.model_dump_json(indent=1))
    else:
        show_runs(found)
    from atoll.operators.judge import judge

    result = judge(found.rounds[-1])
    if result is not None and not result.holds and not found.emulated:
        raise CheckFailed(f"no headroom up to {max_headroom:g} held; see {path}")


def run_compare(
    name: str,
    deployments: tuple[Deployment, ...],
    options: Blocks,
    *,
    machine: Machine,
    measured: Profile | None,
    graph: OperatorGraph | None = None,
    headroom: float = HEADROOM,
    most_headroom: float = MOST_HEADROOM,
) -> tuple[OperatorRuns, Path]:
    """Measure, and keep the whole blocks in a file."""
    from atoll.operators.compare import Comparison, Setup

    setup = Setup(
        program=get_placeable(name),
        deployments=deployments,
        plan=lambda graph, room, deployment: place(graph, machine, measured, room, deployment),
        headroom=headroom,
        most_headroom=max(headroom, most_headroom),
        warmup_s=options.warmup,
        measured_s=options.seconds,
        blocks=options.blocks,
    )
    path = new_file(options, "operators")
    with (
        terminate_is_interrupt(),
        kept(path, options, a_block=len(deployments), before=graph is None) as keep,
        progress("compare") as say,
    ):
        return Comparison(LocalHost(), machine, setup, say).run(keep, graph), path


def show_runs(found: OperatorRuns) -> None:
    from atoll.report.terminal.operator_runs import runs_table, runs_text

    show(runs_table(found))
    print(runs_text(found, width()))


def _chosen(text: str) -> tuple[Deployment, ...]:
    """In the order of the table. Raises UsageError."""
    names = {part.strip() for part in text.split(",")}
    if unknown := names - set(DEPLOYMENTS):
        raise UsageError(
            f"--deployments {text}: {min(unknown)!r} is not one of {', '.join(DEPLOYMENTS)}"
        )
    return tuple(name for name in DEPLOYMENTS if name in names)
