"""`atoll knobs`: show, set and undo system-wide settings, with a journal."""

from __future__ import annotations

import json
import shutil
import sys

import click

from atoll.cli.terminal import has_colour
from atoll.errors import CheckFailed, NotPermitted, UsageError
from atoll.host.local import LocalHost
from atoll.knobs.catalog import knob_named
from atoll.knobs.control import Control, KnobState, Outcome
from atoll.knobs.journal import JournalFolder
from atoll.knobs.switch_notes import Kind
from atoll.report.terminal import knobs as knobs_text


@click.group(
    epilog="Examples: atoll knobs show; atoll knobs show swappiness; "
    "atoll knobs set numa-balancing=0 thp-enabled=madvise; atoll knobs undo --all"
)
def command() -> None:
    """Show, set and undo system-wide settings: AutoNUMA, huge pages and others.

    They affect every process; prefer a per-process setting (see 'atoll knobs show NAME'). Atoll
    saves the old value on disk before it sets a knob, and undo restores it, even after a crash.
    Without root, set and undo print a script for root.
    """


@command.command(
    epilog="Examples: atoll knobs show; atoll knobs show thp-enabled; "
    "atoll knobs show --json | jq '.[].values'"
)
@click.argument("names", nargs=-1, metavar="[NAME...]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of the table.")
def show(names: tuple[str, ...], as_json: bool) -> None:
    """Show the knobs, with the original value of those that Atoll has set.

    With NAMEs, show everything about them: values, effect, recommendations, alternatives. The
    exit code is 1 if another program has changed a knob since, or if it can no longer be read.
    """
    chosen = [knob_named(name) for name in names]
    states, outcome = _control().show()
    lines = knobs_text.done_lines(outcome.notes) + knobs_text.fault_lines(outcome.notes)
    if outcome.script:  # nothing was done
        lines = [
            "the journal has an interrupted command; run 'atoll knobs show' as root to finish it"
        ]
    for line in lines:
        print(f"atoll: {line}", file=sys.stderr)
    states = [state for state in states if not chosen or state.knob in chosen]
    width = min(shutil.get_terminal_size().columns, 100)
    if as_json:
        print(json.dumps([_as_json(state) for state in states], indent=1))
    elif chosen:
        print("\n\n".join(knobs_text.page(state, width=width) for state in states))
    else:
        print(knobs_text.table(states, width=width, colour=has_colour()))
    faults = knobs_text.foreign_lines(states)
    if faults:
        raise CheckFailed("; ".join(faults))


@command.command(
    name="set",
    epilog="Examples: atoll knobs set swappiness=10; "
    "atoll knobs set weighted-interleave=0=3,1=1 irq-affinity=24=0-3,8,25=4",
)
@click.argument("settings", nargs=-1, required=True, metavar="NAME=VALUE...")
def set_command(settings: tuple[str, ...]) -> None:
    """Set all the named knobs, or none of them.

    Exit code 1: another program has changed a knob since Atoll set it. 2: no such value. 4: not
    permitted; without root, a script for root is printed.
    """
    asked = []
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise UsageError(f"{setting!r} is not NAME=VALUE, such as swappiness=10")
        asked.append((name, value))
    _finish(_control().set(asked))


@command.command(epilog="Examples: atoll knobs undo swappiness; atoll knobs undo --all")
@click.argument("names", nargs=-1, metavar="[NAME...]")
@click.option("--all", "everything", is_flag=True, help="Undo every knob that Atoll has set.")
def undo(names: tuple[str, ...], everything: bool) -> None:
    """Restore the values that knobs had before Atoll set them.

    Exit code 1: another program has changed a knob since, and Atoll left it alone. 4: not
    permitted; without root, a script for root is printed.
    """
    if everything == bool(names):
        raise UsageError("give either the NAMEs to undo or --all")
    outcome = _control().undo(names)
    done = {note.knob for note in outcome.notes}
    for name in names or ([] if done else ["knobs"]):
        if name not in done:
            print(f"{name}: nothing to undo")
    _finish(outcome)


def _control() -> Control:
    return Control(LocalHost(), JournalFolder())


def _finish(outcome: Outcome) -> None:
    """Print what was done. Raises NotPermitted or CheckFailed for what was not."""
    faults = knobs_text.fault_lines(outcome.notes)
    if outcome.script:
        print(outcome.script, end="")
        then = (
            " to finish an interrupted change, then repeat this command"
            if outcome.interrupted
            else ""
        )
        faults.insert(0, f"{outcome.why}; run the script on stdout as root{then}")
        raise NotPermitted("; ".join(faults))
    for line in knobs_text.done_lines(outcome.notes):
        print(line)
    if faults:
        refused = any(note.kind is Kind.REFUSED for note in outcome.notes)
        raise (NotPermitted if refused else CheckFailed)("; ".join(faults))


def _as_json(state: KnobState) -> dict[str, object]:
    foreign = {switch.path for switch in state.foreign}
    return {
        "name": state.knob.name,
        "title": state.knob.title,
        "takes": state.knob.takes,
        "now": knobs_text.now(state),
        "values": dict(state.values),
        "effective": dict(state.effective),
        "set": [
            {
                "path": switch.path,
                "original": switch.original,
                "ours": switch.ours,
                "next": switch.next,
                "changed_by_somebody_else": switch.path in foreign,
            }
            for switch in state.switches
        ],
    }
