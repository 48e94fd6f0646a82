"""`atoll verify`: is every thread where the plan says?"""

from __future__ import annotations

import json

import click
from rich.console import Console
from rich.table import Table

from atoll.errors import CheckFailed, UsageError
from atoll.host.local import LocalHost
from atoll.inspect.threads import Verification, verify
from atoll.schema.deployment import State
from atoll.supervise.stop import listing


@click.command(epilog="Example: atoll verify spark --json")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print every thread as JSON.")
def command(name: str | None, as_json: bool) -> None:
    """Check the CPU mask of every thread of NAME, or of all that are up.

    Every process of a deployment is looked at, with all its descendants. On a machine with
    several memory nodes the memory policy of every process is checked too. Exit code 1 and
    a line for each thread that is elsewhere.
    """
    host = LocalHost()
    deployments, _ = listing(host)
    if name is not None:
        chosen = [deployment for deployment in deployments if deployment.name == name]
        if not chosen:
            up = ", ".join(deployment.name for deployment in deployments) or "nothing is up"
            raise UsageError(f"no deployment is named {name!r} (known: {up})")
    else:
        chosen = [each for each in deployments if each.state in (State.STARTING, State.READY)]
        if not chosen:
            raise UsageError("nothing is up; start something with 'atoll up'")
    results = [verify(host, deployment) for deployment in chosen]
    if as_json:
        print(json.dumps([_as_json(result) for result in results], indent=1))
    else:
        console = Console(highlight=False)
        for result in results:
            _print(console, result)
    drifted = sum(result.drifted for result in results)
    if drifted:
        raise CheckFailed(f"{drifted} found elsewhere than planned")


def _as_json(result: Verification) -> dict[str, object]:
    return {**result.model_dump(mode="json"), "drifted": result.drifted}


def _print(console: Console, result: Verification) -> None:
    """A line for each process; a line for each thread that drifted."""
    table = Table(box=None, pad_edge=False, header_style="bold", title_justify="left")
    for title in ("PROCESS", "SLOT", "PID", "CPUS", "THREADS", "DRIFTED"):
        table.add_column(
            title, justify="left" if title in ("PROCESS", "CPUS") else "right", overflow="fold"
        )
    groups: dict[tuple[str, int], list[int]] = {}
    for index, check in enumerate(result.threads):
        groups.setdefault((check.process, check.pid), []).append(index)
    for (process, pid), indices in sorted(groups.items()):
        checks = [result.threads[index] for index in indices]
        slot = "-" if checks[0].slot is None else str(checks[0].slot)
        drifted = sum(check.drifted for check in checks)
        table.add_row(
            *(process, slot, str(pid), checks[0].expected_cpus, str(len(checks)), str(drifted))
        )
    console.print(f"{result.deployment}: {len(result.threads)} threads, {result.drifted} drifted")
    console.print(table)
    for line in drift_lines(result):
        console.print(line, markup=False, soft_wrap=True)


def drift_lines(result: Verification) -> list[str]:
    lines = [
        f"drift: {check.process} pid {check.pid} tid {check.tid} ({check.comm}): "
        f"expected CPUs {check.expected_cpus}, found {check.found_cpus}"
        for check in result.threads
        if check.drifted
    ]
    lines += [
        f"drift: {check.process} pid {check.pid}: "
        f"expected memory policy {check.expected}, found {check.found}"
        for check in result.memory
        if check.drifted
    ]
    return lines + [f"missing: {name} is gone" for name in result.missing]
