"""A running program is placed, checked and restored; all of its threads or none."""

from __future__ import annotations

import json
from typing import NoReturn

import pytest

from atoll.engines.placeable import OperatorThread
from atoll.errors import NotPermitted, ProcessGone, UsageError
from atoll.operators.apply import apply, undo
from atoll.operators.verify import verify
from atoll.store.paths import state_dir
from tests.parts.faults import fails
from tests.parts.placed import PID, Program, ProgramHost, pagemap, placement

EVERYWHERE = frozenset(range(8))


def test_threads_are_bound_checked_and_restored() -> None:
    host = ProgramHost(["a", "b", "c"])
    found = apply(host, Program(host), placement({"a": 2, "b": 2, "c": 5}))
    assert (found.threads, found.idle, found.faults) == (3, 0, ())
    assert [host.masks[PID + k] for k in (1, 2, 3)] == [{2}, {2}, {5}]
    assert undo(host) == (3, 0)
    assert [host.masks[PID + k] for k in (1, 2, 3)] == [EVERYWHERE] * 3
    assert undo(host) == (0, 0)


def test_the_masks_from_before_the_first_time_are_restored() -> None:
    host = ProgramHost(["a"])
    apply(host, Program(host), placement({"a": 2}))
    apply(host, Program(host), placement({"a": 3}))
    assert undo(host) == (1, 0)
    assert host.masks[PID + 1] == EVERYWHERE


def test_masks_are_on_disk_before_a_thread_is_bound() -> None:
    seen = []

    class Looks(ProgramHost):
        def set_affinity(self, tid: int, cpus: frozenset[int]) -> None:
            seen.append(json.loads((state_dir("operators") / "masks.json").read_text()))
            raise KeyboardInterrupt

    host = Looks(["a"])
    with pytest.raises(KeyboardInterrupt):
        apply(host, Program(host), placement({"a": 2}))
    assert [one["cpus"] for one in seen[0]["threads"]] == ["0-7"]
    assert undo(host) == (0, 0)


@pytest.mark.parametrize("born_at_look", [2, 3])
def test_a_thread_born_during_apply_is_saved_before_it_is_bound(born_at_look: int) -> None:
    host = ProgramHost(["a", "b"])
    program = Program(host)
    looks = 0

    def threads() -> list[OperatorThread]:
        nonlocal looks
        looks += 1
        if looks == born_at_look:
            host.begin_thread(PID + 9, "b")
        return Program.threads(program)

    program.threads = threads  # type: ignore[method-assign]  # with something else going on
    found = apply(host, program, placement({"a": 2, "b": 3}))
    assert (found.threads, found.faults) == (3, ())
    assert host.masks[PID + 9] == {3}
    assert undo(host) == (3, 0)
    assert host.masks[PID + 9] == EVERYWHERE


def test_a_thread_born_of_a_bound_one_gets_the_mask_that_its_parent_had() -> None:
    host = ProgramHost(["a", "b"])
    host.set_affinity(PID + 2, frozenset({4, 5}))
    apply(host, Program(host), placement({"a": 2, "b": 3}))
    host.begin_thread(PID + 9, "b", "3")
    apply(host, Program(host), placement({"a": 2, "b": 6}))
    assert host.masks[PID + 9] == {6}
    host.barred = {PID + 9}
    with fails(NotPermitted, tid=PID + 9, operators="b", cpu=7):
        apply(host, Program(host), placement({"a": 7, "b": 7}))
    assert [host.masks[PID + k] for k in (1, 2, 9)] == [{2}, {6}, {6}]
    host.barred = set()
    assert undo(host) == (3, 0)
    assert host.masks[PID + 9] == host.masks[PID + 2] == {4, 5}


def test_if_one_thread_cannot_be_bound_all_have_their_old_masks() -> None:
    host = ProgramHost(["a", "b"])
    program = Program(host)
    threads = program.threads()
    program.threads = lambda: threads  # type: ignore[method-assign]  # as it was a moment ago
    host.end_thread(PID + 2)
    with pytest.raises(ProcessGone):
        apply(host, program, placement({"a": 2, "b": 3}))
    assert host.masks[PID + 1] == EVERYWHERE


def test_a_thread_that_cannot_be_bound_hides_no_reason_and_keeps_none_from_being_restored() -> None:
    host = ProgramHost(["a", "b", "c"])
    host.barred = {PID + 2}
    with fails(NotPermitted, tid=PID + 2, operators="b", cpu=3):
        apply(host, Program(host), placement({"a": 2, "b": 3, "c": 4}))
    assert host.masks[PID + 1] == EVERYWHERE
    assert undo(host) == (0, 0)
    host.barred = set()
    apply(host, Program(host), placement({"a": 2, "b": 3, "c": 4}))
    host.barred = {PID + 2}
    with fails(NotPermitted, tid=PID + 2, cpus="0-7"):
        undo(host)
    assert [host.masks[PID + k] for k in (1, 2, 3)] == [EVERYWHERE, {3}, EVERYWHERE]
    host.barred = set()
    assert undo(host) == (3, 0)


