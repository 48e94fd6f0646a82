"""What a deployment's processes are doing now: where they may run, and how much memory they use."""

from __future__ import annotations

import time

from atoll.errors import UsageError
from atoll.host.api import Host
from atoll.host.procfs import status_field
from atoll.inspect.processes import GONE, attribute, process_table
from atoll.schema.base import Record
from atoll.schema.cpulist import format_cpulist
from atoll.schema.deployment import Deployment, State
from atoll.supervise.stop import listing, no_deployment


class ProcessStatus(Record):
    name: str
    role: str
    slot: int | None
    pid: int | None  # None: not started yet, or ended
    cpus: str  # that its main thread may use; empty if it does not run
    memory_bytes: int  # resident, with its children; memory that they share counts once
    exit_status: int | None
    log: str


class Status(Record):
    deployment: Deployment
    uptime_s: float
    processes: tuple[ProcessStatus, ...]


def find(name: str | None, host: Host) -> tuple[Deployment, list[str]]:
    """The deployment of that name, up or failed, and notices of `listing`. None: the only one.

    Raises UsageError."""
    deployments, notices = listing(host)
    by_name = {deployment.name: deployment for deployment in deployments}
    if name is None:
        if len(by_name) != 1:
            raise UsageError(
                f"name the deployment ({', '.join(by_name)})" if by_name else "nothing is up"
            )
        (name,) = by_name
    if name not in by_name:
        raise no_deployment(name, by_name)
    return by_name[name], notices


def status(deployment: Deployment, host: Host) -> Status:
    family: dict[str, list[int]] = {}
    supervisor = deployment.supervisor
    if supervisor is not None and host.identify(supervisor.pid) == supervisor:
        for pid, process in attribute(host, deployment, process_table(host)).items():
            family.setdefault(process.spec.name, []).append(pid)
    processes = []
    for process in deployment.processes:
        name, spec = process.spec.name, process.spec
        lives = process.id is not None and host.identify(process.id.pid) == process.id
        living = process.id.pid if process.id is not None and lives else None
        processes.append(
            ProcessStatus(
                name=name,
                role=spec.role,
                slot=spec.slot,
                pid=living,
                cpus=_cpus(living, host),
                memory_bytes=_resident_bytes(family.get(name, []), host),
                exit_status=process.exit_status,
                log=process.log,
            )
        )
    return Status(
        deployment=deployment,
        uptime_s=max(0.0, time.time() - deployment.created_unix_s),
        processes=tuple(processes),
    )


def document(found: Status) -> dict[str, object]:
    """What `atoll status --json` prints."""
    deployment = found.deployment
    running = deployment.state is not State.FAILED
    return {
        **summary(deployment),
        "uptime_s": round(found.uptime_s, 1) if running else None,
        "access": [one.model_dump(mode="json") for one in deployment.access],
        "options": deployment.options.model_dump(mode="json") if deployment.options else None,
        "run_folder": deployment.run_dir,
        "processes": [process.model_dump(mode="json") for process in found.processes],
    }


def summary(deployment: Deployment) -> dict[str, object]:
    """What `atoll ps --json` prints of a deployment."""
    pids = [process.id.pid for process in deployment.processes if process.id is not None]
    return {
        "name": deployment.name,
        "engine": deployment.plan.engine,
        "policy": deployment.plan.policy.value,
        "slots": len(deployment.plan.slots),
        "state": deployment.state.value,
        "error": deployment.error,
        "up_since_unix_s": deployment.created_unix_s,
        "supervisor_pid": deployment.supervisor.pid if deployment.supervisor else None,
        "pids": pids,
        "addresses": [one.address for one in deployment.access],
        "endpoints": list(deployment.endpoints),
        "logs": [process.log for process in deployment.processes],
    }


def _cpus(pid: int | None, host: Host) -> str:
    try:
        return "" if pid is None else format_cpulist(host.affinity(pid))
    except ProcessLookupError:
        return ""


def _resident_bytes(pids: list[int], host: Host) -> int:
    """Anonymous memory of all. Of files and shared memory only the most that one has mapped: a
    family of processes shares them."""
    own_kib, shared_kib = 0, 0
    for pid in pids:
        try:
            text = host.read_text(f"/proc/{pid}/status")
        except GONE:
            continue
        anonymous, file, shared = (
            int(status_field(text, name).removesuffix(" kB") or 0)
            for name in ("RssAnon", "RssFile", "RssShmem")
        )
        own_kib, shared_kib = own_kib + anonymous, max(shared_kib, file + shared)
    return (own_kib + shared_kib) << 10
