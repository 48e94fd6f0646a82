"""The supervisor binds threads as they come and go, on a made-up /proc."""

from __future__ import annotations

import errno

import pytest

from atoll.schema.plan import TaskThreads
from atoll.supervise.pinning import Pinner
from tests.parts.placed_threads import WORKER, PlacedHost, deployment

ALL = frozenset({4, 5, 6, 7})


def pinner(host: PlacedHost, *order: int, threads: TaskThreads | None = None) -> Pinner:
    return Pinner(host, threads or TaskThreads(comm="task"), lambda: deployment(*order))


def test_each_thread_that_runs_tasks_gets_a_cpu_in_the_slots_order() -> None:
    host = PlacedHost()
    for tid in range(60, 66):
        host.thread(tid, "task" if tid > 60 else "main", *ALL)
    pin = pinner(host, 4, 6, 5, 7)
    pin.look()
    assert host.masks == {
        60: ALL,
        **{61 + k: frozenset({cpu}) for k, cpu in enumerate((4, 6, 5, 7, 4))},
    }
    host.end(62)
    host.thread(66, "task", 5)  # its mask is that of the thread that started it
    pin.look()
    assert host.masks[66] == {6}


def test_other_threads_get_the_slots_cpus_back() -> None:
    host = PlacedHost()
    host.thread(60, "main", *ALL)
    host.thread(61, "task", 4)
    host.thread(62, "helper", 4)  # started by the task thread, and so bound as that one
    pin = pinner(host, 4, 5, 6, 7)
    pin.look()
    assert host.masks == {60: ALL, 61: {4}, 62: ALL}
    host.thread(62, "task")  # now it has its name
    pin.look()
    assert host.masks[62] == {5}


def test_a_thread_that_cannot_be_bound_is_reported_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Refusing(PlacedHost):
        def set_affinity(self, tid: int, cpus: frozenset[int]) -> None:
            raise OSError(*((errno.ESRCH, "gone") if tid == 61 else (errno.EINVAL, "not so")))

    host = Refusing()
    for tid in (61, 62, 63):
        host.thread(tid, "task", *ALL)
    pin = pinner(host, 4, 5, 6, 7)
    pin.look()
    pin.look()
    assert capsys.readouterr().err == f"process {WORKER}: cannot bind a thread (not so)\n"


def test_a_jvm_that_does_not_answer_is_reported_once(capsys: pytest.CaptureFixture[str]) -> None:
    host = PlacedHost()
    host.thread(61, "task", *ALL)
    pin = pinner(host, 4, 5, threads=TaskThreads(comm="task", java="task of a query"))
    pin.look()
    pin.look()
    assert capsys.readouterr().err == (
        f"process {WORKER}: cannot ask for the names of its threads: no JVM\n"
    )


def test_it_looks_until_it_is_stopped() -> None:
    host = PlacedHost()
    host.thread(61, "task", *ALL)
    pin = pinner(host, 4, 5)
    pin.start()
    pin.stop()
    pin.join()
    assert host.masks[61] == {4}


def test_a_gap_is_closed_once_the_same_threads_have_run_for_a_second() -> None:
    host = PlacedHost()
    for tid in (61, 62, 63):
        host.thread(tid, "task", *ALL)
    pin = pinner(host, 4, 5, 6, 7)
    pin.look()
    host.end(61)
    pin.look()
    host.sleep(0.9)
    pin.look()
    assert (*host.masks[62], *host.masks[63]) == (5, 6)  # 61 may only wait for its next task
    host.sleep(0.2)
    pin.look()
    assert (*host.masks[62], *host.masks[63]) == (5, 4)
