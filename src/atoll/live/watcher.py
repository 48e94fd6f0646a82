"""Looks at all deployments of this user again and again, at a bounded cost. Changes nothing.

Every look reads the CPU time of each process, by a clock that costs microseconds, and of each CPU.
What costs more (`atoll.live.process`) is done for one process after the other, while each kind of
look stays within its share of one core. So 5,000 threads cost what 500 do, and their figures are
older; every figure has its age. Only the first look is complete, whatever it takes.

A deployment whose supervisor and keeper are gone is shown as failed; `atoll ps` cleans it up.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache

from atoll.errors import AtollError
from atoll.host.api import FileId, Host
from atoll.host.cpu_times import CpuTimes, times_by_name
from atoll.inspect.clues import read_numa_system
from atoll.inspect.expectation import planned
from atoll.inspect.processes import attribute
from atoll.inspect.rendered import FIRST_PID, attribute_rendered, not_running
from atoll.inspect.resctrl import find_mount, memory_traffic
from atoll.inspect.verify import missing_finding
from atoll.live.budget import Budget
from atoll.live.process import WatchedProcess, look_at_masks, look_at_pages, look_at_runs
from atoll.live.process_list import ProcessList
from atoll.live.views import SlotTotals, first_alike, slot_view
from atoll.schema.cpulist import format_cpulist
from atoll.schema.deployment import Deployment, ProcessId, ProcessRecord, State
from atoll.schema.inspection import Finding
from atoll.schema.live import DeploymentView, LiveView
from atoll.schema.plan import Plan
from atoll.schema.rendered import Rendered
from atoll.schema.text import printable
from atoll.supervise import records
from atoll.supervise.stop import is_stale

INTERVAL_S = 2.0
FINDINGS_SHOWN = 50
_STRANGERS_S = 30.0
_SHARE = 0.0015  # of one core, for what every look does
_MOST_CREDIT_S = 20.0  # a dear look, like one that reads new records, does not delay the next ones


@dataclass(slots=True)
class _Watched:
    """A deployment that is up."""

    record: Deployment
    everything: frozenset[int]
    strangers: set[int] = field(default_factory=set)  # see attribute_rendered
    processes: dict[int, WatchedProcess] = field(default_factory=dict)
    slots: dict[int | None, SlotTotals] = field(default_factory=dict)

    def by_slot(self) -> dict[int | None, list[WatchedProcess]]:
        """Every slot that has or had processes."""
        found: dict[int | None, list[WatchedProcess]] = {slot: [] for slot in self.slots}
        for one in self.processes.values():
            found[one.expectation.slot].append(one)
        return found

    def forget(self, pid: int) -> None:
        process = self.processes.pop(pid)
        self.slots[process.expectation.slot].migrations += process.migrations


@lru_cache(maxsize=1024)
def _cpulist(cpus: tuple[int, ...]) -> str:
    return format_cpulist(cpus)


class Watcher:
    """`cpu_clock`: the CPU time of the thread that calls `look`. `rendered`: deployments that run
    without Atoll, and their plans."""

    def __init__(
        self,
        host: Host,
        *,
        rendered: Iterable[tuple[Rendered, Plan]] = (),
        interval_s: float = INTERVAL_S,
        cpu_clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self._host, self._interval_s, self._cpu_clock = host, interval_s, cpu_clock
        self._machine = read_numa_system(host)
        self._list = ProcessList(host)
        self._suspects: set[int] = set()  # pids that may belong to other processes now
        self._rendered = {one.mark: _record_of(one, plan) for one, plan in rendered}
        self._strangers_s = 0.0  # when all environments were read last
        self._files: dict[str, tuple[FileId, Deployment]] = {}
        self._watched: dict[str, _Watched] = {}  # by the deployment's id
        self._times: dict[str, CpuTimes] = {}
        self._masks = Budget(0.0007, 2.0, cpu_clock)
        self._runs = Budget(0.0009, 2.0, cpu_clock)
        self._pages = Budget(0.0005, 20.0, cpu_clock)
        # Without resctrl nothing is counted, and it is not mounted while programs run.
        self._counts_bytes = find_mount(host.read_text("/proc/self/mountinfo")) is not None
        self._traffic = Budget(0.0002, 2.0, cpu_clock)
        self._first_s: float | None = None
        self._at_s = 0.0
        self._cost_s = 0.0  # of all looks but the first
        self._credit_s = _SHARE * _MOST_CREDIT_S  # CPU time; negative if looks cost too much
        self.pause_s = interval_s  # until the next look

    def look(self) -> LiveView:
        """Raises nothing that a deployment or a process can cause."""
        began_s, now_s = self._cpu_clock(), self._host.monotonic()
        elapsed_s = None if self._first_s is None else max(now_s - self._at_s, 1e-3)
        deployments, notices = self._records()
        self._follow(deployments)
        self._read_clocks()
        busy = self._cpu_busy()
        closer_s = self._cpu_clock()
        self._look_closer(now_s, elapsed_s)
        closer_s = self._cpu_clock() - closer_s
        views = tuple(self._view(one, now_s, elapsed_s or 1.0) for one in deployments)
        cost = None
        if self._first_s is None:
            self._first_s = now_s
        else:
            took_s = self._cpu_clock() - began_s
            self._cost_s += took_s
            earned_s = self._credit_s + _SHARE * (elapsed_s or 0.0)
            self._credit_s = min(earned_s, _SHARE * _MOST_CREDIT_S) - (took_s - closer_s)
            self.pause_s = max(self._interval_s, -self._credit_s / _SHARE)
            cost = round(self._cost_s / (now_s - self._first_s), 5)
        self._at_s = now_s
        return LiveView(
            at_unix_s=time.time(),
            interval_s=round(elapsed_s or 0.0, 3),
            cost=cost,
            cpu_busy=busy,
            deployments=views,
            notices=tuple(notices),
        )

    def plans(self) -> dict[str, Plan]:
        """Of the deployments that the last look found up, by name; for any thread."""
        return {one.record.name: one.record.plan for one in list(self._watched.values())}

    # ---- Deployments and their processes ----------------------------------------------------

    def _records(self) -> tuple[list[Deployment], list[str]]:
        found, notices = [], []
        names = records.names()
        self._files = {name: self._files[name] for name in names if name in self._files}
        for name in names:
            try:
                file_id = self._host.file_id(str(records.path_of(name)))
                known = self._files.get(name)
                if known is None or known[0] != file_id:
                    record = records.read(name)
                    if record is None:
                        continue
                    known = self._files[name] = file_id, record
                found.append(known[1])
            except FileNotFoundError:
                continue  # it has just ended
            except (AtollError, OSError) as fault:
                notices.append(printable(str(fault)))
        return [*found, *self._rendered.values()], notices

    def _follow(self, deployments: Iterable[Deployment]) -> None:
        changed = self._list.refresh(self._suspects)
        self._suspects.clear()
        before, self._watched = self._watched, {}
        now_s = self._host.monotonic()
        again = now_s - self._strangers_s > _STRANGERS_S  # a process gets its mark at its exec
        self._strangers_s = now_s if again else self._strangers_s
        for record in deployments:
            responsible = self._responsible(record)
            if responsible is None:
                continue
            watched = before.get(record.id)
            try:
                if watched is None:
                    watched = _Watched(record, self._host.affinity(responsible))
                if again:
                    watched.strangers.clear()
                if changed or again or watched.record is not record or not watched.processes:
                    watched.record = record
                    self._attribute(watched)
            except ProcessLookupError:
                continue
            self._watched[record.id] = watched

    def _is_abandoned(self, record: Deployment) -> bool:
        """Whether it claims to be up, but was killed. One that starts has no supervisor yet, but
        its name is locked; one that has just ended regularly has no record any more."""
        name = record.name
        stale = record.state is not State.FAILED and is_stale(record, self._host)
        return stale and not records.is_held(name) and records.path_of(name).exists()

    def _responsible(self, record: Deployment) -> int | None:
        """The process whose mask those without one have; None if the deployment is not up."""
        if record.id in self._rendered:
            return FIRST_PID
        down = record.state is State.FAILED or is_stale(record, self._host)
        return None if record.supervisor is None or down else record.supervisor.pid

    def _attribute(self, watched: _Watched) -> None:
        record, table = watched.record, self._list.table
        if record.id in self._rendered:
            origins = attribute_rendered(
                self._host, record.id, record.processes, table, watched.strangers
            )
        else:
            origins = attribute(self._host, record, table)
        for pid, process in list(watched.processes.items()):
            if pid not in origins or table[pid].start_ticks != process.id.start_ticks:
                watched.forget(pid)
        for pid in origins.keys() - watched.processes.keys():
            expectation = planned(
                origins[pid],
                record.plan,
                everything=watched.everything,
                node_cpus=self._machine.node_cpus,
            )
            if record.plan.task_threads is not None:  # single threads have single CPUs
                expectation = replace(expectation, exact=False)
            watched.slots.setdefault(expectation.slot, SlotTotals())
            watched.processes[pid] = WatchedProcess(
                ProcessId(pid=pid, start_ticks=table[pid].start_ticks),
                expectation,
                cpu_s=0.0 if pid in self._list.begun else None,
            )

    def _read_clocks(self) -> None:
        for watched in self._watched.values():
            for totals in watched.slots.values():
                totals.used_s = 0.0
            for pid, process in list(watched.processes.items()):
                try:
                    cpu_s = self._host.cpu_seconds(pid)
                except ProcessLookupError:
                    watched.forget(pid)
                    self._suspects.add(pid)
                    continue
                used_s = 0.0 if process.cpu_s is None else cpu_s - process.cpu_s
                if used_s < 0:  # another process has the pid now
                    used_s = 0.0
                    self._suspects.add(pid)
                process.cpu_s, process.ran = cpu_s, process.ran or used_s > 0
                totals = watched.slots[process.expectation.slot]
                totals.used_s += used_s
                totals.cpu_seconds += used_s

    def _cpu_busy(self) -> dict[int, float]:
        before, self._times = self._times, times_by_name(self._host)
        return {
            int(name[3:]): round((now.busy - was.busy) / (now.total - was.total), 3)
            for name, now in self._times.items()
            if name != "cpu" and (was := before.get(name)) is not None and now.total > was.total
        }

    # ---- Looks that cost more ---------------------------------------------------------------

    def _look_closer(self, now_s: float, elapsed_s: float | None) -> None:
        host, machine = self._host, self._machine
        processes = [one for each in self._watched.values() for one in each.processes.values()]
        for one in self._masks.due(((p.masks_at_s, p) for p in processes), now_s, elapsed_s):
            with one.noting("threads"):
                if host.identify(one.pid) != one.id:
                    self._suspects.add(one.pid)
                look_at_masks(host, one, machine, now_s)
        ran = ((p.runs_at_s, p) for p in processes if p.ran)
        for one in self._runs.due(ran, now_s, elapsed_s):
            with one.noting("runs"):
                look_at_runs(host, one, now_s)
        for one in self._pages.due(((p.memory_at_s, p) for p in processes), now_s, elapsed_s):
            with one.noting("memory"):
                look_at_pages(host, one, machine, now_s)
        if self._counts_bytes:
            slots = (
                (watched.slots[slot].traffic_at_s, (watched.slots[slot], own))
                for watched in self._watched.values()
                for slot, own in watched.by_slot().items()
            )
            for totals, processes in self._traffic.due(slots, now_s, elapsed_s):
                counted = memory_traffic(host, [one.pid for one in processes], own_groups=True)
                totals.note_traffic(counted, now_s)

    # ---- The view -----------------------------------------------------------------------------

    def _view(self, record: Deployment, now_s: float, elapsed_s: float) -> DeploymentView:
        watched, plan = self._watched.get(record.id), record.plan
        rendered = record.id in self._rendered
        state, error = record.state, record.error
        if rendered and not (watched and watched.processes):
            state, error = State.STOPPED, "none of its processes runs, or this user cannot see them"
        elif watched is None and self._is_abandoned(record):
            state, error = State.FAILED, "its supervisor is gone; 'atoll ps' ends what is left"
        drift: list[Finding] = []
        unknown: dict[str, None] = {}
        slots = []
        if watched is not None:
            drift = self._gone(watched) if state is record.state else []
            for one in watched.processes.values():
                drift += one.drift
                unknown |= dict.fromkeys(one.unknown.values())
            places: dict[int | None, tuple[int, ...] | None] = {
                None: plan.coordinator.cpus if plan.coordinator else None,
                **{slot.index: slot.cpus for slot in plan.slots},
            }
            by_slot = watched.by_slot()
            for number in sorted(by_slot, key=lambda one: -1 if one is None else one):
                cpus = places[number]
                slots.append(
                    slot_view(
                        number,
                        _cpulist(tuple(watched.everything) if cpus is None else cpus),
                        watched.slots[number],
                        by_slot[number],
                        masked=cpus is not None,
                        now_s=now_s,
                        elapsed_s=elapsed_s,
                    )
                )
        return DeploymentView(
            name=record.name,
            engine=plan.engine,
            policy=plan.policy.value,
            state=state,
            error=printable(error),
            up_s=None if rendered else round(max(0.0, time.time() - record.created_unix_s), 1),
            slots=tuple(slots),
            findings=first_alike(drift, FINDINGS_SHOWN),
            drift_by_code=dict(sorted(Counter(one.code for one in drift).items())),
            unknown=tuple(unknown),
        )

    def _gone(self, watched: _Watched) -> list[Finding]:
        """The planned processes that have begun and do not run, unless it is being stopped."""
        record = watched.record
        if record.id in self._rendered:
            running = {one.expectation.process for one in watched.processes.values()}
            names = [process.spec.name for process in record.processes]
            return [not_running(name) for name in names if name not in running]
        if record.state not in (State.STARTING, State.READY):
            return []
        return [
            missing_finding(process)
            for process in record.processes
            if process.id is not None
            and (
                (stat := self._list.table.get(process.id.pid)) is None
                or stat.start_ticks != process.id.start_ticks
            )
        ]


def _record_of(rendered: Rendered, plan: Plan) -> Deployment:
    """A deployment without supervisor, folders and ids of processes."""
    return Deployment(
        name=rendered.name,
        id=rendered.mark,
        boot_id="",
        run_dir="",
        scratch_dir="",
        plan=plan,
        state=State.READY,
        supervisor=None,
        keeper=None,
        processes=tuple(ProcessRecord(spec=spec, log="") for spec in rendered.processes),
        created_unix_s=0.0,
    )
