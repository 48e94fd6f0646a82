"""The knobs' state machine against a model: commands, kills, refusals, other programs, reboots.

Invariants after every single step, whatever is killed: nothing is written that the journal on disk
has not announced, with the value before; no other program's value is overwritten; a switch leaves
the journal only when it has its original value again.
"""

from __future__ import annotations

import errno

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from atoll.knobs.bookkeeper import Bookkeeper, Report, Run, Wanted
from atoll.knobs.execution import execute
from atoll.knobs.switch_notes import Kind
from atoll.schema.knobs import Journal

KNOB = {
    "/proc/a": "a",
    "/sys/b1": "b",
    "/sys/b2": "b",
    "/sys/b3": "b",
    "/sys/w/auto": "w",
    "/sys/w/node0": "w",
    "/sys/w/node1": "w",
}
WHOLE = frozenset({"w"})
AUTO, NODES = "/sys/w/auto", ("/sys/w/node0", "/sys/w/node1")
VALUES = ["1", "2", "3"]
AT_BOOT = dict.fromkeys(KNOB, "5") | {AUTO: "true"}
Settings = st.dictionaries(
    st.sampled_from(["/proc/a", "/sys/b1", "/sys/b2", "/sys/b3"]),
    st.sampled_from(VALUES),
    max_size=4,
)
Weights = st.none() | st.tuples(st.sampled_from(VALUES), st.none() | st.sampled_from(VALUES))


class Killed(BaseException):
    """kill -9: nothing runs after it."""


class World:
    """The kernel's switches, the disk, and the hands that work on both until they die."""

    def __init__(self) -> None:
        self.values = dict(AT_BOOT)
        self.disk: Journal | None = None
        self.foreign: set[str] = set()  # last written by somebody else, since an entry began
        self.refused: set[str] = set()
        self.adjusted: set[str] = set()
        self.steps_to_live = 1000

    def read(self, path: str) -> str:
        self._live()
        return self.values[path]

    def write(self, path: str, value: str) -> None:
        self._live()
        self._check_announced(path, value)
        if path in self.refused:
            raise OSError(errno.EINVAL, "Invalid argument", path)
        self.foreign.discard(path)
        self.put(path, "4" if path in self.adjusted else value)

    def keep(self, journal: Journal) -> None:
        self._live()
        old = {switch.path: switch for switch in self.disk.switches} if self.disk else {}
        new = {switch.path: switch for switch in journal.switches}
        if self.disk is not None and self.disk.boot_id == journal.boot_id:
            for path in old.keys() & new.keys():
                assert old[path].original == new[path].original, "an original was lost"
            for path in old.keys() - new.keys():
                # The parts of a knob that we did not turn may have been changed by somebody else.
                theirs = KNOB[path] in WHOLE and path in self.foreign
                assert theirs or self.values[path] == old[path].original, "dropped and not back"
        for path in new.keys() - old.keys():
            self.foreign.discard(path)
        self.disk = journal

    def put(self, path: str, value: str) -> None:
        """As the kernel does it: a weight ends auto, and auto computes the weights."""
        self.values[path] = value
        if path in NODES:
            self.values[AUTO] = "false"
        if (path, value) == (AUTO, "true"):
            self.values |= dict.fromkeys(NODES, AT_BOOT[NODES[0]])

    def _check_announced(self, path: str, value: str) -> None:
        assert self.disk is not None and self.disk.action is not None
        found = {switch.path: switch for switch in self.disk.switches}[path]
        assert value in (found.next, found.ours), "written and not announced"
        assert path not in self.foreign or self.values[path] in (found.ours, found.next)
        if (path, value) == (AUTO, "true"):
            assert all(self.values[node] == AT_BOOT[node] for node in NODES), "weights overwritten"

    def _live(self) -> None:
        if self.steps_to_live == 0:
            raise Killed
        self.steps_to_live -= 1


