"""What `atoll knobs`, `apply` and `undo` share: the journal, and the report. Not a command."""

from __future__ import annotations

from atoll.errors import CheckFailed, NotPermitted
from atoll.host.local import LocalHost
from atoll.knobs.control import Control, Outcome
from atoll.knobs.journal import JournalFolder
from atoll.knobs.switch_notes import Kind
from atoll.report.terminal import knobs as knobs_text


def control() -> Control:
    return Control(LocalHost(), JournalFolder())


def finish(outcome: Outcome) -> None:
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


def rehearse(outcome: Outcome, *, script: bool) -> None:
    """Print what would be done, or the script that does it. Raises CheckFailed for what could not
    be done."""
    if script and outcome.script:
        print(outcome.script, end="")
    elif not script:
        for line in knobs_text.done_lines(outcome.notes):
            print(f"would set {line}" if " -> " in line else line)
    if faults := knobs_text.fault_lines(outcome.notes):
        raise CheckFailed("; ".join(faults))
