"""`atoll knobs`: the system's switches, read, turned with a journal, turned back."""

from __future__ import annotations

import click


@click.command(epilog="Example: atoll knobs show")
def command() -> None:
    """Show, set and undo the system's switches."""
    raise NotImplementedError
