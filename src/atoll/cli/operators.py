"""`atoll operators`: long-lived operators on the fewest cores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, get_args

import click

from atoll.cli import operators_apply, operators_compare, operators_profile, operators_watch
from atoll.cli.options import (
    machine_for,
    machine_option,
    measured_profile,
    profile_option,
)
from atoll.cli.terminal import show, width
from atoll.errors import UsageError
from atoll.schema.placement import Deployment, Placement
from atoll.store.operator_files import read_any, read_graph

if TYPE_CHECKING:
    from atoll.schema.operator_graph import OperatorGraph
    from atoll.schema.operator_runs import OperatorRuns


@click.group(epilog="Example: atoll operators plan graph.json")
def command() -> None:
    """Find how few cores the operators of a plan need, and place them there.

    Operators are parts of a program that run for as long as it does: those of a stream, of a plan
    that many queries share, of a pipeline.
    """


@contextmanager
def _about(file: str) -> Iterator[None]:
    """Names the file in what is wrong with its content."""
    try:
        yield
    except UsageError as fault:
        raise UsageError(f"{file}: {fault}") from None


explain_option = click.option(
    "--explain", is_flag=True, help="List each unit with the reason for its core."
)


@command.command(
    "plan",
    epilog="Examples: atoll operators plan graph.json; atoll operators plan graph.json --machine "
    "node7.xml --headroom 0.3 -o placement.json",
)
@click.argument("graph", metavar="GRAPH")
@operators_compare.headroom_option
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
@explain_option
@click.option("--svg", metavar="FILE", help="Also draw the graph and the load of its cores.")
@click.option("--json", "as_json", is_flag=True, help="Print the placement as JSON.")
def plan(
    graph: str,
    headroom: float,
    deployment: Deployment,
    source: str | None,
    profile: str | None,
    output: str | None,
    explain: bool,
    svg: str | None,
    as_json: bool,
) -> None:
    """Find the fewest cores and nodes for the operators in GRAPH.

    GRAPH is a file of the format atoll/operators. Prints each core with its operators, the fewest
    cores that any placement needs, and what the figures leave open.
    """
    from atoll.operators.place import place
    from atoll.store.document import write_document
    from atoll.store.files import write_atomic

    machine = machine_for(source, profile=profile)
    measured = measured_profile(machine, profile, here=source is None)
    operators = read_graph(graph)
    with _about(graph):
        placement = place(operators, machine, measured, headroom, deployment)
    if output is not None:
        write_document(output, placement)
    if svg is not None:
        from atoll.report.operators.svg import graph_svg

        write_atomic(svg, graph_svg(operators, placement))
    if as_json:
        print(placement.model_dump_json(indent=1))
        return
    _show_placement(placement, explain)


@command.command("show", epilog="Example: atoll operators show graph.json")
@click.argument("file", metavar="FILE")
@explain_option
@click.option("--svg", metavar="OUT", help="Also draw the graph, or the load of the cores, there.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of the table.")
def show_file(file: str, explain: bool, svg: str | None, as_json: bool) -> None:
    """Show FILE: a graph of operators, a placement, or a comparison."""
    from atoll.report.terminal import operators as terminal
    from atoll.report.terminal.operator_sources import graph_text
    from atoll.schema.operator_graph import OperatorGraph
    from atoll.schema.operator_runs import OperatorRuns

    found = read_any(file)
    if svg is not None:
        _draw(found, file, svg)
    if as_json:
        print(found.model_dump_json(indent=1))
    elif isinstance(found, OperatorGraph):
        show(terminal.graph_table(found))
        print(graph_text(found, width()))
    elif isinstance(found, OperatorRuns):
        operators_compare.show_runs(found)
    else:
        _show_placement(found, explain)


def _show_placement(placement: Placement, explain: bool) -> None:
    from atoll.report.terminal import operators as terminal

    if explain and placement.units:
        show(terminal.units_table(placement))
        print()
    show(terminal.placement_table(placement))
    print(terminal.placement_text(placement, width()))


def _draw(found: OperatorGraph | Placement | OperatorRuns, file: str, path: str) -> None:
    """Raises UsageError for what has no picture."""
    from atoll.operators.units import Operators
    from atoll.report.operators.svg import graph_svg, placement_svg
    from atoll.schema.operator_graph import OperatorGraph
    from atoll.store.files import write_atomic

    if isinstance(found, OperatorGraph):
        with _about(file):
            Operators(found)  # refuses a circle, which has no first column
        write_atomic(path, graph_svg(found))
    elif isinstance(found, Placement) and found.units:
        write_atomic(path, placement_svg(found))
    else:
        raise UsageError("--svg draws graphs, and placements that bind operators")


command.add_command(operators_profile.command)
command.add_command(operators_apply.command)
command.add_command(operators_apply.undo_command)
command.add_command(operators_compare.command)
command.add_command(operators_watch.command)
