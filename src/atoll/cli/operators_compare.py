"""`atoll operators compare`: a program under several placements of its operators."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import get_args

import click

from atoll.bench.results import require_new
from atoll.cli.measure import refuse_unwritable
from atoll.cli.options import (
    FiniteRange,
    chiplets_option,
    machine_for,
    measured_profile,
    profile_option,
)
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
from atoll.schema.span import span
from atoll.schema.text import plural
from atoll.store.files import write_atomic
from atoll.store.operator_files import read_graph
from atoll.store.paths import state_dir
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
@click.option(
    "--seconds",
    type=click.IntRange(min=1),
    metavar="N",
    default=60,
    show_default=True,
    help="The measured time of a run.",
)
@click.option(
    "--warmup",
    type=click.IntRange(min=0),
    metavar="N",
    default=10,
    show_default=True,
    help="Seconds before it.",
)
@click.option(
    "--blocks",
    type=click.IntRange(min=1),
    metavar="N",
    default=5,
    show_default=True,
    help="How often everything runs. Intervals need at least 5.",
)
@chiplets_option
@profile_option
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Results file (default: a new one in Atoll's state folder).",
)
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
def command(
    program: str,
    deployments: str,
    graph: str | None,
    headroom: float,
    max_headroom: float,
    seconds: int,
    warmup: int,
    blocks: int,
    chiplets: str | None,
    profile: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Measure PROGRAM with its operators packed, and without.

    Each run starts the program, places its operators, checks every thread and measures. Packed must
    reach 97 % of the throughput of an operator per core, and 110 % of its 99th percentile of
    latency at most. Otherwise it is planned again with 0.1 more headroom, and all run again.

    Exit code 1: no headroom held. A machine with fewer cores than operators cannot have an operator
    per core: the rest runs, and the comparison is refused.
    """
    machine = machine_for(chiplets=chiplets, profile=profile)
    found, path = run_compare(
        program,
        _chosen(deployments),
        machine=machine,
        measured=measured_profile(machine, profile),
        graph=read_graph(graph) if graph is not None else None,
        headroom=headroom,
        most_headroom=max_headroom,
        warmup_s=warmup,
        measured_s=seconds,
        blocks=blocks,
        output=output,
    )
    if as_json:
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
    *,
    machine: Machine,
    measured: Profile | None,
    graph: OperatorGraph | None,
    headroom: float,
    most_headroom: float,
    warmup_s: float,
    measured_s: float,
    blocks: int,
    output: Path | None,
) -> tuple[OperatorRuns, Path]:
    """Measure, and keep the whole blocks in a file."""
    from atoll.operators.compare import Comparison, Setup

    stamp = time.strftime("%Y%m%d-%H%M%S")
    path = output or state_dir("results") / f"operators-{stamp}.json"
    require_new(path, resumes=False)
    refuse_unwritable(str(path))
    setup = Setup(
        program=get_placeable(name),
        deployments=deployments,
        plan=lambda graph, room, deployment: place(graph, machine, measured, room, deployment),
        headroom=headroom,
        most_headroom=max(headroom, most_headroom),
        warmup_s=warmup_s,
        measured_s=measured_s,
        blocks=blocks,
    )
    runs = blocks * len(deployments)
    least_s = (runs + (graph is None)) * (warmup_s + measured_s)
    print(f"atoll: {plural(runs, 'run')}, at least {span(least_s)}", file=sys.stderr)

    def keep(found: OperatorRuns) -> None:
        write_atomic(path, found.model_dump_json(indent=1) + "\n")

    try:
        with terminate_is_interrupt(), progress("compare") as say:
            found = Comparison(LocalHost(), machine, setup, say).run(keep, graph)
    finally:
        kept = f"results: {path}" if path.exists() else "no block was whole, so none is kept"
        print(f"atoll: {kept}", file=sys.stderr)
    return found, path


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
