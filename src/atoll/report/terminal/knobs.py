"""Knobs for a terminal: the table, the page of one knob, what a command did. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from atoll.knobs.catalog import KNOBS, setting, shown
from atoll.knobs.control import KnobState
from atoll.knobs.switch_notes import Kind, Note
from atoll.report.numbers import cut
from atoll.report.terminal.grid import grid, printed
from atoll.schema.text import one_line

_LONGEST = 60


def table(states: Sequence[KnobState], *, width: int, colour: bool) -> str:
    """Every knob; the column BEFORE only if a knob is set."""
    any_set = any(state.switches for state in states)
    rows = grid(header="bold", gap=1)
    rows.add_column("KNOB", no_wrap=True)
    rows.add_column("NOW", overflow="fold", max_width=24)
    if any_set:
        rows.add_column("BEFORE", overflow="fold", max_width=16)
    rows.add_column("DESCRIPTION")
    for state in states:
        row = [state.knob.name, cut(now(state), _LONGEST) or "not on this machine"]
        rows.add_row(*row, *([cut(before(state), _LONGEST)] if any_set else []), state.knob.title)
    return printed(rows, width=width, colour=colour).rstrip("\n")


def now(state: KnobState) -> str:
    return one_line(shown(state.knob, state.values)) if state.values else ""


def before(state: KnobState) -> str:
    """The original values of what is set; empty if nothing is."""
    changed = {s.path: s.original for s in state.switches if s.original != (s.next or s.ours)}
    return shown(state.knob, changed) if changed else ""


def page(state: KnobState, *, width: int) -> str:
    """Everything about one knob."""
    knob = state.knob

    def entry(name: str, text: str) -> str:
        return textwrap.fill(
            text,
            width,
            initial_indent=f"  {name:<10}",
            subsequent_indent=" " * 12,
            break_on_hyphens=False,
        )

    lines = [f"{knob.name}: {knob.title}", entry("now", now(state) or "not on this machine")]
    if state.effective:
        lines.append(entry("in effect", shown(knob, state.effective)))
    if state.switches:
        lines.append(entry("before", before(state) or "the same"))
    lines += [entry("takes", knob.takes), entry("does", knob.does)]
    lines += [entry("advice" if first else "", text) for first, text in _firsts(knob.advice)]
    lines.append(entry("instead", knob.instead))
    lines += [entry("file" if first else "", path) for first, path in _firsts(knob.patterns)]
    return "\n".join(lines)


def foreign_lines(states: Iterable[KnobState]) -> list[str]:
    """What somebody else changed since Atoll set it."""
    lines = []
    for state in states:
        name = state.knob.name
        if state.foreign:
            here = {switch.path: state.values[switch.path] for switch in state.foreign}
            set_to = {switch.path: switch.ours for switch in state.foreign}
            original = {switch.path: switch.original for switch in state.foreign}
            lines.append(_foreign(name, here, set_to, original))
        if state.lost:
            original = {switch.path: switch.original for switch in state.lost}
            lines.append(
                f"{name}: can no longer be read, so it cannot be undone "
                f"(it was {_text(name, original)}): {', '.join(sorted(original))}"
            )
    return lines


def done_lines(notes: Sequence[Note]) -> list[str]:
    """What was done, a line for each knob and kind of action."""
    changed = {note.knob for note in notes if note.kind is Kind.TURNED}
    shown_notes = [
        note
        for note in notes
        if note.kind in _DONE and not (note.kind is Kind.SAME and note.knob in changed)
    ]
    return [_DONE[kind](knob, group) for kind, knob, group in _grouped(shown_notes)]


def fault_lines(notes: Sequence[Note]) -> list[str]:
    """What could not be done."""
    return [
        _foreign(
            knob,
            {note.path: note.now for note in group},
            {note.path: note.before for note in group},
            {note.path: note.original for note in group},
        )
        if kind is Kind.FOREIGN
        else "; ".join(
            f"{knob}: {note.path}: "
            + (f"{note.before} refused: " if kind is Kind.REFUSED else "")
            + note.error
            for note in group
        )
        for kind, knob, group in _grouped([note for note in notes if note.kind not in _DONE])
    ]


def _grouped(notes: Iterable[Note]) -> list[tuple[Kind, str, list[Note]]]:
    def order(note: Note) -> tuple[int, str]:
        return note.kind.value, note.knob

    return [
        (group[0].kind, group[0].knob, group)
        for group in (list(each) for _, each in groupby(sorted(notes, key=order), order))
    ]


def _text(knob: str, values: dict[str, str]) -> str:
    return cut(shown(KNOBS[knob], values), _LONGEST)


def _now(knob: str, group: Sequence[Note]) -> str:
    return _text(knob, {note.path: note.now for note in group})


def _before(knob: str, group: Sequence[Note]) -> str:
    return _text(knob, {note.path: note.before for note in group})


def _original(knob: str, group: Sequence[Note]) -> str:
    return _text(knob, {note.path: note.original for note in group})


_DONE: dict[Kind, Callable[[str, list[Note]], str]] = {
    Kind.TURNED: lambda knob, group: f"{knob}: {_before(knob, group)} -> {_now(knob, group)}",
    Kind.SAME: lambda knob, group: f"{knob}: already {_now(knob, group)}",
    Kind.UNDONE: lambda knob, group: (
        f"{knob}: {_before(knob, group)} -> {_now(knob, group)}, as before"
    ),
    Kind.BACK: lambda knob, group: (
        f"{knob}: already {_now(knob, group)}; somebody else restored it"
    ),
    Kind.FINISHED: lambda knob, group: (
        f"{knob}: {_now(knob, group)}; finished an interrupted command"
    ),
    Kind.TAKEN_BACK: lambda knob, group: (
        f"{knob}: {_now(knob, group)} again; a failed set was undone"
    ),
    Kind.DROPPED: lambda knob, group: (
        f"{knob}: set before the last boot (it was {_original(knob, group)}); forgotten"
    ),
}


def _foreign(
    knob: str, here: dict[str, str], set_to: dict[str, str], original: dict[str, str]
) -> str:
    takes_over = setting(KNOBS[knob], here)
    return (
        f"{knob}: somebody else changed it to {_text(knob, here)} after it was set to "
        f"{_text(knob, set_to)} (originally {_text(knob, original)}); left unchanged"
    ) + (f". 'atoll apply {knob}={takes_over}' takes it over" if takes_over else "")


def _firsts(texts: Sequence[str]) -> list[tuple[bool, str]]:
    return [(index == 0, text) for index, text in enumerate(texts)]
