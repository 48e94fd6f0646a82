"""The operations behind the command line: show the knobs, set some, undo some.

Each begins by settling an interrupted command. A user who may not write the journal changes
nothing; the outcome then contains a script for root.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from atoll.errors import AtollError, CheckFailed, NotPermitted, UsageError
from atoll.host.api import Host
from atoll.knobs.bookkeeper import Bookkeeper, Run, Wanted, Write
from atoll.knobs.catalog import KNOBS, Knob, knob_named, setting, shown
from atoll.knobs.execution import DryRun, LiveExecutor, execute
from atoll.knobs.files import files
from atoll.knobs.journal import JournalFolder
from atoll.knobs.parsers import KnobFiles
from atoll.knobs.script import Printed, script
from atoll.knobs.switch_notes import Note
from atoll.knobs.values import value_of
from atoll.schema.knobs import Journal, Switch

BOOT_ID = "/proc/sys/kernel/random/boot_id"
_WAIT_S = 10.0

Work = Callable[[Bookkeeper, Journal], Run]


@dataclass(frozen=True, slots=True)
class Outcome:
    notes: tuple[Note, ...]
    script: str = ""  # for root, if this user may not write
    why: str = ""  # this user may not write
    interrupted: bool = False  # the script only settles an interrupted command


@dataclass(frozen=True, slots=True)
class KnobState:
    knob: Knob
    values: Mapping[str, str]  # path -> value; empty if the machine has no such knob
    switches: tuple[Switch, ...]  # those that Atoll has set, or was about to set
    effective: Mapping[str, str]  # path -> what the hardware made of it, if known

    @property
    def foreign(self) -> list[Switch]:
        """The switches that another program has changed since Atoll set them."""
        return [
            switch
            for switch in self.switches
            if self.values.get(switch.path, switch.ours) not in (switch.ours, switch.next)
        ]

    @property
    def lost(self) -> list[Switch]:
        """The switches that are no longer readable: the interrupt is gone, the CPUs are offline."""
        return [switch for switch in self.switches if switch.path not in self.values]


def present(host: Host, names: Sequence[str]) -> dict[str, str]:
    """The values of those of these knobs that the machine has. Reads no journal."""
    found = {name: shown(KNOBS[name], _values(host, _paths(KNOBS[name], host))) for name in names}
    return {name: value for name, value in found.items() if value}


def _paths(knob: Knob, host: Host) -> dict[str, str]:
    return {path: path for path in files(knob.patterns, host)}


def _values(host: Host, files_of: Mapping[str, str]) -> dict[str, str]:
    """The values of those files that are readable, under the given names."""
    values: dict[str, str] = {}
    for name, path in files_of.items():
        with contextlib.suppress(OSError):
            values[name] = value_of(host.read_text(path))
    return values


class Control:
    def __init__(self, host: Host, folder: JournalFolder) -> None:
        self._host = host
        self._folder = folder

    def show(self) -> tuple[list[KnobState], Outcome]:
        """Every knob's state. Settles if this user may, unless another command is running."""
        outcome = Outcome(())
        if self._folder.text() is not None:
            with contextlib.suppress(CheckFailed):  # the other command settles it
                outcome = self._carry_out("atoll knobs", None, wait_s=0)
        journal = self._folder.read()
        switches: tuple[Switch, ...] = ()
        if journal is not None and journal.boot_id == self._boot_id():
            switches = journal.switches
        elif outcome.script:  # root's next command drops them; until then they mean nothing
            outcome = Outcome(())
        return [self._state(knob, switches) for knob in KNOBS.values()], outcome

    def turned(self) -> list[str]:
        """The knobs that Atoll has set, by the journal as it is; none if it cannot be read. Settles
        nothing."""
        journal = None
        with contextlib.suppress(AtollError):  # `show` reports it
            journal = self._folder.read()
        if journal is None or journal.boot_id != self._boot_id():
            return []
        return list(dict.fromkeys(switch.knob for switch in journal.switches))

    def set(self, asked: Sequence[tuple[str, str]], *, on_paper: bool = False) -> Outcome:
        """Turns all of (knob, value), or none. `on_paper`: writes nothing, and the outcome has the
        script. Raises UsageError before anything is written."""
        names = [knob_named(name).name for name, _ in asked]
        for name in names:
            if names.count(name) > 1:
                raise UsageError(f"{name}: given twice; give each knob once")
        wanted = self._wanted(asked)
        title = " ".join(["atoll apply", *(f"{name}={text}" for name, text in asked)])
        return self._do(title, lambda keeper, journal: keeper.turn(journal, wanted), on_paper)

    def spelled(self, name: str, text: str) -> str:
        """The value in the words in which the present one is read; '' if there are none. Raises
        as `set`."""
        values = {each.path: each.value for each in self._wanted([(name, text)])}
        now = _values(self._host, {path: path for path in values})
        return setting(KNOBS[name], {path: value or now[path] for path, value in values.items()})

    def undo(self, names: Sequence[str], *, on_paper: bool = False) -> Outcome:
        """Restores the originals of these knobs, or of all knobs if there are no names.
        `on_paper`: as for `set`."""
        chosen = [knob_named(name).name for name in names] or list(KNOBS)
        title = " ".join(["atoll undo", *names])
        return self._do(title, lambda keeper, journal: keeper.undo(journal, chosen), on_paper)

    def _do(self, title: str, work: Work, on_paper: bool) -> Outcome:
        if on_paper:
            return self._on_paper(title, work, self._keeper(), "")
        return self._carry_out(title, work)

    def _carry_out(
        self,
        title: str,
        work: Work | None,
        *,
        wait_s: float = _WAIT_S,
    ) -> Outcome:
        keeper = self._keeper()
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(self._folder.locked(self._host, wait_s=wait_s))
            except NotPermitted as fault:
                return self._on_paper(title, work, keeper, str(fault))
            executor = LiveExecutor(self._host, self._folder)
            settled = execute(keeper.settle(self._folder.read()), executor)
            if work is None:
                return Outcome(settled.notes)
            return Outcome(settled.notes + execute(work(keeper, settled.journal), executor).notes)

    def _keeper(self) -> Bookkeeper:
        whole = frozenset(knob.name for knob in KNOBS.values() if knob.whole)
        return Bookkeeper(self._boot_id(), time.time(), whole)

    def _on_paper(
        self,
        title: str,
        work: Work | None,
        keeper: Bookkeeper,
        why: str,
    ) -> Outcome:
        text = self._folder.text() or ""
        journal = self._folder.parsed(text) if text else None
        dry_run = DryRun(self._host)
        report = execute(keeper.settle(journal), dry_run)
        settled, notes = report.journal, report.notes
        interrupted = any(isinstance(step, Write) for step in dry_run.steps)
        if work is not None and not interrupted:
            notes += execute(work(keeper, settled), dry_run).notes
        if not dry_run.steps:
            return Outcome(notes)
        printed = Printed(title, dry_run.steps, dry_run.seen, text, settled, self._folder.folder)
        return Outcome(notes, script(printed), why, interrupted)

    def _wanted(self, asked: Sequence[tuple[str, str]]) -> list[Wanted]:
        return [each for name, text in asked for each in self._wanted_of(KNOBS[name], text)]

    def _wanted_of(self, knob: Knob, text: str) -> list[Wanted]:
        paths = files(knob.patterns, self._host)
        if not paths:
            raise UsageError(f"{knob.name}: not available on this machine")
        try:
            values = knob.parse(text, KnobFiles(self._host, paths))
        except (UsageError, ValueError) as fault:
            raise UsageError(f"{knob.name}={text}: {fault}; it takes {knob.takes}") from None
        except OSError as fault:
            raise NotPermitted(f"{knob.name}: {fault.filename}: {fault.strerror}") from None
        return [Wanted(knob.name, path, values[path]) for path in paths if path in values]

    def _state(self, knob: Knob, switches: Sequence[Switch]) -> KnobState:
        ours = tuple(switch for switch in switches if switch.knob == knob.name)
        paths = _paths(knob, self._host)
        sisters = {path: f"{path.rpartition('/')[0]}/{knob.effective}" for path in paths}
        effective = _values(self._host, sisters) if knob.effective else {}
        return KnobState(knob, _values(self._host, paths), ours, effective)

    def _boot_id(self) -> str:
        return self._host.read_text(BOOT_ID).strip()
