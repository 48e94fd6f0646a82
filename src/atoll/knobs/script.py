"""Prints a shell script that does for root what `atoll apply` or `undo` would do. Pure.

The script takes the same steps in the same order: the same lock, the same journal, synced before a
switch is written. If it is killed half way, the next `atoll knobs` settles it; what it has set is
undone by `atoll undo` or by the script that this prints. It refuses to run if anything has
changed since it was printed. It needs POSIX sh, coreutils and flock.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from atoll.knobs.bookkeeper import Keep, Write
from atoll.knobs.journal import dumped
from atoll.schema.knobs import Action, Journal

_HEAD = r"""#!/bin/sh
# {title}
# For root: sh FILE. To undo it: atoll undo, which prints such a script, too.
set -eu
LC_ALL=C; export LC_ALL
folder={folder}
journal=$folder/journal.json

fail() {{ printf 'atoll: %s\n' "$1" >&2; exit "$2"; }}

# The value of a switch; of a choice (always [madvise] never) the chosen word.
value() {{
    text=$(cat "$1") || return 1
    case $text in *\[*\]*) text=${{text#*\[}}; text=${{text%%\]*}} ;; esac
    printf '%s' "$text"
}}

expect() {{
        [ "$(value "$1")" = "$2" ] ||
            fail "$1: changed since this script was printed; print a new one" 1
}}

turn() {{ printf '%s\n' "$2" > "$1" && [ "$(value "$1")" = "$2" ]; }}

# The journal is on disk when this returns.
keep() {{
    new=$folder/.journal.json.new
    printf '%s\n' "$1" > "$new" && sync "$new" && mv -f "$new" "$journal" && sync "$folder" ||
        fail "$journal: cannot be written" 6
}}

[ "$(cat /proc/sys/kernel/random/boot_id)" = {boot_id} ] ||
        fail 'printed in another boot or on another machine; print a new script' 1
umask 022
mkdir -p "$folder" && (umask 077; touch "$folder/lock") ||
        fail "$folder: cannot be written; run this script as root" 4
exec 9>> "$folder/lock"
flock -w 10 9 || fail "$folder/lock: held by another command on knobs; try again" 1
[ "$(cat "$journal" 2>/dev/null)" = {was} ] ||
        fail "$journal: changed since this script was printed; print a new one" 1
"""

_BACK = """
turned=0
back() {{
{lines}
    keep {journal}
        fail "$1: the kernel refused it; the earlier changes were undone" 4
}}
"""


@dataclass(frozen=True, slots=True)
class Printed:
    """The parts of a script. `steps` begin with the journal, before anything is written."""

    title: str
    steps: Sequence[Write | Keep]
    seen: Mapping[str, str]  # path -> value, of every switch that the steps depend on
    text: str  # of the journal on disk; '' without one
    settled: Journal  # the journal to restore if the kernel refuses a value
    folder: Path


def script(printed: Printed) -> str:
    quote = shlex.quote
    parts = [
        _HEAD.format(
            title=" ".join(printed.title.split()),
            folder=quote(str(printed.folder)),
            boot_id=quote(printed.settled.boot_id),
            was=quote(printed.text.rstrip("\n")),
        )
    ]
    parts += [f"expect {quote(path)} {quote(value)}" for path, value in printed.seen.items()]
    takes_back = any(
        isinstance(step, Keep) and step.journal.action is Action.SET for step in printed.steps
    )
    if takes_back:
        parts.append(_back(printed))
    for step in printed.steps:
        if isinstance(step, Keep):
            parts.append(f"keep {quote(dumped(step.journal).rstrip())}")
            continue
        turn = f"turn {quote(step.path)} {quote(step.value)}"
        if takes_back:
            parts.append(f"turned=$((turned + 1)); {turn} || back {quote(step.path)}")
        else:  # it stays begun in the journal, and the next command continues
            refused = f"{step.path}: the kernel refused it; see atoll knobs"
            parts.append(f"{turn} || fail {quote(refused)} 4")
    return "\n".join(parts) + "\n"


def _back(printed: Printed) -> str:
    """The function that rolls back the first $turned writes, the last one first."""
    writes = [step for step in printed.steps if isinstance(step, Write)]
    lines = [
        f"    [ $turned -lt {number} ] || "
        f"turn {shlex.quote(step.path)} {shlex.quote(printed.seen[step.path])} || exit 4"
        for number, step in reversed(list(enumerate(writes, 1)))
    ]
    journal = shlex.quote(dumped(printed.settled).rstrip())
    return _BACK.format(lines="\n".join(lines), journal=journal)
