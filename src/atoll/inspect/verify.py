"""Checks whether every thread and page of a deployment is where the plan put it (`atoll verify`).

Pinning a process proves nothing: engines move their own threads, and a thread keeps the mask it
was created with. So every process of the deployment is inspected, descendants and orphans
included, and compared with the slot of the planned process that it comes from. Drift is defined in
`atoll.inspect.expectation` and the rules of `atoll.inspect.drift`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from atoll.errors import EngineFailed, ProcessGone
from atoll.host.api import Host
from atoll.host.procfs import Stat
from atoll.inspect.clues import read_numa_system
from atoll.inspect.expectation import planned
from atoll.inspect.inspection import inspect_process
from atoll.inspect.malloc import MallocFiles
from atoll.inspect.nics import listener_findings, look_at_nics
from atoll.inspect.processes import PROCESS_MARK, descendants, environment, process_table
from atoll.inspect.resctrl import L3Monitor
from atoll.inspect.spread import SpreadReader
from atoll.schema.base import Record
from atoll.schema.deployment import Deployment, NicCount, ProcessRecord
from atoll.schema.inspection import Finding, Inspection, NicLook, Severity
from atoll.schema.plan import Plan
from atoll.schema.text import printable


class Verification(Record):
    deployment: str
    processes: tuple[Inspection, ...]
    missing: tuple[Finding, ...]  # recorded processes that are gone
    elsewhere: tuple[Finding, ...] = ()  # ports that are open at another address
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

    @property
    def threads(self) -> int:
        return sum(len(process.threads) for process in self.processes)


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

    Raises EngineFailed if the supervisor is gone.
    """
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
                _missing(process)
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
    inspections = []
    for pid, process in sorted(subject.origins.items()):
        expectation = planned(
            process, subject.plan, everything=subject.everything, node_cpus=machine.node_cpus
        )
        try:
            inspections.append(
                inspect_process(
                    host, pid, machine, expectation, deep=deep, l3=l3, files=files, spreads=spreads
                )
            )
        except ProcessGone:
            continue  # a child that has ended; the subject names missing planned processes
    return Verification(
        deployment=subject.name,
        processes=tuple(inspections),
        missing=subject.missing,
        elsewhere=tuple(
            finding
            for process in (subject.processes if deep else ())
            for finding in listener_findings(
                host, process, [pid for pid, own in subject.origins.items() if own is process]
            )
        ),
        nics=look_at_nics(host, subject.plan, subject.nics) if deep else (),
    )


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
                "expected_cpus": process.expected.cpus,
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


def attribute(
    host: Host, deployment: Deployment, table: Mapping[int, Stat]
) -> dict[int, ProcessRecord]:
    """Every living process below the supervisor, with the planned process that it comes from.

    The link is descent; for a process whose parent has died, the mark in its environment.
    """
    assert deployment.supervisor is not None
    by_pid = {process.id.pid: process for process in deployment.processes if process.id}
    by_name = {process.spec.name: process for process in deployment.processes}
    origins: dict[int, ProcessRecord] = {}
    for process in descendants(table, deployment.supervisor.pid):  # parents come first
        origin = (
            by_pid.get(process.pid)
            or origins.get(table[process.pid].parent)
            or by_name.get(environment(host, process.pid).get(PROCESS_MARK, ""))
        )
        if origin is not None:
            origins[process.pid] = origin
    return origins


def _missing(process: ProcessRecord) -> Finding:
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
