"""`atoll inspect`: show where the threads and the memory of a process are."""

from __future__ import annotations

import sys

import click

from atoll.cli.options import FiniteRange
from atoll.errors import AtollError, CheckFailed, NotPermitted, ProcessGone
from atoll.host.local import LocalHost
from atoll.inspect.clues import read_numa_system
from atoll.inspect.inspection import inspect_process
from atoll.inspect.malloc import MallocFiles
from atoll.inspect.resctrl import L3Monitor
from atoll.inspect.spread import SpreadReader
from atoll.inspect.targets import find_processes, refuse_foreign
from atoll.schema.inspection import Inspection


@click.command(epilog="Examples: atoll inspect 1234; atoll inspect postgres --json")
@click.argument("target")
@click.option("--json", "as_json", is_flag=True, help="Print a list of atoll/inspection documents.")
@click.option(
    "--interval",
    metavar="SECONDS",
    type=FiniteRange(0.01, 60),
    default=1.0,
    show_default=True,
    help="Seconds to measure memory bandwidth (if resctrl is mounted).",
)
def command(target: str, as_json: bool, interval: float) -> None:
    """Show where the threads and the memory of TARGET are.

    TARGET is a pid, the name of a deployment that is up, or the name of running programs. Atoll
    compares each process of a deployment with its slot, and any other process with its own
    settings: its main thread's CPUs, its memory policy, its preloads, its JVM flags. It only
    reads. The exit code is 1 if something is not where it should be.
    """
    found, missing = _inspect(target, interval)
    if as_json:
        print("[" + ",\n".join(one.model_dump_json(indent=1) for one in found) + "]")
    else:
        from rich.console import Console

        from atoll.report.terminal.inspection import inspection_text

        console = Console(highlight=False)
        for number, one in enumerate(found):
            if number:
                console.print()
            console.print(inspection_text(one))
    drifted = sum(one.drifted for one in found) + missing
    if drifted:
        raise CheckFailed(f"threads or mappings not where they should be: {drifted}")


def _inspect(target: str, interval_s: float) -> tuple[list[Inspection], int]:
    """The inspections, and the number of missing processes and of ports at another address than
    planned, which are drift."""
    host = LocalHost()
    if not target.isdecimal():
        from atoll.inspect.verify import brief, verify
        from atoll.supervise.stop import living

        deployment = living(target, host)
        if deployment is not None:
            verified = verify(host, deployment, deep=True, interval_s=interval_s)
            others = [*verified.missing, *verified.elsewhere]
            for finding in others:
                print(f"atoll: {brief(finding)}", file=sys.stderr)
            return list(verified.processes), len(others)
    machine, files = read_numa_system(host), MallocFiles(host)
    l3, spreads = L3Monitor(host, interval_s), SpreadReader()
    found: list[Inspection] = []
    faults: list[AtollError] = []
    for pid in find_processes(host, target, uid=host.user_id()):
        try:
            refuse_foreign(host, pid, uid=host.user_id())
            found.append(inspect_process(host, pid, machine, l3=l3, files=files, spreads=spreads))
        except (ProcessGone, NotPermitted) as fault:
            faults.append(fault)
    if not found:
        raise faults[0]
    for left_out in faults:
        print(f"atoll: {left_out}", file=sys.stderr)
    return found, 0
