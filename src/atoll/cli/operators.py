"""`atoll operators`: long-lived operators on the fewest cores."""

from __future__ import annotations

from typing import get_args

import click

from atoll.cli import operators_apply, operators_compare, operators_profile, operators_watch
from atoll.cli.options import (
    FiniteRange,
    machine_for,
    machine_option,
    measured_profile,
    profile_option,
)
from atoll.cli.terminal import show
from atoll.schema.placement import Deployment
from atoll.store.operator_files import read_any, read_graph


@click.group(epilog="Example: atoll operators plan graph.json")
def command() -> None:
    """Find how few cores the operators of a plan need, and place them there.

    Operators are parts of a program that run for as long as it does: those of a stream, of a plan
    that many queries share, of a pipeline.
    """


@command.command(
    "plan",
    epilog="Examples: atoll operators plan graph.json; atoll operators plan graph.json --machine "
    "node7.xml --headroom 0.3 -o placement.json",
)
@click.argument("graph", metavar="GRAPH")
@click.option(
    "--headroom",
    type=FiniteRange(min=0, max=0.9),
    metavar="SHARE",
    default=0.2,
    show_default=True,
    help="The part of each core to leave free.",
)
@click.option(
    "--deployment",
    type=click.Choice(get_args(Deployment)),
    default="packed",
    show_default=True,
    help="The fewest cores; a core for each operator; or no binding.",
)
@machine_option
@profile_option
@click.option("-o", "--output", metavar="FILE", help="Write the placement to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print the placement as JSON.")
def plan(
    graph: str,
    headroom: float,
    deployment: Deployment,
    source: str | None,
    profile: str | None,
    output: str | None,
    as_json: bool,
) -> None:
    """Find the fewest cores and nodes for the operators in GRAPH.

    GRAPH is a file of the format atoll/operators. Prints each core with its operators, the fewest
    cores that any placement needs, and what the figures leave open.
    """
    from atoll.operators.place import place
    from atoll.report.terminal import operators as terminal
    from atoll.store.files import write_atomic

    machine = machine_for(source, profile=profile)
    measured = measured_profile(machine, profile, here=source is None)
    placement = place(read_graph(graph), machine, measured, headroom, deployment)
    if output is not None:
        write_atomic(output, placement.model_dump_json(indent=1) + "\n")
    if as_json:
        print(placement.model_dump_json(indent=1))
        return
    show(terminal.placement_table(placement))
    print(terminal.placement_text(placement))


@command.command("show", epilog="Example: atoll operators show graph.json")
@click.argument("file", metavar="FILE")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of the table.")
def show_file(file: str, as_json: bool) -> None:
    """Show FILE: a graph of operators, a placement, or a comparison."""
    from atoll.report.terminal import operators as terminal
    from atoll.schema.operator_graph import OperatorGraph
    from atoll.schema.operator_runs import OperatorRuns

    found = read_any(file)
    if as_json:
        print(found.model_dump_json(indent=1))
    elif isinstance(found, OperatorGraph):
        show(terminal.graph_table(found))
        print(terminal.graph_text(found))
    elif isinstance(found, OperatorRuns):
        operators_compare.show_runs(found)
    else:
        show(terminal.placement_table(found))
        print(terminal.placement_text(found))


command.add_command(operators_profile.command)
command.add_command(operators_apply.command)
command.add_command(operators_apply.undo_command)
command.add_command(operators_compare.command)
command.add_command(operators_watch.command)
