"""Threads as /proc shows them: hostile names, absent files, ended threads, two inspections."""

from __future__ import annotations

import ctypes
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.host.local import LocalHost
from atoll.inspect.thread_look import look_at_threads, parse_thread, runs_between
from atoll.schema.inspection import ThreadLook
from tests.parts.fake_host import FakeHost

STATUS = "Name:\t{name}\nState:\tS\nCpus_allowed:\tff\nCpus_allowed_list:\t{cpus}\n\
Mems_allowed:\t3\nMems_allowed_list:\t0-1\nvoluntary_ctxt_switches:\t5\n"
SCHED = """{name} (7, #threads: 3)
-------------------------------------------------------------------
se.exec_start                                :      12011576.063234
se.sum_exec_runtime                          :          1500.250000
se.nr_migrations                             :                   42
nr_switches                                  :                    9
"""


def stat(name: str, state: str = "S", ticks: tuple[int, int] = (120, 30), cpu: int = 5) -> str:
    fields = ["0"] * 50
    fields[0], fields[11], fields[12], fields[36] = state, str(ticks[0]), str(ticks[1]), str(cpu)
    return f"7 ({name}) {' '.join(fields)}\n"


def fake(*tids: int, sched: bool = True) -> FakeHost:
    host = FakeHost({"/proc/7/sched": SCHED} if sched else {})
    for tid in tids:
        folder = f"/proc/7/task/{tid}"
        host.files[f"{folder}/stat"] = stat(f"t{tid}")
        host.files[f"{folder}/status"] = STATUS.format(name=f"t{tid}", cpus="0-3,8")
        if sched:
            host.files[f"{folder}/sched"] = SCHED.format(name=f"t{tid}")
    return host


def test_reads_a_thread() -> None:
    (look,) = look_at_threads(fake(8), 7)
    assert look == ThreadLook(
        tid=8,
        comm="t8",
        cpus="0-3,8",
        memory_nodes="0-1",
        last_cpu=5,
        cpu_seconds=1.50025,
        migrations=42,
    )


def test_without_sched_debug_the_time_is_in_ticks_and_migrations_are_unknown() -> None:
    (look,) = look_at_threads(fake(8, sched=False), 7)
    assert (look.cpu_seconds, look.migrations) == (1.5, None)


def test_a_thread_that_ends_meanwhile_is_left_out() -> None:
    host = fake(8, 9, 10)
    del host.files["/proc/7/task/9/status"]
    assert [look.tid for look in look_at_threads(host, 7)] == [8, 10]
    assert look_at_threads(FakeHost(), 7) == []


def test_a_dead_leader_is_left_out() -> None:
    host = fake(7, 8)
    host.files["/proc/7/task/7/stat"] = stat("t7", state="Z")
    assert [look.tid for look in look_at_threads(host, 7)] == [8]


# The kernel escapes newlines in status, and in stat and sched not at all.
@pytest.mark.parametrize(
    "name", ["a) R 1 (b", "", "a b", "x\ny", "\rCpus_allowed_l", "\x0bCpus_allowed", "\ufffd\ufffd"]
)
def test_a_name_forges_nothing(name: str) -> None:
    status = STATUS.format(name=name.replace("\n", "\\n"), cpus="2")
    look = parse_thread(8, stat=stat(name), status=status, sched=SCHED.replace("{name}", name))
    assert look is not None
    assert (look.comm, look.cpus, look.last_cpu, look.migrations) == (name, "2", 5, 42)


@given(st.binary(max_size=15).filter(lambda name: b"\0" not in name))
def test_any_name_of_a_real_thread(name: bytes) -> None:
    found: list[ThreadLook] = []

    def named() -> None:
        assert ctypes.CDLL(None).prctl(15, name, 0, 0, 0) == 0  # PR_SET_NAME
        me = threading.get_native_id()
        found.extend(look for look in look_at_threads(LocalHost(), os.getpid()) if look.tid == me)

    thread = threading.Thread(target=named)
    thread.start()
    thread.join()
    assert found[0].comm == name.decode(errors="replace")
    assert (
        found[0].cpus
        == Path("/proc/self/status").read_text().split("Cpus_allowed_list:\t")[1].partition("\n")[0]
    )


def test_what_ran_between_two_looks() -> None:
    def look(tid: int, seconds: float, migrations: int | None = 0) -> ThreadLook:
        return ThreadLook(
            tid=tid,
            comm="w",
            cpus="0",
            memory_nodes="0",
            last_cpu=3,
            cpu_seconds=seconds,
            migrations=migrations,
        )

    before = [look(1, 5.0, 2), look(2, 1.0), look(3, 9.0, 50), look(4, 1.0, None), look(9, 1.0)]
    after = [look(1, 5.25, 7), look(2, 1.0), look(3, 0.5, 1), look(4, 1.0, None), look(5, 0.125, 4)]
    runs = runs_between(before, after)
    assert [(run.tid, run.cpu_seconds, run.migrations) for run in runs] == [
        (3, 0.5, 1),  # the kernel reused the number
        (1, 0.25, 5),
        (5, 0.125, 4),  # new
        (2, 0.0, 0),
        (4, 0.0, None),
    ]


def test_looks_at_this_process() -> None:
    # Threads of earlier tests may just end: those that are there before and after must be found.
    before = set(os.listdir("/proc/self/task"))
    looks = look_at_threads(LocalHost(), os.getpid())
    found = {str(look.tid) for look in looks}
    after = set(os.listdir("/proc/self/task"))
    assert before & after <= found <= before | after
    mine = next(look for look in looks if look.tid == os.getpid())
    assert mine.cpu_seconds > 0
    assert mine.last_cpu in os.sched_getaffinity(0)
