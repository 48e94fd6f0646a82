"""`atoll top`: watch all deployments in the terminal."""

from __future__ import annotations

import click

from atoll.cli.options import machine_for
from atoll.cli.terminal import can_draw, coloured, has_colour, width
from atoll.host.local import LocalHost


@click.command(epilog="Examples: atoll top; atoll top --json | jq .deployments")
@click.option("--json", "as_json", is_flag=True, help="Print one look as JSON (atoll/live).")
def command(as_json: bool) -> None:
    """Watch where the threads and pages of all your deployments are.

    CPU is new at each look, every 2 s. Looks take at most 0.5 % of one core; so figures that cost
    more are older, if there are many threads, and dim from 30 s on.

    HOME is the share of CPU time on the slot's own CPUs, LOCAL the share of pages on the node that
    uses them. 'atoll verify' checks more than this view.
    """
    from atoll.live.watcher import Watcher
    from atoll.report.terminal.live import Screen, screen

    host = LocalHost()
    watcher = Watcher(host)
    watcher.look()
    host.sleep(watcher.pause_s)
    view = watcher.look()
    if as_json:
        click.echo(view.model_dump_json(indent=1))
        return
    lines = screen(
        view, machine_for(), Screen(), width=width(), height=None, ascii_only=not can_draw()
    )
    click.echo("\n".join(map(coloured, lines)), color=has_colour())
