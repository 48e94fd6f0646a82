"""Checks whether every thread and page of a deployment is where the plan put it (`atoll verify`).

Pinning a process proves nothing: engines move their own threads, and a thread keeps the mask it
was created with. So every process of the deployment is inspected, descendants and orphans
included, and compared with the slot of the planned process that it comes from. Drift is defined in
`atoll.inspect.expectation` and the rules of `atoll.inspect.drift`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from atoll.errors import EngineFailed, ProcessGone
from atoll.host.api import Host
from atoll.inspect.clues import read_numa_system
from atoll.inspect.drift_threads import PASSING
from atoll.inspect.expectation import planned
from atoll.inspect.inspection import inspect_process
from atoll.inspect.malloc import MallocFiles
from atoll.inspect.nics import listener_findings, look_at_nics, route_findings
from atoll.inspect.processes import attribute, process_table
from atoll.inspect.resctrl import L3Monitor
from atoll.inspect.spread import SpreadReader
from atoll.inspect.tasks import TaskFinder
from atoll.schema.base import Record
from atoll.schema.deployment import Deployment, NicCount, ProcessRecord
from atoll.schema.inspection import Finding, Inspection, NicLook, Severity
from atoll.schema.plan import Placement, Plan
from atoll.schema.text import printable

# Longer than the supervisor lets pass between two looks at the threads.
_SETTLES_S = 2.0


class Verification(Record):
    deployment: str
    processes: tuple[Inspection, ...]
    missing: tuple[Finding, ...]  # recorded processes that are gone
    placement: Placement = Placement.NONE
    elsewhere: tuple[Finding, ...] = ()  # ports at other addresses, packets over other NICs
    nics: tuple[NicLook, ...] = ()  # empty if everything listens on loopback

    @property
    def findings(self) -> list[Finding]:
        findings = [*self.missing, *self.elsewhere]
        for process in self.processes:
            findings += process.findings
        return findings

    @property
    def drift(self) -> list[Finding]:
        return [one for one in self.findings if one.severity is Severity.DRIFT]

    @property
    def drifted(self) -> int:
        return len(self.drift)

    def lasting(self, earlier: Verification) -> Self:
        """Without drift of threads that `earlier` did not see yet."""
        seen = {(one.pid, one.tid, one.code) for one in earlier.drift}

        def lasts(one: Finding) -> bool:
            return one.code not in PASSING or (one.pid, one.tid, one.code) in seen

        return self.model_copy(
            update={
                "processes": tuple(
                    process.model_copy(update={"findings": tuple(filter(lasts, process.findings))})
                    for process in self.processes
                )
            }
        )

    @property
    def threads(self) -> int:
        return sum(len(process.threads) for process in self.processes)

    @property
    def task_threads(self) -> int:
        """The threads that thread placement binds, one by one."""
        return sum(len(process.expected.task_cpus) for process in self.processes)


@dataclass(frozen=True, slots=True)
class Subject:
    """What to inspect: the planned processes of a deployment, and all that come from them."""

    name: str
    plan: Plan
    processes: tuple[ProcessRecord, ...]
    origins: Mapping[int, ProcessRecord]  # by pid; the records are those of `processes`
    everything: frozenset[int]  # the CPUs of a process without a mask
    missing: tuple[Finding, ...]
    nics: tuple[NicCount, ...] = ()  # their counts at the start


def verify(
    host: Host, deployment: Deployment, *, deep: bool, interval_s: float = 1.0
) -> Verification:
    """Inspects everything once. Unless `deep`, only threads and memory policies, in milliseconds.

    Under thread placement the supervisor binds new threads a moment after they start. So if there
    is drift, everything is inspected a second time, and drift of threads counts if it lasts.

    Raises EngineFailed if the supervisor is gone.
    """
    found = _look(host, deployment, deep=deep, interval_s=interval_s)
    if not found.drifted or deployment.plan.task_threads is None:
        return found
    host.sleep(_SETTLES_S)
    return _look(host, deployment, deep=deep, interval_s=interval_s).lasting(found)


def _look(host: Host, deployment: Deployment, *, deep: bool, interval_s: float) -> Verification:
    supervisor = deployment.supervisor
    if supervisor is None or host.identify(supervisor.pid) != supervisor:
        raise EngineFailed(f"{deployment.name}: is not running; see 'atoll ps'")
    try:
        everything = host.affinity(supervisor.pid)
    except ProcessLookupError:
        raise EngineFailed(f"{deployment.name}: has just ended; see 'atoll ps'") from None
    return look(
        host,
        Subject(
            name=deployment.name,
            plan=deployment.plan,
            processes=deployment.processes,
            origins=attribute(host, deployment, process_table(host)),
            everything=everything,
            nics=deployment.nics,
            missing=tuple(
                missing_finding(process)
                for process in deployment.processes
                # A process of a later stage has no id yet while the deployment starts.
                if process.id is not None and host.identify(process.id.pid) != process.id
            ),
        ),
        deep=deep,
        interval_s=interval_s,
    )


def look(host: Host, subject: Subject, *, deep: bool, interval_s: float) -> Verification:
    """Inspects every process of the subject once."""
    machine = read_numa_system(host)
    files, l3, spreads = MallocFiles(host), L3Monitor(host, interval_s), SpreadReader()
    task_cpus: dict[int, dict[int, int]] = {}
    unasked: dict[int, str] = {}
    if subject.plan.task_threads is not None:
        finder = TaskFinder(host, subject.plan.task_threads)
        for slot, threads in finder.look(subject.origins).items():
            for (pid, tid), cpu in threads.seats(subject.plan.slots[slot].thread_cpus).items():
                task_cpus.setdefault(pid, {})[tid] = cpu
        unasked = finder.faults
    inspections = []
    for pid, process in sorted(subject.origins.items()):
        expectation = planned(
            process,
            subject.plan,
            everything=subject.everything,
            node_cpus=machine.node_cpus,
            task_cpus=task_cpus.get(pid),
        )
        try:
            inspection = inspect_process(
                host, pid, machine, expectation, deep=deep, l3=l3, files=files, spreads=spreads
            )
        except ProcessGone:
            continue  # a child that has ended; the subject names missing planned processes
        if pid in unasked:
            findings = (_unnamed(inspection, unasked[pid]), *inspection.findings)
            inspection = inspection.model_copy(update={"findings": findings})
        inspections.append(inspection)
    return Verification(
        deployment=subject.name,
        placement=subject.plan.placement,
        processes=tuple(inspections),
        missing=subject.missing,
        elsewhere=(*_listening(host, subject), *route_findings(host, subject.plan)) if deep else (),
        nics=look_at_nics(host, subject.plan, subject.nics) if deep else (),
    )


def _listening(host: Host, subject: Subject) -> Iterator[Finding]:
    for process in subject.processes:
        pids = [pid for pid, own in subject.origins.items() if own is process]
        yield from listener_findings(host, process, pids)


def document(found: Verification) -> dict[str, object]:
    """What `atoll verify --json` prints: the inspections, and rows for quick queries."""
    outside = {(f.pid, f.tid) for f in found.drift if f.code.startswith("thread-")}
    policies = {f.pid for f in found.drift if f.code == "memory-policy"}
    return {
        "deployment": found.deployment,
        "drifted": found.drifted,
        "missing": [finding.process for finding in found.missing],
        "threads": [
            {
                "process": process.process,
                "slot": process.slot,
                "pid": process.pid,
                "tid": thread.tid,
                "comm": thread.comm,
                "expected_cpus": str(
                    process.expected.task_cpus.get(thread.tid, process.expected.cpus)
                ),
                "runs_tasks": thread.tid in process.expected.task_cpus,
                "found_cpus": thread.cpus,
                "last_cpu": thread.last_cpu,
                "drifted": (process.pid, thread.tid) in outside,
            }
            for process in found.processes
            for thread in process.threads
        ],
        "memory": [
            {
                "process": process.process,
                "pid": process.pid,
                "expected": process.expected.memory_policy,
                "found": process.memory_policy,
                "drifted": process.pid in policies,
            }
            for process in found.processes
        ],
        "nics": [nic.model_dump(mode="json") for nic in found.nics],
        "findings": [finding.model_dump(mode="json") for finding in found.findings],
        "processes": [process.model_dump(mode="json") for process in found.processes],
    }


def brief(finding: Finding) -> str:
    """One finding as a line of a log: 'worker-0 tid 12 (python): CPUs 0-3 instead of 1'."""
    thread = "" if finding.tid is None else f" tid {finding.tid} ({finding.comm})"
    mapping = f" {finding.mapping}" if finding.mapping else ""
    pid = f" pid {finding.pid}" if finding.pid else ""
    where = f"{finding.process}{pid}{thread}{mapping}"
    return printable(f"{where}: {finding.code}: {finding.found} instead of {finding.expected}")


def _unnamed(inspection: Inspection, why: str) -> Finding:
    return Finding(
        code="thread-unplaced",
        severity=Severity.DRIFT,
        process=inspection.process,
        pid=inspection.pid,
        expected="each thread that runs tasks on one CPU",
        found="threads whose full names only the JVM knows",
        cause=f"the JVM gives no thread dump: {why}",
        remedy="remove the flags that keep the JVM from answering, or use --placement none",
    )


def missing_finding(process: ProcessRecord) -> Finding:
    """The finding for a recorded process that is gone."""
    assert process.id is not None
    return Finding(
        code="process-missing",
        severity=Severity.DRIFT,
        process=process.spec.name,
        pid=process.id.pid,
        expected="running",
        found="gone",
        cause=f"it ended or was killed; its log: {process.log}",
        remedy="see 'atoll ps' for the deployment's state; start it again with 'atoll up'",
    )
