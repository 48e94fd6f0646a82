"""Turns the knobs of a run of bench or tune inside its blocks, through the journal of `apply`.

Beside the journal lies a note with the values from before the run. It is on disk before the first
knob is turned, and is removed once every knob is restored or has a value of another program. A run
holds the note's lock; so a note without a holder is of a run that was killed or could not restore,
and the next one restores its values.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from pydantic import Field

from atoll.bench.axes import KNOB, Axis, Grid
from atoll.errors import AtollError, CheckFailed, NotPermitted, UsageError
from atoll.host.api import Host
from atoll.knobs.catalog import setting
from atoll.knobs.control import BOOT_ID, Control
from atoll.knobs.journal import JournalFolder
from atoll.knobs.switch_notes import Kind
from atoll.schema.base import Record, parse
from atoll.store.files import write_atomic
from atoll.store.locks import try_lock
from atoll.supervise.interrupts import shielded

Turn = Callable[[Mapping[str, str]], None]  # knob -> the value to set it to

_WAIT_S = 5.0
_KILLED = "an earlier run was killed with knobs turned"
_FAULTS = {Kind.FOREIGN, Kind.UNREADABLE, Kind.REFUSED}


class Before(Record):
    """The knobs that a run turns, with their values from before it."""

    format: Literal["atoll/bench-knobs"] = "atoll/bench-knobs"
    version: Literal[1] = 1
    boot_id: str
    values: dict[str, str] = Field(min_length=1)


def present_values(axes: Sequence[Axis], host: Host, folder: JournalFolder) -> dict[str, str]:
    """The value of each knob of the axes: in the axis's own words if it is one of its values.

    Raises UsageError for a value that a knob does not take, and for a knob whose present value
    could not be restored.
    """
    control, names = Control(host, folder), _knobs(axes)
    if not names:
        return {}
    states = {state.knob.name: state for state in control.show()[0]}
    before: dict[str, str] = {}
    for name, axis in names.items():
        state = states[name]
        present = setting(state.knob, state.values)
        if not present:
            raise UsageError(
                f"{name}: its present value cannot be restored by 'atoll apply', so it is not "
                "turned"
            )
        same = [value for value in axis.values if control.spelled(name, value) == present]
        before[name] = next(iter(same), present)
    return before


def without_twins(grid: Grid, host: Host, folder: JournalFolder) -> Grid:
    """The grid with each value of a knob once, in its first spelling: 60 and 060 are one. Raises
    UsageError for a value that a knob does not take."""
    control, found = Control(host, folder), []
    for name, axis in _knobs(grid.axes).items():
        first: dict[str, str] = {}
        for value in axis.values:
            first.setdefault(control.spelled(name, value) or value, value)
        found.append(Axis(axis.name, tuple(first.values())))
    return grid.having(*found)


def try_out(
    axes: Sequence[Axis], before: Mapping[str, str], host: Host, folder: JournalFolder
) -> None:
    """Turns every value once, so that what is refused is refused before the first block. Raises
    as `turning`."""
    with turning(before, host, folder) as turn:
        for name, axis in _knobs(axes).items():
            for value in axis.values:
                turn({name: value})


def _knobs(axes: Sequence[Axis]) -> dict[str, Axis]:
    return {axis.name.removeprefix(KNOB): axis for axis in axes if axis.name.startswith(KNOB)}


@contextmanager
def turning(
    before: Mapping[str, str],
    host: Host,
    folder: JournalFolder,
    say: Callable[[str], None] = lambda text: None,
) -> Iterator[Turn]:
    """What turns knobs during a run. Restores `before` at the end.

    Raises NotPermitted without the privilege, and CheckFailed if another run turns knobs, or if
    another program has changed one. If the run ends by an exception, `say` hears what could not be
    restored.
    """
    if not before:
        yield lambda knobs: None
        return
    control, now = Control(host, folder), dict(before)

    def turn(knobs: Mapping[str, str]) -> None:
        wanted = {name: value for name, value in knobs.items() if now[name] != value}
        _set(control, wanted)
        now.update(wanted)

    with _held(folder, host) as note:
        _require_unchanged(control, before)
        boot_id = host.read_text(BOOT_ID).strip()
        text = Before(boot_id=boot_id, values=dict(before)).model_dump_json() + "\n"
        write_atomic(note, text)
        try:
            yield turn
        except BaseException:  # it says why the run ends, so no other takes its place
            for fault in _put_back(note, control, before).values():
                say(str(fault))
            raise
        for fault in _put_back(note, control, before).values():
            raise fault


def restore(host: Host, folder: JournalFolder) -> str:
    """Restores what a killed run left; returns what was done or what is in doubt, '' if nothing.

    Raises CheckFailed if a knob cannot be restored.
    """
    if not _note(folder).exists():
        return ""
    try:
        # Another that restores is soon done; what it has not yet restored must not be measured.
        with _held(folder, host, wait_s=_WAIT_S) as note:
            if not note.exists():
                return ""  # the other one has done it, or the run has ended
            left = parse(Before, note.read_text(), where=str(note))
            if left.boot_id != host.read_text(BOOT_ID).strip():
                note.unlink()
                return f"{_KILLED}; the boot since has reset them"
            faults = _put_back(note, Control(host, folder), left.values)
    except Busy:
        return ""
    except NotPermitted:
        return (
            "a run of root turns knobs now, or was killed and left some turned; 'atoll knobs' "
            "lists them, and the next 'atoll bench' or 'atoll tune' as root restores them"
        )
    if note.exists():
        raise CheckFailed(
            f"{_KILLED}, and not all can be restored: "
            f"{'; '.join(map(str, faults.values()))}; set them yourself, then remove {note}"
        )
    done = [f"{name}={value}" for name, value in left.values.items() if name not in faults]
    words = [f"restored {', '.join(done)}"] if done else []
    words += [f"{name} keeps the value that another program has set" for name in faults]
    return f"{_KILLED}; {'; '.join(words)}"


def _put_back(note: Path, control: Control, values: Mapping[str, str]) -> dict[str, AtollError]:
    """Restores each knob on its own, so that no fault of one keeps another turned; returns the
    faults by knob. The note stays if one is to be tried again: a value of another program is not.
    """
    faults: dict[str, AtollError] = {}
    with shielded():
        for name, value in values.items():
            try:
                _set(control, {name: value})
            except AtollError as fault:
                faults[name] = fault
        if all(isinstance(fault, Foreign) for fault in faults.values()):
            note.unlink(missing_ok=True)
    return faults


class Foreign(CheckFailed):
    """Another program has set a knob."""


class Busy(CheckFailed):
    """Another run turns knobs."""


def _note(folder: JournalFolder) -> Path:
    return folder.folder / "bench.json"


def _require_unchanged(control: Control, before: Mapping[str, str]) -> None:
    """Raises CheckFailed if another run or program has turned a knob since it was read."""
    states = {state.knob.name: state for state in control.show()[0]}
    for name, value in before.items():
        now = setting(states[name].knob, states[name].values)
        if control.spelled(name, value) != now:
            raise CheckFailed(
                f"{name}: was {value} when the run began and is {now} now; start again"
            )


@contextmanager
def _held(folder: JournalFolder, host: Host, *, wait_s: float = 0.0) -> Iterator[Path]:
    """The note, with its lock. Raises NotPermitted or Busy."""
    lock = folder.folder / "bench.lock"
    try:
        with folder.locked(host):  # makes the folder and checks who may write there
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(lock, flags, 0o600)
    except NotPermitted as fault:
        raise NotPermitted(f"only root turns knobs: {fault}; use sudo, or vary no knob") from None
    try:
        until_s = host.monotonic() + wait_s
        while not try_lock(descriptor):
            if host.monotonic() < until_s:
                host.sleep(0.05)
                continue
            raise Busy(f"{lock}: held by another run that turns knobs; wait until it ends")
        yield _note(folder)
    finally:
        os.close(descriptor)


def _set(control: Control, values: Mapping[str, str]) -> None:
    if not values:
        return
    outcome = control.set(list(values.items()))
    words = ", ".join(f"{name}={value}" for name, value in values.items())
    if outcome.script:
        raise NotPermitted(f"{words}: {outcome.why}; run it as root (sudo)")
    faults = [note for note in outcome.notes if note.kind in _FAULTS]
    if faults:
        first = faults[0]
        if first.kind is Kind.FOREIGN:
            raise Foreign(
                f"{words}: another program has set {first.path} to {first.now} meanwhile; stop it, "
                "then start again (a bench goes on with --resume)"
            )
        raise NotPermitted(f"{words}: {first.path}: {first.error}")
