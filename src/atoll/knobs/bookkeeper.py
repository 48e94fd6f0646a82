"""Turns switches so that no original value is lost: a state machine that does no I/O.

`settle`, `turn` and `undo` are generators. They yield one step at a time (`Read`, `Write`,
`Keep`), receive its answer or its OSError, and return a `Report`. The process that runs them may
die between any two steps. This is write-ahead logging: the journal records what will be written
before it is written, and `settle`, with which every command begins, reads what happened to it.

- An interrupted set stands if every switch has its new value; otherwise it is rolled back.
- An interrupted undo is completed.
- A switch with neither the old nor the new value was changed by another program: it is reported,
  left alone, and stays in the journal. So does a switch that cannot be read or written.
- The journal of an earlier boot is dropped; nothing is written to a switch.

A set turns all of its switches or none. A second set keeps the first one's `original`. If another
program has meanwhile given a switch the requested value, the set adopts that value as Atoll's own.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from atoll.knobs.switch_notes import Kind, Note
from atoll.schema.knobs import Action, Journal, Switch


@dataclass(frozen=True, slots=True)
class Read:
    """Its answer is the value."""

    path: str


@dataclass(frozen=True, slots=True)
class Write:
    path: str
    value: str


@dataclass(frozen=True, slots=True)
class Keep:
    """Make this the journal, durably."""

    journal: Journal


@dataclass(frozen=True, slots=True)
class Report:
    journal: Journal  # settled
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class Wanted:
    knob: str
    path: str
    value: str | None  # None: its present value, which stays and is part of its knob's value


Step = Read | Write | Keep
Run = Generator[Step, str, Report]


@dataclass(frozen=True, slots=True)
class _Way:
    """A switch that is to change from the value that Atoll answers for to another."""

    switch: Switch
    start: str
    goal: str


@dataclass(slots=True)
class Bookkeeper:
    """The state of one command. `whole`: the knobs whose switches form one value together."""

    boot_id: str
    now_unix_s: float
    whole: frozenset[str]
    _notes: list[Note] = field(default_factory=list)
    _values: dict[str, str] = field(default_factory=dict)  # path -> value when last read

    def settle(self, journal: Journal | None) -> Run:
        """Completes or rolls back an interrupted action, and drops the switches of another boot."""
        if journal is None:
            return self._report(self._journal(()))
        if journal.boot_id != self.boot_id:
            for switch in journal.switches:
                self._note(Kind.DROPPED, switch, original=switch.original)
            stale, journal = journal, self._journal(())
            if stale.switches:
                yield Keep(journal)
        running = [switch for switch in journal.switches if switch.next is not None]
        if not running:
            return self._report(journal)
        yield from self._read(self._with_sisters(journal, running))
        if journal.action is Action.UNDO:
            journal = yield from self._go(journal, _undoing(running), Kind.FINISHED, Kind.FINISHED)
        elif all(self._values.get(switch.path) == switch.next for switch in running):
            for switch in running:
                self._note(Kind.FINISHED, switch, now=switch.next or "")
            journal = self._settled(journal, {s.path: s.next or s.ours for s in running})
        else:
            ways = _taking_back(self._with_sisters(journal, running))
            journal = yield from self._go(journal, ways, Kind.TAKEN_BACK, Kind.TAKEN_BACK)
        yield Keep(journal)
        return self._report(journal)

    def turn(self, journal: Journal, wanted: Sequence[Wanted]) -> Run:
        """Turns all or none: a refusal half way rolls back the others. `journal` is settled."""
        yield from self._read(wanted)
        begun = self._begun(journal, wanted)
        if begun is None:
            return self._report(journal)
        running = [switch for switch in begun.switches if switch.next is not None]
        if not running:
            settled = self._settled(begun, {})
            if settled.switches != journal.switches:
                yield Keep(settled)
            return self._report(settled)
        yield Keep(begun)
        for switch in running:
            refused = yield from self._put(switch.path, switch.next or "")
            if refused:
                self._note(Kind.REFUSED, switch, before=switch.next or "", error=refused)
                ways = _taking_back(self._with_sisters(begun, running))
                settled = yield from self._go(begun, ways, Kind.TAKEN_BACK, None)
                break
        else:
            for switch in running:
                self._note(Kind.TURNED, switch, now=switch.next or "", before=switch.ours)
            settled = self._settled(begun, {s.path: s.next or s.ours for s in running})
        yield Keep(settled)
        return self._report(settled)

    def undo(self, journal: Journal, knobs: Iterable[str]) -> Run:
        """Restores the originals. `journal` is settled."""
        names = set(knobs)
        chosen = [switch for switch in journal.switches if switch.knob in names]
        yield from self._read(chosen)
        writes = any(self._values.get(s.path) == s.ours != s.original for s in chosen)
        if writes:
            begun = {s.path: s.model_copy(update={"next": s.original}) for s in chosen}
            switches = [begun.get(s.path, s) for s in journal.switches]
            yield Keep(self._journal(switches, Action.UNDO))
        settled = yield from self._go(journal, _undoing(chosen), Kind.UNDONE, Kind.BACK)
        if writes or settled.switches != journal.switches:
            yield Keep(settled)
        return self._report(settled)

    def _begun(self, journal: Journal, wanted: Sequence[Wanted]) -> Journal | None:
        """The journal with the values to write; None, with notes, if they must not be written."""
        known = {switch.path: switch for switch in journal.switches}
        fault = False
        for each in wanted:
            value = self._values.get(each.path)
            switch = known.get(each.path)
            if value is None:
                fault = True  # a note reports it
                continue
            if switch is None:
                switch = Switch(knob=each.knob, path=each.path, original=value, ours=value)
            elif value not in (switch.ours, switch.original, each.value):
                self._note_foreign(switch)
                fault = True
                continue
            coming = each.value if each.value != value else None
            known[each.path] = switch.model_copy(update={"ours": value, "next": coming})
        if fault:
            return None
        for each in wanted:
            if known[each.path].next is None:
                self._note(Kind.SAME, known[each.path], now=self._values[each.path])
        running = {switch.knob for switch in known.values() if switch.next is not None}
        old = {switch.path for switch in journal.switches}
        switches = [
            switch
            for switch in known.values()
            if switch.next is not None
            or switch.path in old
            or (switch.knob in self.whole and switch.knob in running)
        ]
        return self._journal(switches, Action.SET if running else None)

    def _go(
        self, journal: Journal, ways: Sequence[_Way], done: Kind, already: Kind | None
    ) -> Generator[Step, str, Journal]:
        """Writes the goals to the switches that still have their start value, the last one first.

        Returns the settled journal; a switch that did not reach its goal stays in it.
        """
        reached = {way.switch.path: self._held(way) for way in ways}
        for unit in reversed(self._units(ways)):
            strange = [
                way.switch
                for way in unit
                if self._values.get(way.switch.path) not in (way.start, way.goal)
            ]
            for switch in strange:
                if switch.path in self._values:
                    self._note_foreign(switch)
            if strange:
                continue
            for way in reversed(unit):
                switch = way.switch
                if self._values[switch.path] == way.goal:
                    if already is not None and way.start != way.goal:
                        self._note(already, switch, now=way.goal)
                    continue
                refused = yield from self._put(switch.path, way.goal)
                if refused:
                    self._note(Kind.REFUSED, switch, before=way.goal, error=refused)
                    break
                reached[switch.path] = way.goal
                self._note(done, switch, now=way.goal, before=way.start)
        return self._settled(journal, reached)

    def _held(self, way: _Way) -> str:
        """The value that Atoll answers for if the switch does not move. Never the original before
        the switch has it again, since that would drop the switch."""
        if self._values.get(way.switch.path) == way.goal or way.start == way.switch.original:
            return way.goal
        return way.start

    def _put(self, path: str, value: str) -> Generator[Step, str, str]:
        """Writes, and reads the result. Returns why it failed; '' on success."""
        error = ""
        try:
            yield Write(path, value)
        except OSError as fault:
            error = fault.strerror or str(fault)
        try:
            got = yield Read(path)
        except OSError as fault:
            return error or fault.strerror or str(fault)
        if got == value:
            self._values[path] = value
            return ""
        # Whatever the kernel made of the written value is Atoll's too, and is rolled back.
        self._values[path] = got if error else value
        return error or f"the kernel changed it to {got!r}"

    def _read(self, items: Iterable[Switch | Wanted]) -> Generator[Step, str, None]:
        for item in items:
            self._values.pop(item.path, None)
            try:
                value = yield Read(item.path)
            except OSError as fault:
                error = fault.strerror or str(fault)
            else:
                if value and value.isascii() and value.isprintable():
                    self._values[item.path] = value
                    continue
                error = "contains no value that Atoll could restore"
            self._notes.append(Note(Kind.UNREADABLE, item.knob, item.path, error=error))

    def _units(self, ways: Sequence[_Way]) -> list[list[_Way]]:
        units: dict[str, list[_Way]] = {}
        for way in ways:
            knob = way.switch.knob
            units.setdefault(knob if knob in self.whole else way.switch.path, []).append(way)
        return list(units.values())

    def _with_sisters(self, journal: Journal, running: Sequence[Switch]) -> list[Switch]:
        """The running switches, and all other switches of knobs in `whole`."""
        paths = {switch.path for switch in running}
        whole = {switch.knob for switch in running} & self.whole
        return [s for s in journal.switches if s.path in paths or s.knob in whole]

    def _settled(self, journal: Journal, ours: Mapping[str, str]) -> Journal:
        """The journal with the reached values, without the switches that have their originals."""
        switches = [
            s.model_copy(update={"ours": ours.get(s.path, s.ours), "next": None})
            for s in journal.switches
        ]
        turned = {s.knob for s in switches if s.ours != s.original}
        return self._journal(
            s
            for s in switches
            if s.ours != s.original or (s.knob in self.whole and s.knob in turned)
        )

    def _journal(self, switches: Iterable[Switch], action: Action | None = None) -> Journal:
        return Journal(
            boot_id=self.boot_id,
            changed_unix_s=self.now_unix_s,
            action=action,
            switches=tuple(switches),
        )

    def _note(self, kind: Kind, switch: Switch, **values: str) -> None:
        self._notes.append(Note(kind, switch.knob, switch.path, **values))

    def _note_foreign(self, switch: Switch) -> None:
        self._note(
            Kind.FOREIGN,
            switch,
            now=self._values[switch.path],
            before=switch.ours,
            original=switch.original,
        )

    def _report(self, journal: Journal) -> Report:
        notes, self._notes = tuple(self._notes), []
        return Report(journal, notes)


def _undoing(switches: Iterable[Switch]) -> list[_Way]:
    return [_Way(switch, switch.ours, switch.original) for switch in switches]


def _taking_back(switches: Iterable[Switch]) -> list[_Way]:
    return [_Way(switch, switch.next or switch.ours, switch.ours) for switch in switches]