class Commands(RuleBasedStateMachine):
    @initialize()
    def boot(self) -> None:
        self.world = World()
        self.boots = 0

    def command(self, steps_to_live: int, work: str, *arguments: object) -> Report | None:
        """Settle, then do the work; None if it was killed."""
        keeper = Bookkeeper(f"boot-{self.boots}", 0.0, WHOLE)
        self.world.steps_to_live = steps_to_live
        try:
            report = execute(keeper.settle(self.world.disk), self.world)
            run: Run = getattr(keeper, work)(report.journal, *arguments)
            report = execute(run, self.world)
        except Killed:
            return None
        finally:
            self.world.steps_to_live = 1000
        assert report.journal.action is None
        assert all(switch.next is None for switch in report.journal.switches)
        if self.world.disk is None:
            assert not report.journal.switches
        else:
            assert report.journal.switches == self.world.disk.switches
        return report

    @rule(asked=Settings, weights=Weights, live=st.integers(0, 60))
    def set_some(
        self, asked: dict[str, str | None], weights: tuple[str, str | None] | None, live: int
    ) -> None:
        if weights is not None:
            asked = asked | {AUTO: "false"} | dict(zip(NODES, weights, strict=True))
        wanted = [Wanted(KNOB[path], path, value) for path, value in asked.items()]
        before, disk = dict(self.world.values), self.world.disk
        settled = disk is not None and disk.boot_id == self.boot_id and disk.action is None
        ours = {s.path: (s.ours, s.original) for s in disk.switches} if disk and settled else {}
        report = self.command(live, "turn", wanted)
        if report is None:
            return
        after = self.world.values
        kinds = {note.kind for note in report.notes}
        if kinds <= {Kind.TURNED, Kind.SAME}:
            assert all(after[path] == value for path, value in asked.items() if value is not None)
            # What only stays does not take somebody else's value over.
            stays = [path for path, value in asked.items() if value is None and path in ours]
            assert all(before[path] in ours[path] for path in stays)
        elif not self.world.refused and Kind.REFUSED not in kinds and not live < 60:
            assert all(after[path] == before[path] for path in asked)

    @rule(knobs=st.sets(st.sampled_from("abw")), live=st.integers(0, 60))
    def undo_some(self, knobs: set[str], live: int) -> None:
        disk = self.world.disk
        current = disk is not None and disk.boot_id == self.boot_id
        originals = {s.path: s.original for s in disk.switches} if disk and current else {}
        report = self.command(live, "undo", knobs)
        if report is None:
            return
        faults = {note.path for note in report.notes if note.kind in (Kind.FOREIGN, Kind.REFUSED)}
        left = {switch.path for switch in report.journal.switches if switch.knob in knobs}
        for path in left:
            assert path in faults or KNOB[path] in {KNOB[each] for each in faults} & WHOLE
        for path in originals.keys() - left:
            if KNOB[path] in knobs and path not in self.world.foreign:
                assert self.world.values[path] == originals[path]

    @property
    def boot_id(self) -> str:
        return f"boot-{self.boots}"

    @rule(path=st.sampled_from(sorted(KNOB)), value=st.sampled_from(VALUES))
    def somebody_else(self, path: str, value: str) -> None:
        self.world.put(path, "true" if path == AUTO else value)
        self.world.foreign |= {path} if path != AUTO else {AUTO, *NODES}

    @rule(refused=st.sets(st.sampled_from(sorted(KNOB)), max_size=2))
    def refuse(self, refused: set[str]) -> None:
        self.world.refused = refused

    @rule(adjusted=st.sets(st.sampled_from(["/proc/a", "/sys/b1", "/sys/b2"]), max_size=1))
    def adjust(self, adjusted: set[str]) -> None:
        self.world.adjusted = adjusted

    @precondition(lambda self: self.boots < 2)
    @rule()
    def reboot(self) -> None:
        self.boots += 1
        self.world.values = dict(AT_BOOT)
        self.world.foreign = set()

    @rule()
    def everything_can_be_undone(self) -> None:
        """Where nobody interferes, one undo brings the machine back."""
        disk, hindered = self.world.disk, self.world.refused | self.world.adjusted
        if disk is None or disk.boot_id != self.boot_id or hindered:
            return
        self.command(1000, "undo", set())  # settles what a kill has left
        assert self.world.disk is not None
        switches = self.world.disk.switches
        clean = all(self.world.values[s.path] in (s.ours, s.original) for s in switches)
        self.command(1000, "undo", {"a", "b", "w"})
        if clean:
            assert not self.world.disk.switches
            assert all(self.world.values[s.path] == s.original for s in switches)

    @invariant()
    def the_journal_is_bounded(self) -> None:
        disk = getattr(self, "world", World()).disk
        assert disk is None or len(disk.switches) <= len(KNOB)


