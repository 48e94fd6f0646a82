"""`atoll top`: watch all deployments in the terminal."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import click

from atoll.cli.fullscreen import ReadKey, draw, fullscreen, is_possible
from atoll.cli.options import machine_for, rendered_option
from atoll.cli.terminal import can_draw, coloured, has_colour, width
from atoll.host.local import LocalHost

if TYPE_CHECKING:
    from atoll.live.watcher import Watcher
    from atoll.report.machine.text import Line
    from atoll.schema.machine import Machine


@click.command(epilog="Examples: atoll top; atoll top --once; atoll top --json | jq .deployments")
@click.option("--once", is_flag=True, help="Print one look, as when stdout is not a terminal.")
@rendered_option
@click.option("--json", "as_json", is_flag=True, help="Print one look as JSON (atoll/live).")
def command(once: bool, rendered: tuple[str, ...], as_json: bool) -> None:
    """Watch where the threads and pages of all your deployments are.

    CPU is new at each look, every 2 s. Looks take at most 0.5 % of one core; so figures that cost
    more are older, if there are many threads, and dim from 30 s on.

    HOME is the share of CPU time on the slot's own CPUs, LOCAL the share of pages on the node that
    uses them. Keys: q ends, the arrows or j and k select a slot, m shows its memory, d all drift
    with its remedies, p pauses. 'atoll verify' checks more than this view.
    """
    from atoll.live.watcher import Watcher
    from atoll.store.plan_file import read_rendered
    from atoll.supervise.interrupts import terminate_is_interrupt

    watcher = Watcher(LocalHost(), rendered=[read_rendered(folder) for folder in rendered])
    if not (once or as_json) and is_possible():
        machine = machine_for()
        with terminate_is_interrupt(), fullscreen() as read_key:
            _watch(watcher, machine, read_key)
        return
    watcher.look()
    LocalHost().sleep(watcher.pause_s)
    view = watcher.look()
    if as_json:
        click.echo(view.model_dump_json(indent=1))
        return
    from atoll.report.terminal.live import Screen, screen

    lines = screen(
        view, machine_for(), Screen(), width=width(), height=None, ascii_only=not can_draw()
    )
    click.echo("\n".join(map(coloured, lines)), color=has_colour())


def _watch(watcher: Watcher, machine: Machine, read_key: ReadKey) -> None:
    """Until a key ends it."""
    from atoll.report.terminal.live import Screen, screen

    host, chosen = LocalHost(), Screen()
    ascii_only, colour = not can_draw(), has_colour()
    draw(["atoll top: the first look reads all threads and pages"])
    view, next_s = watcher.look(), host.monotonic() + watcher.pause_s
    while True:
        size = shutil.get_terminal_size()
        lines = screen(
            view, machine, chosen, width=size.columns, height=size.lines, ascii_only=ascii_only
        )
        draw([coloured(line) if colour else _plain(line) for line in lines])
        key = read_key(60.0 if chosen.paused else next_s - host.monotonic())
        if key == "quit":
            return
        chosen = chosen.after(key, view)
        if not chosen.paused and host.monotonic() >= next_s:
            view, next_s = watcher.look(), host.monotonic() + watcher.pause_s


def _plain(line: Line) -> str:
    return "".join(span.text for span in line).rstrip()
