"""`atoll topo`: show the machine. Imports no pydantic and no rich, so that it starts fast."""

from __future__ import annotations

import shutil

import click

from atoll.cli.options import (
    chiplets_option,
    machine_for,
    machine_option,
    profile_option,
    synthetic_option,
)
from atoll.cli.terminal import can_draw, coloured, has_colour, width
from atoll.report.machine.text import machine_picture


@click.command(
    epilog="Examples: atoll topo; atoll topo --machine node7.xml --svg node7.svg; "
    "atoll topo --chiplets cores=14; atoll topo --json"
)
@machine_option
@synthetic_option
@chiplets_option
@profile_option
@click.option("--json", "as_json", is_flag=True, help="Print the machine file.")
@click.option("--svg", metavar="FILE", help="Also write the picture as SVG.")
def command(
    source: str | None,
    synthetic: str | None,
    chiplets: str | None,
    profile: str | None,
    as_json: bool,
    svg: str | None,
) -> None:
    """Show the machine: packages, NUMA nodes, chiplets, caches, cores and memory.

    Prints warnings about an implausible topology on stderr.
    """
    machine = machine_for(source, synthetic, chiplets=chiplets, profile=profile)
    if svg is not None:
        from atoll.report.machine.svg import machine_svg
        from atoll.store.files import write_atomic

        write_atomic(svg, machine_svg(machine))
    if as_json:
        click.echo(machine.model_dump_json(indent=2))
    else:
        size = shutil.get_terminal_size((80, 50))
        picture = machine_picture(
            machine,
            width=width(),
            height=max(size.lines, 50) - 2,
            ascii_only=not can_draw(),
        )
        click.echo("\n".join(coloured(line) for line in picture), color=has_colour())
    for warning in machine.warnings:
        click.echo(f"atoll: warning: {warning.message} [{warning.code}]", err=True)