TestCommands = Commands.TestCase
TestCommands.settings = settings(max_examples=150, stateful_step_count=25)


def all_ways_to_die(
    world_before: World, work: str, arguments: object, goal: dict[str, str]
) -> list[dict[str, str]]:
    """Kill a command after each number of steps, settle; what the switches hold then."""
    outcomes = []
    for live in range(1000):
        world = World()
        world.values, world.disk = dict(world_before.values), world_before.disk
        world.steps_to_live = live
        keeper = Bookkeeper("boot-0", 0.0, WHOLE)
        try:
            settled = execute(keeper.settle(world.disk), world)
            run: Run = getattr(keeper, work)(settled.journal, arguments)
            execute(run, world)
            finished = True
        except Killed:
            finished = False
        world.steps_to_live = 1000
        settled = execute(Bookkeeper("boot-0", 1.0, WHOLE).settle(world.disk), world)
        assert settled.journal.action is None
        outcomes.append({path: world.values[path] for path in goal})
        if finished:
            assert outcomes[-1] == goal
            return outcomes
        # Whatever was left, one undo is enough.
        run = Bookkeeper("boot-0", 2.0, WHOLE).undo(settled.journal, set(KNOB.values()))
        assert execute(run, world).journal.switches == ()
        assert world.values == AT_BOOT
    pytest.fail("it never ends")


ASKED = {"/proc/a": "1", "/sys/b1": "2", "/sys/b2": "3", AUTO: "false", NODES[0]: "3"}
WANTED = [Wanted(KNOB[path], path, value) for path, value in ASKED.items()]


def test_a_set_that_is_killed_anywhere_is_whole_or_not_at_all() -> None:
    old = {path: AT_BOOT[path] for path in ASKED}
    outcomes = all_ways_to_die(World(), "turn", WANTED, ASKED)
    assert old in outcomes and ASKED in outcomes
    assert all(outcome in (old, ASKED) for outcome in outcomes)


def test_an_undo_that_is_killed_anywhere_is_finished_once_it_has_begun() -> None:
    world = World()
    execute(Bookkeeper("boot-0", 0.0, WHOLE).turn(_empty(), WANTED), world)
    old = {path: AT_BOOT[path] for path in ASKED}
    outcomes = all_ways_to_die(world, "undo", ["a", "b", "w"], old)
    assert outcomes.index(old) > 0
    assert all(outcome == ASKED for outcome in outcomes[: outcomes.index(old)])
    assert all(outcome == old for outcome in outcomes[outcomes.index(old) :])


def test_a_second_set_keeps_the_first_original_wherever_it_is_killed() -> None:
    world = World()
    execute(Bookkeeper("boot-0", 0.0, WHOLE).turn(_empty(), WANTED), world)
    again = [Wanted("a", "/proc/a", "2"), Wanted("b", "/sys/b3", "2")]
    first, second = {"/proc/a": "1", "/sys/b3": "5"}, {"/proc/a": "2", "/sys/b3": "2"}
    outcomes = all_ways_to_die(world, "turn", again, second)
    assert all(outcome in (first, second) for outcome in outcomes)


def test_an_original_stays_on_record_while_the_switch_is_not_back_there() -> None:
    """A set to the original itself, of which the kernel makes another value, twice."""
    world = World()
    execute(Bookkeeper("boot-0", 0.0, WHOLE).turn(_empty(), [Wanted("a", "/proc/a", "1")]), world)
    world.adjusted = {"/proc/a"}
    run = Bookkeeper("boot-0", 1.0, WHOLE).turn(_on(world), [Wanted("a", "/proc/a", "5")])
    report = execute(run, world)
    assert {note.kind for note in report.notes} == {Kind.REFUSED}
    (switch,) = report.journal.switches
    assert (switch.original, switch.ours, world.values["/proc/a"]) == ("5", "1", "4")


def _on(world: World) -> Journal:
    assert world.disk is not None
    return world.disk


def _empty() -> Journal:
    return Journal(boot_id="boot-0", changed_unix_s=0.0)
