"""`atoll undo`: restore the switches that Atoll has set."""

from __future__ import annotations

import click

from atoll.cli import turning
from atoll.errors import UsageError
from atoll.knobs.catalog import knob_named


@click.command(
    epilog="Examples: atoll undo swappiness; atoll undo --all; atoll undo --all --dry-run"
)
@click.argument("names", nargs=-1, metavar="[KNOB...]")
@click.option("--all", "everything", is_flag=True, help="Undo every knob that Atoll has set.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@click.option("--script", is_flag=True, help="Print a script for root, and do nothing.")
def command(names: tuple[str, ...], everything: bool, dry_run: bool, script: bool) -> None:
    """Restore the values that knobs had before Atoll set them.

    Exit code 1: another program has changed a knob since, and Atoll left it alone. 4: not
    permitted; without root, a script for root is printed.
    """
    if everything == bool(names):
        raise UsageError("give either the KNOBs to undo or --all")
    names = tuple(knob_named(name).name for name in names)
    rehearses = dry_run or script
    outcome = turning.control().undo(names, on_paper=rehearses)
    done = {note.knob for note in outcome.notes}
    for name in names or ([] if done else ["knobs"]):
        if name not in done and not script:
            print(f"{name}: nothing to undo")
    if rehearses:
        turning.rehearse(outcome, script=script)
    else:
        turning.finish(outcome)
