"""verify on a made-up /proc: each process's slot, and what counts as drift.

The individual rules are in test_threads_drift.py, test_memory_drift.py and test_runtime_drift.py.
"""

from __future__ import annotations

import pytest

from atoll.errors import EngineFailed
from atoll.inspect.processes import descendants, marked, process_table
from atoll.inspect.verify import Verification, brief, document
from atoll.inspect.verify import verify as verify_deeply_or_not
from atoll.schema.cpulist import parse_cpulist
from atoll.schema.deployment import (
    Deployment,
    ProcessId,
    ProcessRecord,
    ProcessSpec,
    Role,
    State,
)
from atoll.schema.plan import MemoryPolicy, Placement, TaskThreads
from tests.parts.fake_host import FakeHost, FakeProcess
from tests.parts.faults import fails
from tests.parts.proc import stat
from tests.parts.toy import toy_plan

SUPERVISOR = 50


def verify(host: FakeHost, record: Deployment) -> Verification:
    return verify_deeply_or_not(host, record, deep=False)


class Proc(FakeHost):
    """A /proc that a test fills."""

    def add(
        self,
        pid: int,
        parent: int,
        masks: dict[int, str],
        *,
        environ: str = "",
        state: str = "S",
        policy: str = "",
        uid: int = 0,
    ) -> None:
        self.files[f"/proc/{pid}/stat"] = stat(pid, parent, state=state)
        self.files[f"/proc/{pid}/status"] = f"Uid:\t{uid}\t{uid}\t{uid}\t{uid}\n"
        self.files[f"/proc/{pid}/environ"] = environ
        self.files[f"/proc/{pid}/numa_maps"] = f"55aa {policy} file=/x N0=1 kernelpagesize_kB=4\n"
        for tid, mask in masks.items():
            self.files[f"/proc/{pid}/task/{tid}/stat"] = stat(tid, parent, comm=f"t {tid}")
            self.files[f"/proc/{pid}/task/{tid}/status"] = (
                f"Cpus_allowed_list:\t{mask}\nMems_allowed_list:\t0-1\n"
            )
        if state not in "ZX":
            identity = ProcessId(pid=pid, start_ticks=pid * 10)
            self.processes[pid] = FakeProcess(identity, (), {})


def deployment(*pids: int, **changes: object) -> Deployment:
    """A coordinator and workers on slots with the CPUs 4-5, 6-7, ..."""
    plan = toy_plan(len(pids) - 1)
    slots = tuple(
        slot.model_copy(update={"cpus": (4 + 2 * slot.index, 5 + 2 * slot.index), **changes})
        for slot in plan.slots
    )
    processes = tuple(
        ProcessRecord(
            spec=ProcessSpec(
                name="coordinator" if i == 0 else f"worker-{i - 1}",
                role=Role.WORKER,
                slot=None if i == 0 else i - 1,
                argv=("x",),
                env={},
                stage=0,
            ),
            id=ProcessId(pid=pid, start_ticks=pid * 10),
            log="/l",
        )
        for i, pid in enumerate(pids)
    )
    return Deployment(
        name="d",
        id="1",
        boot_id="b",
        run_dir="/r",
        scratch_dir="/s",
        plan=plan.model_copy(update={"slots": slots}),
        state=State.READY,
        supervisor=ProcessId(pid=SUPERVISOR, start_ticks=SUPERVISOR * 10),
        keeper=None,
        processes=processes,
        created_unix_s=0,
    )


def proc() -> Proc:
    host = Proc(affinity=frozenset(range(8)))
    host.add(1, 0, {1: "0-7"})
    host.add(SUPERVISOR, 1, {SUPERVISOR: "0-7"})
    host.add(60, SUPERVISOR, {60: "0-7"})
    host.add(70, SUPERVISOR, {70: "4-5", 71: "4-5"})
    return host


def test_all_in_place() -> None:
    found = verify(proc(), deployment(60, 70))
    rows = [
        (process.process, process.expected.cpus, thread.tid, thread.last_cpu)
        for process in found.processes
        for thread in process.threads
    ]
    assert rows == [
        ("coordinator", "0-7", 60, 1),
        ("worker-0", "4-5", 70, 1),
        ("worker-0", "4-5", 71, 1),
    ]
    assert (found.threads, found.drifted) == (3, 0)


def test_a_process_that_seats_its_threads_may_narrow_but_not_leave() -> None:
    found = deployment(60, 70)
    worker = found.processes[1]
    seats = worker.spec.model_copy(update={"seats_threads": True})
    seated = worker.model_copy(update={"spec": seats})
    host = proc()
    host.add(70, SUPERVISOR, {70: "4-5", 71: "5", 72: "4"})
    assert verify(host, found).drifted == 2
    here = found.model_copy(update={"processes": (found.processes[0], seated)})
    assert verify(host, here).drifted == 0
    host.add(70, SUPERVISOR, {70: "4-5", 71: "5", 72: "6"})
    (drift,) = verify(host, here).drift
    assert (drift.code, drift.tid) == ("thread-outside", 72)


