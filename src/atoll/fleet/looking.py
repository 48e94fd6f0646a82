"""What each command asks a host, and what is taken from its answer.

Whatever a host sends is read as the format that it should be, with a bound on its size; nothing of
it is run, unpacked, or used as a path.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from atoll.errors import CheckFailed
from atoll.fleet.asking import Task
from atoll.fleet.connection import HostLost
from atoll.schema.base import parse
from atoll.schema.inspection import Finding, Severity
from atoll.schema.machine import Machine
from atoll.schema.plan import Plan
from atoll.schema.profile import Profile
from atoll.schema.summary import BenchSummary
from atoll.schema.text import printable
from atoll.store.files import write_atomic
from atoll.store.paths import make_folder

T = TypeVar("T")
Work = Callable[[Task], Awaitable[None]]


def discover(folder: Path | None) -> Work:
    async def work(task: Task) -> None:
        reply = await task.run("topo", "--json")
        machine = _document(Machine, reply.stdout)
        _keep(task, folder, "machine.json", reply.stdout)
        task.facts |= {
            "layout": machine.machine_id[:6],
            "cores": len(machine.cores),
            "nodes": len(machine.nodes),
            "chiplets": len(machine.chiplets),
            "memory_bytes": machine.memory_bytes,
            "cpu": machine.title,
        }

    return work


def measure(options: Sequence[str], folder: Path | None) -> Work:
    async def work(task: Task) -> None:
        reply = await task.run("measure", *options, "--json", limit_s=None)
        profile = _document(Profile, reply.stdout)
        _keep(task, folder, "profile.json", reply.stdout)
        task.warnings += [printable(notice.message) for notice in profile.notices]
        task.facts |= {
            "mode": profile.mode.value,
            "cpus": len(profile.cpus),
            "took_s": round(profile.seconds, 1),
        }

    return work


def plan(engine: str, options: Sequence[str], folder: Path | None) -> Work:
    async def work(task: Task) -> None:
        text, _ = await _planned(task, engine, options)
        _keep(task, folder, "plan.json", text)

    return work


def plan_cluster(engine: str, options: Sequence[str], parts: dict[str, Plan]) -> Work:
    """Instances listen at the address that the inventory has for their host, unless `options` say
    where. The plans go to `parts`, by host."""

    async def work(task: Task) -> None:
        address = task.link.reach.address
        chosen = any(word.partition("=")[0] == "--listen" for word in options)
        listen = () if chosen else ("--listen", address)
        _, parts[task.link.reach.name] = await _planned(task, engine, (*options, *listen))

    return work


async def _planned(task: Task, engine: str, options: Sequence[str]) -> tuple[str, Plan]:
    reply = await task.run("plan", engine, *options, "--json")
    made = _document(Plan, reply.stdout)
    task.facts |= {
        "policy": made.policy.value,
        "slots": len(made.slots),
        "threads": made.total_threads,
        "heap_bytes": made.total_heap_bytes,
        "layout": made.machine_id[:6],
    }
    return reply.stdout, made


def bench(engine: str, options: Sequence[str], run: str, folder: Path) -> Work:
    from atoll.bench.results import parse_results  # not above: it loads numpy

    async def work(task: Task) -> None:
        argv = ("bench", engine, *options, "--json")
        # What was measured before a fault, or before a signal ended it, is kept.
        reply = await task.run(*argv, results=run, limit_s=None, also=range(-64, 256))
        if reply.results:
            parse_results(reply.results.encode(), where="the results file that it sent")
            _keep(task, folder, "results.jsonl", reply.results)
        task.take(reply)
        found = _document(BenchSummary, reply.stdout)
        task.facts |= {
            "blocks": found.blocks_done,
            "queries": len(found.queries),
            "answers": found.answers,
            "differing": found.answers_differing,
        }

    return work


class _Status(BaseModel):
    state: str
    error: str
    uptime_s: float | None
    addresses: list[str]
    endpoints: list[str]


async def look_at(task: Task, deployment: str) -> None:
    """The state of a deployment. Raises CheckFailed unless it is ready."""
    reply = await task.run("status", deployment, "--json")
    found = _checked(TypeAdapter(_Status), reply.stdout)
    task.facts |= {
        "state": found.state,
        "up_s": found.uptime_s,
        "endpoint": (found.addresses or found.endpoints or [""])[0],
    }
    if found.state != "ready":
        raise CheckFailed(f"the deployment there is {found.state} ({found.error or 'no reason'})")


class _Verified(BaseModel):
    drifted: int
    threads: list[object]
    findings: list[Finding]


def verify(deployment: str) -> Work:
    async def work(task: Task) -> None:
        reply = await task.run("verify", deployment, "--json", also=(CheckFailed.exit_code,))
        found = _checked(TypeAdapter(list[_Verified]), reply.stdout)
        drift = [
            finding
            for one in found
            for finding in one.findings
            if finding.severity is Severity.DRIFT
        ]
        task.facts |= {"threads": sum(len(one.threads) for one in found), "drifted": len(drift)}
        if drift:
            first = drift[0]
            raise CheckFailed(
                f"{len(drift)} not where the plan put them; first {first.process}: expected "
                f"{first.expected}, found {first.found}; {first.remedy}"
            )
        task.take(reply)

    return work


def status(deployment: str) -> Work:
    async def work(task: Task) -> None:
        await look_at(task, deployment)

    return work


def _keep(task: Task, folder: Path | None, file: str, text: str) -> None:
    """Write what was checked to FOLDER/HOST/FILE. Raises NotPermitted, DiskFull."""
    if folder is not None:
        write_atomic(make_folder(folder / task.link.reach.name) / file, text)


def _document(kind: type[T], text: str) -> T:
    return parse(kind, text, where="what it sent", error=HostLost)


def _checked(kind: TypeAdapter[T], text: str) -> T:
    try:
        return kind.validate_json(text)
    except ValidationError:
        raise HostLost("what it sent is not what this Atoll's command prints") from None
