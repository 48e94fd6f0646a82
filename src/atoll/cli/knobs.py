"""`atoll knobs`: show the system-wide switches and their journal."""

from __future__ import annotations

import json
import sys

import click

from atoll.cli import turning
from atoll.cli.terminal import has_colour, width
from atoll.errors import CheckFailed
from atoll.knobs.catalog import knob_named
from atoll.knobs.control import KnobState
from atoll.report.terminal import knobs as knobs_text


@click.command(
    epilog="Examples: atoll knobs; atoll knobs thp-enabled; atoll knobs --json | jq '.[].values'"
)
@click.argument("names", nargs=-1, metavar="[NAME...]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of the table.")
def command(names: tuple[str, ...], as_json: bool) -> None:
    """Show the knobs, with the original value of those that Atoll has set.

    A knob affects every process; prefer a setting of one program ('atoll knobs NAME' lists them).
    'atoll apply KNOB=VALUE' sets a knob, 'atoll undo' restores it.

    With NAMEs, show everything about them: values, effect, recommendations, alternatives. The
    exit code is 1 if another program has changed a knob since, or if it can no longer be read.
    """
    chosen = [knob_named(name) for name in names]
    states, outcome = turning.control().show()
    lines = knobs_text.done_lines(outcome.notes) + knobs_text.fault_lines(outcome.notes)
    if outcome.script:  # nothing was done
        lines = ["the journal has an interrupted command; run 'atoll knobs' as root to finish it"]
    for line in lines:
        print(f"atoll: {line}", file=sys.stderr)
    states = [state for state in states if not chosen or state.knob in chosen]
    columns = min(width(), 100)
    if as_json:
        print(json.dumps([_as_json(state) for state in states], indent=1))
    elif chosen:
        print("\n\n".join(knobs_text.page(state, width=columns) for state in states))
    else:
        print(knobs_text.table(states, width=columns, colour=has_colour()))
    faults = knobs_text.foreign_lines(states)
    if faults:
        raise CheckFailed("; ".join(faults))


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