def test_a_child_and_an_orphan_belong_to_their_worker() -> None:
    host = proc()
    host.add(72, 70, {72: "4"})  # a child, narrower than its slot
    host.add(90, SUPERVISOR, {90: "0-7"}, environ="A=1\0ATOLL_PROCESS=worker-0\0")
    host.add(91, 90, {91: "4-5"})
    drift = verify(host, deployment(60, 70)).drift
    assert [(f.code, f.process, f.pid, f.found) for f in drift] == [
        ("thread-narrower", "worker-0", 72, "CPUs 4"),
        ("thread-outside", "worker-0", 90, "CPUs 0-7"),
    ]
    assert brief(drift[1]) == (
        "worker-0 pid 90 tid 90 (t 90): thread-outside: CPUs 0-7 instead of CPUs 4-5"
    )


def test_a_thread_s_name_cannot_steer_a_terminal_or_end_a_line() -> None:
    host = proc()
    host.add(72, 70, {72: "4"})
    (found,) = verify(host, deployment(60, 70)).drift
    named = found.model_copy(update={"tid": 7, "comm": "\x1b[2J\n\u202ex"})
    assert " tid 7 (\ufffd[2J\ufffd\ufffdx): " in brief(named)


def test_a_process_that_is_gone_counts() -> None:
    host = proc()
    host.end(70, 1)
    found = verify(host, deployment(60, 70))
    assert [(f.code, f.process, f.pid) for f in found.drift] == [
        ("process-missing", "worker-0", 70)
    ]
    assert found.drifted == 1


def test_the_json_has_a_row_for_every_thread_and_policy() -> None:
    host = proc()
    host.add(72, 70, {72: "0"})
    told = document(verify(host, deployment(60, 70)))
    assert told["drifted"] == 1 and told["missing"] == []
    threads, memory = told["threads"], told["memory"]
    assert isinstance(threads, list) and isinstance(memory, list)
    assert [(row["tid"], row["drifted"]) for row in threads] == [
        (60, False),
        (70, False),
        (71, False),
        (72, True),
    ]
    assert threads[3]["expected_cpus"] == "4-5" and threads[3]["found_cpus"] == "0"
    assert [row["expected"] for row in memory] == ["default"] * 3


def test_a_process_of_a_later_stage_is_not_missing_while_it_starts() -> None:
    record = deployment(60, 70)
    coordinator, worker = record.processes
    waiting = worker.model_copy(update={"id": None})
    starting = record.model_copy(update={"processes": (coordinator, waiting)})
    assert verify(proc(), starting).missing == ()


def test_without_a_supervisor_there_is_nothing_to_verify() -> None:
    host = proc()
    host.end(SUPERVISOR, -9)
    with fails(EngineFailed, name="d"):
        verify(host, deployment(60, 70))


@pytest.mark.parametrize(
    ("found", "masked", "drift"),
    [("0-7", False, False), ("0-1", False, True), ("4-5", True, False), ("4", True, True)],
)
def test_what_counts_as_drift(found: str, masked: bool, drift: bool) -> None:
    host = proc()
    host.add(70, SUPERVISOR, {70: found, 71: found})
    record = deployment(60, 70) if masked else deployment(60, 70, cpus=None)
    assert verify(host, record).drifted == (2 if drift else 0)


# ---- thread placement


def placed(host: Proc, threads: dict[int, tuple[str, str]], pid: int = 70) -> None:
    """Threads of the only worker: tid -> name, mask."""
    host.add(pid, SUPERVISOR, {tid: mask for tid, (_, mask) in threads.items()})
    for tid, (name, mask) in threads.items():
        host.files[f"/proc/{pid}/task/{tid}/comm"] = f"{name}\n"
        host.masks[tid] = frozenset(parse_cpulist(mask))


def placed_deployment(tasks: TaskThreads | None = None) -> Deployment:
    record = deployment(60, 70, thread_cpus=(5, 4))
    update = {"placement": Placement.SPARSE, "task_threads": tasks or TaskThreads(comm="task")}
    return record.model_copy(update={"plan": record.plan.model_copy(update=update)})


@pytest.mark.parametrize(
    ("threads", "drift"),
    [
        ({70: ("main", "4-5")}, []),
        ({70: ("main", "4-5"), 71: ("task", "5")}, []),
        ({70: ("main", "4-5"), 71: ("task", "4"), 72: ("task", "5"), 73: ("task", "5")}, []),
        # The slot's mask was all that was enacted, and verify accepted that.
        (
            {70: ("main", "4-5"), 71: ("task", "4-5"), 72: ("task", "5")},
            [("thread-unplaced", 71, "CPU 4", "CPUs 4-5")],
        ),
        # A gap that a thread has left, and a CPU with two threads while another has none.
        ({71: ("task", "4")}, []),
        (
            {71: ("task", "5"), 72: ("task", "5")},
            [("thread-unplaced", 72, "CPU 4", "CPUs 5")],
        ),
        ({71: ("task", "6")}, [("thread-outside", 71, "CPUs 4-5", "CPUs 6")]),
        ({70: ("main", "5")}, [("thread-narrower", 70, "CPUs 4-5", "CPUs 5")]),
    ],
)
def test_under_thread_placement_each_thread_that_runs_tasks_has_its_cpu(
    threads: dict[int, tuple[str, str]], drift: list[tuple[str, int, str, str]]
) -> None:
    host = proc()
    placed(host, threads)
    found = verify(host, placed_deployment())
    assert [(one.code, one.tid, one.expected, one.found) for one in found.drift] == drift
    assert found.task_threads == sum(name == "task" for name, _ in threads.values())
    rows = document(found)["threads"]
    assert isinstance(rows, list)
    assert {row["tid"] for row in rows if row["runs_tasks"]} == {
        tid for tid, (name, _) in threads.items() if name == "task"
    }


