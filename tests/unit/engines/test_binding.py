"""Threads of operators get the one CPU of their unit, and their process's memory goes with them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.engines.binding import bind, seats_of
from atoll.engines.placeable import OperatorThread
from atoll.errors import UsageError
from tests.parts.fake_host import FakeHost
from tests.parts.placed import pagemap, placement


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 7), min_size=1),
    st.lists(st.sampled_from("abcdef"), max_size=12),
)
def test_every_thread_gets_the_one_cpu_of_its_operator(
    cpu_of: dict[str, int], names: list[str]
) -> None:
    threads = [OperatorThread((name,), 9, 100 + k) for k, name in enumerate(names)]
    if set(names) <= cpu_of.keys():
        seats = seats_of(threads, placement(cpu_of))
        assert seats == {one: {cpu_of[one.operators[0]]} for one in threads}
    else:
        with pytest.raises(UsageError):
            seats_of(threads, placement(cpu_of))


def test_threads_take_replicas_in_turn() -> None:
    plan = placement({"a": 3})
    units = [
        plan.units[0].model_copy(update={"cpu": cpu, "replica": k, "replicas": 2})
        for k, cpu in enumerate((3, 5))
    ]
    threads = [OperatorThread(("a",), 9, tid) for tid in (1, 2, 3)]
    seats = seats_of(threads, plan.model_copy(update={"units": tuple(units)}))
    assert [min(cpus) for cpus in seats.values()] == [3, 5, 3]


def test_a_thread_with_operators_on_two_cpus_is_refused() -> None:
    with pytest.raises(UsageError):
        seats_of([OperatorThread(("a", "b"), 9, 9)], placement({"a": 1, "b": 2}))


def test_os_gives_every_thread_all_of_the_cores() -> None:
    free = placement({"a": 1, "b": 2}).model_copy(update={"units": (), "deployment": "os"})
    threads = [OperatorThread(("x",), 9, 9), OperatorThread(("y",), 8, 8)]
    assert set(seats_of(threads, free).values()) == {frozenset({1, 2})}


MAPS = """\
10000-13000 rw-p 00000000 00:00 0 [heap]
20000-21000 rw-s 00000000 00:01 5 /dev/zero (deleted)
"""


# Nodes have any numbers; one may have no CPUs.
@pytest.mark.parametrize(("second", "moved"), [(2, True), (4, False)])
def test_memory_follows_a_process_whose_operators_are_all_on_one_node(
    second: int, moved: bool
) -> None:
    host = FakeHost({"/sys/devices/system/node/has_memory": "0,2\n", "/proc/9/maps": MAPS})
    host.pages[9] = {0x10000: 0, 0x11000: 0, 0x12000: 2, 0x20000: 0}
    # Since a fork another process maps the second page, too. The last mapping is shared.
    host.blobs["/proc/9/pagemap"] = pagemap({0x10000: True, 0x11000: False, 0x12000: True})
    plan = placement({"a": 1, "b": second}, {1: 2, 2: 2, 4: 0})
    bind(host, lambda: [OperatorThread(("a",), 9, 9), OperatorThread(("b",), 9, 10)], plan)
    assert host.masks == {9: {1}, 10: {second}}
    assert host.pages[9] == {0x10000: 2 if moved else 0, 0x11000: 0, 0x12000: 2, 0x20000: 0}
