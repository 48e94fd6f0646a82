"""The spread of a process's bound threads: which threads count, and when it is absent."""

from __future__ import annotations

from functools import cache

import pytest

from atoll.errors import TopologyError
from atoll.host.topology import read_machine
from atoll.inspect.inspection import inspect_process
from atoll.inspect.spread import Islands, SpreadReader, islands_of, spread
from atoll.schema.inspection import SpreadLook, ThreadLook
from atoll.schema.machine import Machine
from tests.parts.inspect import MACHINE, PID, team, thread
from tests.parts.proc import Proc

ALL = frozenset(range(16))


@cache
def machine(words: str = "pack:2 [numa] l3:4 core:2 pu:1") -> Machine:
    """Eight chiplets of two cores: 0 and 1 are the first's."""
    return read_machine(synthetic=words)


def workers(*masks: str) -> list[ThreadLook]:
    return [thread(PID + 1 + n, mask, comm=f"worker-{n}") for n, mask in enumerate(masks)]


def found(*threads: ThreadLook, given: frozenset[int] = ALL) -> SpreadLook | None:
    return spread(threads, given, islands_of(machine()))


def test_threads_on_cores_and_on_whole_chiplets_are_bound() -> None:
    look = found(thread(cpus="0-15"), *workers("0", "1", "8-9", "9"))
    assert look is not None
    assert (look.over, look.usable) == ("chiplet", 8)
    assert look.threads_on == {0: 2, 4: 2}
    assert look.threads_named == {"worker": 4}


def test_threads_with_the_mask_of_the_process_or_with_several_chiplets_are_not() -> None:
    look = found(thread(cpus="0-15"), *workers("0", "4", "0-3", "1-2", "0-15"))
    assert look is not None and look.threads_on == {0: 1, 2: 1}


def test_names_lose_their_numbers_and_nothing_else() -> None:
    names = ("atoll-duck-1", "atoll-duck-12", "atoll-seat", "io#3", "7")
    threads = [thread(PID + n, "3", comm=name) for n, name in enumerate(names)]
    look = found(*threads)
    assert look is not None
    assert look.threads_named == {"atoll-duck": 2, "atoll-seat": 1, "io": 1, "7": 1}


def test_only_chiplets_that_the_process_may_use_count() -> None:
    look = found(*workers("0", "2"), given=frozenset(range(5)))
    assert look is not None and look.usable == 3
    # A thread that left its place is where it is.
    look = found(*workers("0", "14"), given=frozenset(range(4)))
    assert look is not None and look.usable == 3 and look.threads_on == {0: 1, 7: 1}


@pytest.mark.parametrize(
    ("threads", "given"),
    [
        (workers("0-15", "0-15"), ALL),
        (workers("0-15", "0"), ALL),  # one is no spread
        (workers("0", "1"), frozenset({0, 1})),  # a slot of one chiplet
    ],
)
def test_there_is_none(threads: list[ThreadLook], given: frozenset[int]) -> None:
    assert found(*threads, given=given) is None


def test_nodes_stand_for_chiplets_that_are_not_shown() -> None:
    two_nodes = islands_of(machine("pack:2 [numa] core:4 pu:1"))
    assert two_nodes == Islands("node", {0: frozenset(range(4)), 1: frozenset(range(4, 8))})
    look = spread(workers("0", "1", "5"), frozenset(range(8)), two_nodes)
    assert look is not None and (look.over, look.threads_on) == ("node", {0: 2, 1: 1})


def test_the_machine_is_read_once_and_only_where_threads_are_bound() -> None:
    reads = []

    def read() -> Machine:
        reads.append(1)
        return machine()

    eye = SpreadReader(read)
    assert eye.look(team("0-15", "0-15"), ALL) is None
    assert reads == []
    for _ in range(2):
        assert eye.look(team("0-15", "0", "2"), ALL) is not None
    assert reads == [1]


def refuses() -> Machine:
    raise TopologyError("no topology: hwloc has ended")


def test_a_machine_that_cannot_be_read_is_a_line() -> None:
    proc = Proc()
    proc.add(60)
    for tid in (61, 62):
        proc.add_thread(60, tid, "0")
    look = inspect_process(proc, 60, MACHINE, spreads=SpreadReader(refuses))
    assert look.spread is None
    assert "spread: no topology: hwloc has ended" in look.unknown
    look = inspect_process(proc, 60, MACHINE, spreads=SpreadReader(machine))
    assert look.spread is not None and look.spread.threads_on == {0: 2}
