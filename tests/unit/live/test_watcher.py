"""The watcher on a made-up machine: what it finds, what it reads again, what it leaves alone."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence

import pytest

from atoll.live.watcher import Watcher
from atoll.schema.deployment import State
from atoll.schema.live import DeploymentView, LiveView
from atoll.schema.plan import Plan
from atoll.schema.rendered import Rendered
from atoll.supervise import records
from tests.parts.live import SLOTS, SUPERVISOR, WORKERS, LiveHost, live_record
from tests.parts.proc import stat


@pytest.fixture
def host() -> Iterator[LiveHost]:
    host = LiveHost()
    live_record(host)
    yield host
    records.forget("sea")


class Looks:
    """A watcher that looks every two seconds; a look takes `cost_s` of CPU time per file read."""

    def __init__(
        self,
        host: LiveHost,
        cost_s: float = 0.0,
        rendered: Sequence[tuple[Rendered, Plan]] = (),
    ) -> None:
        self.host = host
        self.watcher = Watcher(host, rendered=rendered, cpu_clock=lambda: len(host.reads) * cost_s)

    def view(self) -> LiveView:
        self.host.sleep(self.watcher.pause_s)
        return self.watcher.look()

    def one(self) -> DeploymentView:
        (one,) = self.view().deployments
        return one


def test_all_is_where_the_plan_put_it(host: LiveHost) -> None:
    looks = Looks(host)
    one = looks.one()
    assert (one.name, one.engine, one.state) == ("sea", "toy", State.READY)
    assert [(slot.slot, slot.cpus, slot.threads) for slot in one.slots] == [
        (0, "0-3", 1),
        (1, "4-7", 1),
    ]
    assert one.drift_by_code == {} and one.findings == ()
    for slot in one.slots:
        assert slot.bytes_by_node == {slot.slot: 8192}
        assert (slot.masks_age_s, slot.runs_age_s, slot.memory_age_s) == (0, 0, 0)


def test_cpu_time_is_that_between_two_looks(host: LiveHost) -> None:
    looks = Looks(host)
    assert [slot.cpu for slot in looks.one().slots] == [0, 0]
    host.cpu_s = {WORKERS[0]: 3.0}
    first, second = looks.one().slots
    assert (first.cpu, first.cpu_seconds, second.cpu) == (1.5, 3.0, 0)
    assert looks.one().slots[0].cpu == 0


def test_a_process_that_began_since_the_last_look_counts_from_its_start(host: LiveHost) -> None:
    looks = Looks(host)
    looks.view()
    host.add_worker(20, SLOTS[0], parent=WORKERS[0])
    host.cpu_s = {20: 3.0}
    slot = looks.one().slots[0]
    assert (slot.cpu, slot.cpu_seconds) == (1.5, 3.0)


def test_migrations_home_and_local_share_are_those_of_the_threads_that_ran(host: LiveHost) -> None:
    looks = Looks(host)
    looks.view()
    host.cpu_s = {WORKERS[0]: 2.0}
    host.run_thread(WORKERS[0], WORKERS[0], cpu=0, cpu_s=1.0, migrations=10)
    host.run_thread(WORKERS[0], 99, cpu=5, cpu_s=1.0, migrations=2)  # began since
    host.masks[99] = frozenset(SLOTS[0])
    looks.view()
    slot = looks.one().slots[0]
    assert (slot.threads, slot.migrations, slot.home_share) == (2, 12, 0.5)
    assert slot.migrations_per_s == 0, "it has not run since the last look at its runs"
    host.sleep(30)
    assert looks.one().slots[0].local_share == 0.5, "half of its CPU time was on the other node"


def test_threads_elsewhere_are_drift_with_a_cause(host: LiveHost) -> None:
    looks = Looks(host)
    looks.view()
    host.masks[WORKERS[1]] = frozenset({0})
    one = looks.one()
    assert one.drift_by_code == {"thread-outside": 1}
    assert one.slots[1].outside == 1 and one.slots[0].outside == 0
    (finding,) = one.findings
    assert (finding.process, finding.tid, finding.found) == ("worker-1", 12, "CPUs 0")
    assert "taskset" in finding.remedy
    host.masks[WORKERS[1]] = frozenset(SLOTS[1])
    assert looks.one().drift_by_code == {}


def test_threads_with_the_same_fault_share_a_line(host: LiveHost) -> None:
    for tid in range(500, 600):
        host.add_thread(WORKERS[0], tid, "4-7")
        host.masks[tid] = frozenset(SLOTS[1])
    host.add_thread(WORKERS[0], 600, "7")
    host.masks[600] = frozenset({7})
    one = Looks(host).one()
    assert one.drift_by_code == {"thread-outside": 101}
    assert [finding.found for finding in one.findings] == ["CPUs 4-7", "CPUs 7"]


def test_pages_and_policies_elsewhere_are_drift(host: LiveHost) -> None:
    looks = Looks(host)
    looks.view()
    host.files["/proc/11/numa_maps"] = (
        "5500 default file=/bin/server mapped=2 N0=2 kernelpagesize_kB=4\n"
        "7f00 default anon=1000 N1=1000 kernelpagesize_kB=4\n"
    )
    host.sleep(30)
    assert looks.one().drift_by_code == {"memory-outside": 1, "memory-policy": 1}


def test_processes_that_end_leave_totals_and_are_reported(host: LiveHost) -> None:
    looks = Looks(host)
    looks.view()
    host.cpu_s = {WORKERS[0]: 4.0}
    looks.view()
    host.end_process(WORKERS[0])
    one = looks.one()
    assert one.drift_by_code == {"process-missing": 1}
    assert (one.slots[0].processes, one.slots[0].cpu_seconds) == (0, 4.0)


def test_processes_that_end_while_it_stops_are_no_drift(host: LiveHost) -> None:
    looks = Looks(host)
    looks.view()
    record = records.read("sea")
    assert record is not None
    records.write(record.model_copy(update={"state": State.STOPPING}))
    host.end_process(WORKERS[0])
    assert looks.one().drift_by_code == {}


def test_children_of_a_worker_belong_to_its_slot(host: LiveHost) -> None:
    looks = Looks(host)
    looks.view()
    host.add_worker(20, SLOTS[1], parent=WORKERS[1])
    assert [slot.processes for slot in looks.one().slots] == [1, 2]


def test_a_process_whose_parent_ends_stays_in_its_slot(host: LiveHost) -> None:
    looks = Looks(host)
    looks.view()
    host.add_worker(20, SLOTS[1], parent=WORKERS[1])
    host.add_worker(21, SLOTS[1], parent=20)
    host.add_worker(23, SLOTS[1], parent=22)  # 22 ends before it is seen
    host.masks |= {21: frozenset({0}), 23: frozenset({0})}
    looks.view()
    host.end_process(20)
    for pid in (21, 23):
        host.adopt(pid, SUPERVISOR)
        host.files[f"/proc/{pid}/environ"] = "ATOLL_PROCESS=worker-1\0"
    one = looks.one()
    assert [slot.processes for slot in one.slots] == [1, 3]
    assert one.drift_by_code == {"thread-outside": 2}


@pytest.mark.parametrize("cpu_s", [0.5, 9.0], ids=["clock-falls", "clock-rises"])
def test_a_pid_that_another_process_has_now_is_not_the_worker_s(
    host: LiveHost, cpu_s: float
) -> None:
    host.add_worker(20, SLOTS[0], parent=WORKERS[0])
    host.cpu_s = {WORKERS[0]: 1.0}
    looks = Looks(host)
    assert [slot.processes for slot in looks.one().slots] == [2, 1]
    host.reuse_pid(WORKERS[0], start_ticks=99_999)
    host.adopt(20, SUPERVISOR)
    host.files["/proc/20/environ"] = "ATOLL_PROCESS=worker-0\0"
    host.cpu_s = {WORKERS[0]: cpu_s}
    looks.view()
    one = looks.one()
    assert one.drift_by_code == {"process-missing": 1}
    assert [slot.processes for slot in one.slots] == [1, 1]


def test_a_worker_s_pid_reused_in_the_deployment_is_not_the_worker(host: LiveHost) -> None:
    looks = Looks(host)
    looks.view()
    host.reuse_pid(WORKERS[0], start_ticks=99_999)
    path = f"/proc/{WORKERS[0]}/stat"
    host.files[path] = host.files[path].replace(" S 0 ", f" S {WORKERS[1]} ")
    looks.view()
    one = looks.one()
    assert one.drift_by_code["process-missing"] == 1
    assert [slot.processes for slot in one.slots] == [0, 2]


def test_a_supervisor_that_was_killed_is_a_failure_and_nothing_is_touched(host: LiveHost) -> None:
    looks = Looks(host)
    looks.view()
    host.end_process(SUPERVISOR)
    one = looks.one()
    assert one.state is State.FAILED and "atoll ps" in one.error and one.slots == ()
    record = records.read("sea")
    assert record is not None and record.state is State.READY
    assert not any(process.signals for process in host.processes.values())


def test_one_that_starts_is_not_a_failure_while_its_name_is_locked(host: LiveHost) -> None:
    """`up` writes the record first, then the keeper and the supervisor each add themselves."""
    ready = records.read("sea")
    assert ready is not None
    begun = ready.model_copy(update={"state": State.STARTING, "supervisor": None})
    records.write(begun)
    looks, lock = Looks(host), records.try_lock("sea")
    assert lock is not None
    try:
        one = looks.one()
        assert (one.state, one.error, one.slots) == (State.STARTING, "", ())
        records.write(begun.model_copy(update={"keeper": ready.supervisor}))
        assert looks.one().state is State.STARTING
        records.write(begun)
    finally:
        os.close(lock)
    assert looks.one().state is State.FAILED, "'up' was killed before it had a keeper"


def test_one_that_ends_during_a_look_is_not_a_failure(
    host: LiveHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = Looks(host)
    looks.view()
    host.end_process(SUPERVISOR)
    whole = host.list_dir

    def ends(path: str) -> list[str]:  # after the records were read
        records.forget("sea")
        return whole(path)

    monkeypatch.setattr(host, "list_dir", ends)
    assert looks.one().state is not State.FAILED
    assert looks.view().deployments == ()


def test_one_dear_look_does_not_delay_the_next(
    host: LiveHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    used_s, dear_s, whole = 0.0, 0.025, host.list_dir

    def costs(path: str) -> list[str]:
        nonlocal used_s
        used_s += dear_s
        return whole(path)

    monkeypatch.setattr(host, "list_dir", costs)
    watcher = Watcher(host, cpu_clock=lambda: used_s)
    for _ in range(2):  # the first is complete, whatever it takes
        host.sleep(2)
        watcher.look()
    assert watcher.pause_s == 2
    for _ in range(9):
        host.sleep(watcher.pause_s)
        watcher.look()
    assert watcher.pause_s == pytest.approx(dear_s / 0.0015), "all are dear"


def test_a_rendered_deployment_is_known_by_its_marks() -> None:
    host = LiveHost()
    record = live_record(host)
    records.forget("sea")
    for slot, pid in enumerate(WORKERS):
        host.files[f"/proc/{pid}/environ"] = f"ATOLL_DEPLOYMENT=m\0ATOLL_PROCESS=worker-{slot}\0"
    host.add(1, comm="systemd")
    host.files["/proc/1/stat"] = stat(1, 0)
    host.files[f"/proc/{SUPERVISOR}/stat"] = stat(SUPERVISOR, 1)
    processes = tuple(process.spec for process in record.processes)
    rendered = Rendered(name="srv", mark="m", processes=processes)
    looks = Looks(host, rendered=[(rendered, record.plan)])
    one = looks.one()
    assert (one.name, one.state, one.up_s, one.drift_by_code) == ("srv", State.READY, None, {})
    assert [slot.processes for slot in one.slots] == [1, 1]

    host.reads.clear()
    looks.view()
    assert not [path for path in host.reads if path.endswith("/environ")], "they are known"
    host.masks[WORKERS[1]] = frozenset({0})
    host.end_process(WORKERS[0])
    assert looks.one().drift_by_code == {"process-missing": 1, "thread-outside": 1}
    host.add_worker(WORKERS[0], SLOTS[0])  # it was started again
    host.files[f"/proc/{WORKERS[0]}/environ"] = "ATOLL_DEPLOYMENT=m\0ATOLL_PROCESS=worker-0\0"
    assert "process-missing" not in looks.one().drift_by_code
    for pid in WORKERS:
        host.end_process(pid)
    one = looks.one()
    assert one.state is State.STOPPED and one.drift_by_code == {}


def test_a_record_that_cannot_be_read_is_a_notice(host: LiveHost) -> None:
    records.path_of("sea").write_text("{")
    view = Looks(host).view()
    assert view.deployments == () and "not JSON" in view.notices[0]


def test_a_slot_that_the_plan_lacks_is_a_notice(host: LiveHost) -> None:
    record = json.loads(records.path_of("sea").read_text())
    record["processes"][0]["spec"]["slot"] = 7
    records.path_of("sea").write_text(json.dumps(record))
    view = Looks(host).view()
    assert view.deployments == ()
    assert "process worker-0 has slot 7, but the plan has 2" in view.notices[0]


def test_memory_that_may_not_be_read_is_unknown_and_says_why(host: LiveHost) -> None:
    host.faults["/proc/11/numa_maps"] = 13
    looks = Looks(host)
    one = looks.one()
    assert one.slots[0].local_share is None and one.slots[0].bytes_by_node == {}
    assert one.unknown == ("memory: refused",)
    del host.faults["/proc/11/numa_maps"]
    host.sleep(30)
    assert looks.one().slots[0].bytes_by_node == {0: 8192}
    host.faults["/proc/11/numa_maps"] = 13
    host.sleep(30)
    slot = looks.one().slots[0]
    assert slot.bytes_by_node == {} and slot.local_share is None, "old figures would look new"


def test_idle_processes_are_not_read_again(host: LiveHost) -> None:
    looks = Looks(host)
    looks.view()
    host.reads.clear()
    looks.view()
    assert not [path for path in host.reads if "/task/" in path]


def test_looks_stay_within_their_share_and_every_process_has_its_turn(host: LiveHost) -> None:
    pids = [*WORKERS, *range(100, 120)]
    for pid in pids[2:]:
        host.add_worker(pid, SLOTS[0], parent=WORKERS[0])
    looks = Looks(host, cost_s=0.001)
    looks.view()
    oldest, costs = 0.0, []
    for turn in range(60):
        host.cpu_s = dict.fromkeys(pids, float(turn))
        view = looks.view()
        (one,) = view.deployments
        ages = [slot.runs_age_s for slot in one.slots]
        assert None not in ages
        oldest = max(oldest, *(age for age in ages if age is not None))
        costs.append(view.cost)
    assert 15 < oldest < 60, "they are read in turn"
    assert costs[-1] is not None and costs[-1] < 0.005


def test_bandwidth_is_that_of_a_slot_s_own_resctrl_group(host: LiveHost) -> None:
    root = "/sys/fs/resctrl"
    host.files["/proc/self/mountinfo"] = f"1 1 0:1 / {root} rw - resctrl resctrl rw\n"

    def count(group: str, tasks: str, whole: int, local: int) -> None:
        host.files |= {
            f"{group}/tasks": tasks,
            f"{group}/mon_data/mon_L3_00/mbm_total_bytes": f"{whole}\n",
            f"{group}/mon_data/mon_L3_00/mbm_local_bytes": f"{local}\n",
        }

    count(root, f"{WORKERS[1]}\n", 10**9, 10**9)  # the default group has the second worker
    count(f"{root}/one", f"{WORKERS[0]}\n", 1000, 500)
    looks = Looks(host)
    assert [slot.bytes_per_s for slot in looks.one().slots] == [None, None]
    count(f"{root}/one", f"{WORKERS[0]}\n", 9000, 4500)
    first, second = looks.one().slots
    assert (first.bytes_per_s, first.local_bytes_per_s) == (4000, 2000)
    assert second.bytes_per_s is None, "its group counts the rest of the machine, too"


def test_busy_cpus_are_those_between_two_looks(host: LiveHost) -> None:
    looks = Looks(host)
    host.files["/proc/stat"] = "cpu  0 0 0 0 0 0 0 0\ncpu0 10 0 0 90 0 0 0 0\nintr 5\n"
    assert looks.view().cpu_busy == {}
    host.files["/proc/stat"] = "cpu  0 0 0 0 0 0 0 0\ncpu0 60 0 10 120 0 0 0 0\nintr 5\n"
    assert looks.view().cpu_busy == {0: 0.667}
