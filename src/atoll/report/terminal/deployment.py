"""A deployment for a terminal: how to connect, its processes, and what a start would do. Pure.

Commands are never wrapped, so that they can be copied.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from rich.table import Table

from atoll.report.terminal.grid import grid
from atoll.schema.cpulist import brief_cpulist, parse_cpulist
from atoll.schema.deployment import Access, Deployment, State
from atoll.schema.size import gib
from atoll.schema.text import plural
from atoll.supervise.lastwords import how_it_ended
from atoll.supervise.place import placed_argv
from atoll.supervise.request import Request
from atoll.supervise.status import Status

_MOST_SERVERS = 4


def ready_lines(name: str, access: Sequence[Access]) -> list[str]:
    """What `atoll up -d` prints."""
    return [f"{name}: ready; stop it with 'atoll down {name}'", *access_lines(name, access)]


def access_lines(name: str, access: Sequence[Access], *, most: int = _MOST_SERVERS) -> list[str]:
    """How to connect to each server."""
    lines = []
    for one in access[:most]:
        lines += [f"  address  {one.address}", f"  connect  {one.command}"]
    if len(access) > most:
        lines.append(f"  and {len(access) - most} more servers: atoll status {name}")
    return lines + [
        f"  note     {note}" for note in dict.fromkeys(a.remark for a in access) if note
    ]


def endpoint(deployment: Deployment) -> str:
    """The first server's address for a narrow table; paths are too long for one."""
    if not deployment.access or deployment.state is State.FAILED:
        return "–"
    first, more = deployment.access[0].address, len(deployment.access) - 1
    scheme, _, place = first.rpartition("://")
    shown = "UNIX socket" if not scheme else first if scheme.startswith("http") else place
    return f"{shown} +{more}" if more else shown


def heading(found: Status) -> list[str]:
    """State, time and addresses."""
    deployment = found.deployment
    what = f"{deployment.plan.engine} under {deployment.plan.policy.value}"
    what += f" with {plural(len(deployment.plan.slots), 'worker instance')}"
    if deployment.state is State.FAILED:
        return [f"{deployment.name}: failed, {what}", f"  error    {deployment.error}"]
    state = f"{deployment.state.value} for {duration(found.uptime_s)}"
    every = len(deployment.access)
    lines = access_lines(deployment.name, deployment.access, most=every)
    return [f"{deployment.name}: {state}, {what}", *lines]


def process_table(found: Status) -> Table:
    table = grid(header="bold", gap=1)
    table.add_column("PROCESS", overflow="fold")
    table.add_column("SLOT", justify="right")
    table.add_column("PID", justify="right", no_wrap=True)
    table.add_column("CPUS", overflow="fold")
    table.add_column("MEMORY", justify="right", no_wrap=True)
    for process in found.processes:
        ended = "–" if process.exit_status is None else how_it_ended(process.exit_status)
        table.add_row(
            process.name,
            "–" if process.slot is None else str(process.slot),
            "–" if process.pid is None else str(process.pid),
            brief_cpulist(parse_cpulist(process.cpus)) if process.cpus else ended,
            gib(process.memory_bytes) if process.memory_bytes else "–",
        )
    return table


def duration(seconds: float) -> str:
    """'5 s', '2 min 5 s', '3 h 12 min', '4 d 3 h'."""
    parts: list[str] = []
    rest = int(seconds)
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, rest = divmod(rest, size)
        if count or parts or unit == "s":
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2])


def start_lines(request: Request) -> list[str]:
    """What `atoll up --dry-run` prints below the plan."""
    lines = [
        "",
        f"Files in {request.run_dir} ({request.id} and ports that you did not choose differ at "
        "the start):",
    ]
    lines += (f"  {path}" for path in sorted(request.files))
    lines += (f"  {path} (a copy of {source})" for path, source in sorted(request.copies.items()))
    lines += (f"  {path} -> {target}" for path, target in sorted(request.links.items()))
    stages = sorted({process.stage for process in request.processes})
    for number, stage in enumerate(stages, start=1):
        lines += ["", f"Command lines of stage {number} of {len(stages)}:"]
        for process in request.processes:
            if process.stage == stage:
                argv = placed_argv(request.launcher, request.plan, process)
                lines.append(f"  {process.name}: {shlex.join(argv)}")
    return lines
