"""`atoll operators`: long-lived operators on the fewest cores."""

from __future__ import annotations

import click

from atoll.cli import operators_apply
from atoll.cli.terminal import show
from atoll.store.operator_files import read_either


@click.group(epilog="Example: atoll operators show graph.json")
def command() -> None:
    """Find how few cores the operators of a plan need, and place them there.

    Operators are parts of a program that run for as long as it does: those of a stream, of a plan
    that many queries share, of a pipeline.
    """


@command.command("show", epilog="Example: atoll operators show graph.json")
@click.argument("file", metavar="FILE")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of the table.")
def show_file(file: str, as_json: bool) -> None:
    """Show FILE: a graph of operators, or a placement."""
    from atoll.report.terminal import operators as terminal
    from atoll.schema.operator_graph import OperatorGraph

    found = read_either(file)
    if as_json:
        print(found.model_dump_json(indent=1))
    elif isinstance(found, OperatorGraph):
        show(terminal.graph_table(found))
        print(terminal.graph_text(found))
    else:
        show(terminal.placement_table(found))
        print(terminal.placement_text(found))


command.add_command(operators_apply.command)
command.add_command(operators_apply.undo_command)
