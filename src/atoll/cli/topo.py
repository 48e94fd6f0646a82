"""`atoll topo`: show the machine. Kept light: 300 ms is the budget for the whole process."""

from __future__ import annotations

import shutil
from typing import Any

import click

from atoll.cli.machine import machine_for, profile_option
from atoll.cli.terminal import can_draw, has_colour, width
from atoll.errors import UsageError
from atoll.report.machine.text import Line, Style, machine_picture

_STYLES: dict[Style, dict[str, Any]] = {
    Style.PLAIN: {},
    Style.TITLE: {"bold": True},
    Style.LABEL: {"fg": "bright_black"},
    Style.ISLAND: {"fg": "yellow"},
    Style.LOOSE: {"fg": "bright_black"},
    Style.CORE: {"fg": "cyan"},
    Style.DIM: {"dim": True},
}


@click.command(
    epilog="Examples: atoll topo; atoll topo --input node7.xml --svg node7.svg; "
    "atoll topo --chiplets cores=14; atoll topo --json"
)
@click.option(
    "--input",
    "source",
    metavar="X",
    help="Another machine: an hwloc XML file, a captured sysfs folder or tarball, a machine file.",
)
@click.option("--synthetic", metavar="S", help='A made-up machine: "Package:2 L3:8 Core:8 PU:2".')
@click.option(
    "--chiplets",
    metavar="SETS",
    help='Chiplets that the system hides: CPU sets "0-13;14-27", or a size "cores=14".',
)
@profile_option
@click.option("--json", "as_json", is_flag=True, help="Print the machine file, summary first.")
@click.option("--svg", metavar="FILE", help="Write the picture as SVG, too.")
def command(
    source: str | None,
    synthetic: str | None,
    chiplets: str | None,
    profile: str | None,
    as_json: bool,
    svg: str | None,
) -> None:
    """Show the machine: packages, NUMA nodes, chiplets as islands, cores, memory.

    Warnings about an implausible topology go to stderr.
    """
    if source is not None and synthetic is not None:
        raise UsageError("give either --input or --synthetic, not both")
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
        click.echo("\n".join(_coloured(line) for line in picture), color=has_colour())
    for warning in machine.warnings:
        click.echo(f"atoll: warning: {warning.message} [{warning.code}]", err=True)


def _coloured(line: Line) -> str:
    return "".join(
        click.style(span.text, **_STYLES[span.style]) if _STYLES[span.style] else span.text
        for span in line
    ).rstrip()