def test_memory_that_cannot_be_moved_is_reported_and_the_threads_stay_bound() -> None:
    class Refuses(ProgramHost):
        def move_pages(self, pid: int, addresses: object, node: int) -> NoReturn:
            raise OSError(19, "No such device")

    host = Refuses(["a"])
    host.files["/sys/devices/system/node/has_memory"] = "0-1\n"
    host.files[f"/proc/{PID}/maps"] = "10000-11000 rw-p 00000000 00:00 0 [heap]\n"
    host.pages[PID] = {0x10000: 0}
    host.blobs[f"/proc/{PID}/pagemap"] = pagemap({0x10000: True})
    found = apply(host, Program(host), placement({"a": 2}, {2: 1}))
    assert host.masks[PID + 1] == {2}
    assert found.local == 0
    assert [fault.split(":")[0] for fault in found.faults] == [f"process {PID}"]


def test_a_program_without_operators_is_refused() -> None:
    host = ProgramHost([])
    with pytest.raises(UsageError):
        apply(host, Program(host), placement({"a": 2}))


def test_operators_that_the_placement_lacks_are_refused_or_left_as_they_are() -> None:
    host, left = ProgramHost(["a", "psql"]), list[str]()
    program, plan = Program(host), placement({"a": 2})
    with pytest.raises(UsageError, match="psql"):
        apply(host, program, plan)
    found = apply(host, program, plan, left.extend)
    assert (found.threads, found.faults, left) == (1, (), ["psql"])
    assert [host.masks[PID + k] for k in (1, 2)] == [{2}, EVERYWHERE]
    host.end_thread(PID + 1)
    with pytest.raises(UsageError):
        apply(host, program, plan, left.extend)


def test_masks_of_an_earlier_boot_are_dropped() -> None:
    host = ProgramHost(["a"])
    apply(host, Program(host), placement({"a": 2}))
    host.files["/proc/sys/kernel/random/boot_id"] = "next\n"
    assert undo(host) == (0, 0)
    assert host.masks[PID + 1] == {2}


def test_a_thread_that_ended_or_whose_id_was_given_again_is_left_alone() -> None:
    host = ProgramHost(["a", "b"])
    apply(host, Program(host), placement({"a": 2, "b": 3}))
    host.end_thread(PID + 1)
    path = f"/proc/{PID}/task/{PID + 2}/stat"
    host.files[path] = host.files[path].replace(str((PID + 2) * 10), "77")
    assert undo(host) == (0, 2)
    assert host.masks[PID + 2] == {3}


def test_verify_finds_what_is_out_of_place() -> None:
    host = ProgramHost(["a", "b", "c"])
    program, plan = Program(host), placement({"a": 2, "b": 3, "c": 4, "d": 4})
    program.place(plan)
    host.set_affinity(PID + 1, frozenset({2, 3}))
    path = f"/proc/{PID}/task/{PID + 2}/stat"
    host.files[path] = host.files[path].replace(" 3 0 0\n", " 6 0 0\n")
    found = verify(host, program.threads(), plan, wait_s=1)
    assert found.threads == 3
    assert found.idle == 1  # b has not run since, as far as one can see
    assert [fault.split(":")[0] for fault in found.faults] == ["a", "d"]


def test_verify_finds_an_operator_with_fewer_threads_than_replicas() -> None:
    host = ProgramHost(["a", "b"])
    program, plan = Program(host), placement({"a": 2, "b": 3})
    second = plan.units[0].model_copy(update={"replica": 1, "cpu": 3})
    found = apply(host, program, plan.model_copy(update={"units": (*plan.units, second)}))
    assert found.faults == ("a: it has 1 thread for 2 replicas",)


def test_verify_waits_for_a_thread_that_sleeps() -> None:
    host = ProgramHost(["a"])
    program = Program(host)
    host.asleep = {PID + 1}
    program.place(placement({"a": 2}))
    found = verify(host, program.threads(), placement({"a": 2}), wait_s=1)
    assert (found.idle, found.faults) == (1, ())


def test_verify_counts_pages_of_a_process_on_one_node() -> None:
    host = ProgramHost(["a"])
    program = Program(host)
    host.files[f"/proc/{PID}/maps"] = "10000-14000 rw-p 00000000 00:00 0 [heap]\n"
    host.pages[PID] = {0x10000: 1, 0x11000: 1, 0x12000: 1, 0x13000: 0}
    host.blobs[f"/proc/{PID}/pagemap"] = pagemap(dict.fromkeys(host.pages[PID], True))
    plan = placement({"a": 2}, {2: 1})
    program.place(plan)
    found = verify(host, program.threads(), plan)
    assert found.local == 0.75
    assert len(found.faults) == 1