def test_a_thread_that_is_bound_a_moment_later_is_no_drift() -> None:
    class Settling(Proc):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            placed(self, {71: ("task", "5"), 72: ("task", "4-5")})

    host = Settling(affinity=frozenset(range(8)))
    host.files |= proc().files
    host.processes |= proc().processes
    placed(host, {71: ("task", "4-5")})
    assert verify(host, placed_deployment()).drift == []  # 72 is new, and may be bound next


def test_a_jvm_that_gives_no_thread_dump_is_drift() -> None:
    host = proc()
    placed(host, {71: ("task", "4-5")})
    host.files["/proc/70/maps"] = "7f00-7f01 r-xp 0 08:01 7 /jdk/lib/server/libjvm.so\n"
    record = placed_deployment(TaskThreads(comm="task", java="task of"))
    (found,) = verify(host, record).drift
    assert (found.code, found.pid, found.tid) == ("thread-unplaced", 70, None)
    assert "no JVM" in found.cause


@pytest.mark.parametrize(
    ("policy", "nodes", "found", "drifted"),
    [
        (MemoryPolicy.BIND, (0,), "bind:0", 0),
        (MemoryPolicy.BIND, (0,), "bind:1", 1),
        (MemoryPolicy.BIND, (0,), "default", 1),
        (MemoryPolicy.LOCAL, (), "local", 0),
        (MemoryPolicy.FIRST_TOUCH, (), "default", 0),
        (MemoryPolicy.WEIGHTED_INTERLEAVE, (0, 1), "weighted interleave:0-1", 0),
    ],
)
def test_the_memory_policy_where_nodes_are_several(
    policy: MemoryPolicy, nodes: tuple[int, ...], found: str, drifted: int
) -> None:
    host = Proc(affinity=frozenset(range(8)))
    host.files |= {
        "/sys/devices/system/node/has_memory": "0-1\n",
        "/sys/devices/system/node/node0/cpulist": "0-3\n",
        "/sys/devices/system/node/node1/cpulist": "4-7\n",
    }
    host.add(SUPERVISOR, 1, {SUPERVISOR: "0-7"})
    host.add(60, SUPERVISOR, {60: "0-7"}, policy="default")
    host.add(70, SUPERVISOR, {70: "4-5"}, policy=found)
    result = verify(host, deployment(60, 70, memory_policy=policy, memory_nodes=nodes))
    assert [process.memory_policy for process in result.processes] == ["default", found]
    assert [f.code for f in result.drift] == ["memory-policy"] * drifted


def test_descendants_leave_out_zombies_but_not_their_children() -> None:
    host = Proc()
    host.add(10, 1, {})
    host.add(11, 10, {}, state="Z")
    host.add(12, 11, {})
    host.add(13, 1, {})
    assert [process.pid for process in descendants(process_table(host), 10)] == [12]


def test_the_mark_is_exact_and_of_this_user() -> None:
    host = Proc()
    host.add(10, 1, {}, environ="ATOLL_DEPLOYMENT=d:1\0")
    host.add(11, 1, {}, environ="X=1\0ATOLL_DEPLOYMENT=d:12\0")
    host.add(12, 1, {}, environ="ATOLL_DEPLOYMENT=d:1\0", uid=7)
    host.add(13, 1, {}, environ="ATOLL_DEPLOYMENT=d:1\0", state="Z")
    assert [process.pid for process in marked(host, "d:1", uid=0)] == [10]


def test_who_has_written_over_its_environment_is_known_by_its_folder() -> None:
    """As PostgreSQL's sessions; a shell that somebody opened there is left alone."""
    host = Proc()
    title, shell = "\0" * 40, "HOME=/root\0"
    for pid, environ, place in (
        (10, title, "/s/ab/data-0"),
        (11, title, "/s/ab/data-0 (deleted)"),
        (12, shell, "/s/ab/data-0"),
        (13, title, "/s/abc"),
        (14, title, "/"),
        (15, title, "/r/ab"),
    ):
        host.add(pid, 1, {}, environ=environ)
        host.files[f"/proc/{pid}/cwd"] = place
    found = marked(host, "d:1", uid=0, folders=["/r/ab", "/s/ab"])
    assert [process.pid for process in found] == [10, 11, 15]
    assert marked(host, "d:1", uid=0) == []
