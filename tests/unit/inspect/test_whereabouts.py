"""What a watch tells of a deployment between two moments, on a /proc in memory."""

from __future__ import annotations

import errno

import pytest

from atoll.inspect.resctrl import memory_traffic
from atoll.inspect.whereabouts import Watch
from atoll.schema.deployment import (
    Deployment,
    ProcessId,
    ProcessRecord,
    ProcessSpec,
    Role,
    State,
)
from atoll.schema.plan import Policy
from tests.parts.bench_plans import plan
from tests.parts.proc import Proc, stat

SUPERVISOR, WORKER = 100, 200


def deployment() -> Deployment:
    spec = ProcessSpec(name="worker-0", role=Role.WORKER, slot=0, argv=("x",), env={}, stage=0)
    return Deployment(
        name="d",
        id="1",
        boot_id="b",
        run_dir="/run/d",
        scratch_dir="/var/d",
        plan=plan("duckdb", Policy.WIC, 2),  # CPUs 0 and 1, 2 and 3
        state=State.READY,
        supervisor=ProcessId(pid=SUPERVISOR, start_ticks=SUPERVISOR * 10),
        keeper=None,
        processes=(
            ProcessRecord(spec=spec, id=ProcessId(pid=WORKER, start_ticks=WORKER * 10), log="l"),
        ),
        created_unix_s=0.0,
    )


class Machine(Proc):
    """Two nodes of two CPUs; the worker has pages on both."""

    def __init__(self) -> None:
        super().__init__()
        for node, cpus in ((0, "0-1"), (1, "2-3")):
            self.files[f"/sys/devices/system/node/node{node}/cpulist"] = cpus
        self.files["/sys/devices/system/node/has_memory"] = "0-1"
        for pid, parent in ((SUPERVISOR, 1), (WORKER, SUPERVISOR)):
            self.add(pid)
            self.files[f"/proc/{pid}/stat"] = stat(pid, parent)
        self.files[f"/proc/{WORKER}/numa_maps"] = (
            "5500 default anon=4 N0=3 N1=1 kernelpagesize_kB=4\n"
        )
        self.files[f"/proc/{WORKER}/sched"] = ""
        self.io(0, 0)

    def io(self, read: int, written: int) -> None:
        self.files[f"/proc/{WORKER}/io"] = (
            f"rchar: 9\nread_bytes: {read}\nwrite_bytes: {written}\ncancelled_write_bytes: 0\n"
        )

    def thread(self, tid: int, cpu: int, seconds: float, migrations: int) -> None:
        self.add_thread(WORKER, tid, "0-3")
        folder = f"/proc/{WORKER}/task/{tid}"
        self.files[f"{folder}/stat"] = stat(tid, 1, cpu=cpu)
        self.files[f"{folder}/sched"] = (
            f"se.sum_exec_runtime : {seconds * 1000}\nse.nr_migrations : {migrations}\n"
        )


def test_only_what_happened_in_between_counts() -> None:
    host = Machine()
    host.thread(201, cpu=0, seconds=5, migrations=7)
    host.thread(202, cpu=1, seconds=2, migrations=1)
    watch = Watch(host, deployment())
    host.thread(201, cpu=0, seconds=8, migrations=9)
    host.thread(203, cpu=2, seconds=1, migrations=4)
    host.io(4096, 8192)
    found = watch.end()
    assert (found.processes, found.threads) == (1, 2), "thread 202 did not run"
    assert found.elsewhere == 1, "thread 203 is new, and ran on the other slot's CPUs"
    assert found.migrations == 2 + 4
    assert found.cpu_s_by_node == {0: 3.0, 1: 1.0}
    assert found.bytes_by_node == {0: 3 * 4096, 1: 4096}
    assert found.local_pages == pytest.approx(0.75 * 0.75 + 0.25 * 0.25)
    assert (found.read_bytes, found.written_bytes) == (4096, 8192)
    assert found.local_resctrl is None and found.unknown == ()


def test_what_may_not_be_seen_is_unknown_and_not_zero() -> None:
    host = Machine()
    host.thread(201, cpu=0, seconds=5, migrations=7)
    host.faults[f"/proc/{WORKER}/io"] = errno.EACCES
    watch = Watch(host, deployment())
    host.thread(201, cpu=0, seconds=6, migrations=7)
    del host.files[f"/proc/{WORKER}/task/201/sched"]
    host.files[f"/proc/{WORKER}/task/201/stat"] = stat(201, 1, cpu=0)
    found = watch.end()
    assert (found.read_bytes, found.written_bytes) == (None, None)
    assert any("/io" in why for why in found.unknown)


def test_a_process_that_ends_in_between_is_left_out() -> None:
    host = Machine()
    host.thread(201, cpu=0, seconds=5, migrations=7)
    watch = Watch(host, deployment())
    for path in [path for path in host.files if path.startswith(f"/proc/{WORKER}/")]:
        del host.files[path]
    found = watch.end()
    assert (found.processes, found.threads, found.local_pages) == (0, 0, None)


def test_resctrl_counts_the_groups_of_the_processes() -> None:
    host = Machine()
    host.files["/proc/self/mountinfo"] = "36 25 0:33 / /r rw - resctrl resctrl rw\n"
    host.files["/r/tasks"] = f"{WORKER}\n"
    for domain, whole, local in ((0, 100, 60), (1, 50, 50)):
        host.files[f"/r/mon_data/mon_L3_0{domain}/mbm_total_bytes"] = f"{whole}\n"
        host.files[f"/r/mon_data/mon_L3_0{domain}/mbm_local_bytes"] = f"{local}\n"
    assert memory_traffic(host, [WORKER]) == (150, 110)
    watch = Watch(host, deployment())
    host.files["/r/mon_data/mon_L3_00/mbm_total_bytes"] = "300\n"
    host.files["/r/mon_data/mon_L3_00/mbm_local_bytes"] = "110\n"
    assert watch.end().local_resctrl == pytest.approx(50 / 200)
    host.files["/r/mon_data/mon_L3_01/mbm_local_bytes"] = "Unavailable\n"
    assert memory_traffic(host, [WORKER]) is None
    assert memory_traffic(host, []) is None
    host.files["/proc/self/mountinfo"] = ""
    assert memory_traffic(host, [WORKER]) is None
