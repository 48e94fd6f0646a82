"""`atoll advise`: what to set for a program on this machine, and why."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from atoll.advice.advise import advise, rule_named
from atoll.advice.neighbours import neighbours
from atoll.advice.reading import (
    loadable,
    read_command,
    read_engine,
    read_limits,
    read_process,
    read_situation,
    release,
)
from atoll.advice.situation import Subject
from atoll.cli.options import machine_for
from atoll.cli.terminal import has_colour, width
from atoll.errors import AtollError, UsageError
from atoll.host.api import Host
from atoll.host.local import LocalHost
from atoll.report.terminal.advice import advice_text, rule_text
from atoll.schema.advice import Advice, Workload
from atoll.schema.machine import Machine

if TYPE_CHECKING:
    from atoll.schema.profile import Profile


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog="Examples: atoll advise; atoll advise --workload allocation -- ./prog --size 3; "
    "atoll advise --engine spark; atoll advise --explain memory",
)
@click.option("--engine", metavar="ENGINE", help="An engine, as 'atoll up' starts it.")
@click.option("--pid", type=click.IntRange(min=1), metavar="PID", help="A running process.")
@click.option(
    "--workload",
    type=click.Choice([one.value for one in Workload]),
    default=Workload.UNKNOWN.value,
    show_default=True,
    help="What limits the program.",
)
@click.option("--explain", metavar="RULE", help="Show one rule (or the one of a TUNER) in detail.")
@click.option("--json", "as_json", is_flag=True, help="Print an atoll/advice document.")
@click.argument("command", nargs=-1, metavar="[-- CMD...]", type=click.UNPROCESSED)
def command(
    engine: str | None,
    pid: int | None,
    workload: str,
    explain: str | None,
    as_json: bool,
    command: tuple[str, ...],
) -> None:
    """Show what to set for a program on this machine: threads, memory, malloc, huge pages.

    The program is CMD (which is not started), a running process, an engine, or any. Atoll changes
    nothing. Each row is decided by one rule with its evidence; 'leave it' is advice too. Settings
    of one program come before those of the system.
    """
    if sum((engine is not None, pid is not None, bool(command))) > 1:
        raise UsageError("give one of --engine, --pid and a command, or none of them")
    advice = advice_here(engine=engine, pid=pid, command=command, workload=Workload(workload))
    if explain is not None:
        print(_explained(advice, explain), end="")
    elif as_json:
        print(advice.model_dump_json(indent=1))
    else:
        print(advice_text(advice, width=min(width(), 100), colour=has_colour()), end="")


def advice_here(
    *,
    engine: str | None = None,
    pid: int | None = None,
    command: tuple[str, ...] = (),
    workload: Workload = Workload.UNKNOWN,
) -> Advice:
    """The advice for one program on this machine."""
    host = LocalHost()
    machine = machine_for()
    mallocs = loadable(host)
    subject = subject_of(host, machine, mallocs, engine=engine, pid=pid, command=command)
    limits = read_limits(host, machine)
    situation = read_situation(
        host,
        machine,
        subject,
        workload,
        mallocs=mallocs,
        limits=limits,
        profile=_profile(machine) if workload is Workload.ALLOCATION else None,
    )
    return advise(
        situation,
        kernel=release(host),
        mallocs=mallocs,
        neighbours=neighbours(host, pid),
        limits=limits.lines,
    )


def subject_of(
    host: Host,
    machine: Machine,
    mallocs: dict[str, str],
    *,
    engine: str | None,
    pid: int | None,
    command: tuple[str, ...],
) -> Subject:
    """The process, the engine or the command; without words any command."""
    if pid is not None:
        return read_process(host, pid)
    if engine is None:
        return read_command(host, command, mallocs)
    from atoll.engines import registry
    from atoll.engines.calls import malloc_files
    from atoll.plan import make_plan

    adapter = registry.get(engine)
    plan = make_plan(machine, adapter.traits, "auto")
    files = malloc_files(adapter, host)
    return read_engine(host, plan, adapter.traits, files, mallocs, machine)


def _profile(machine: Machine) -> Profile | None:
    from atoll.probing.profiles import find

    try:
        return find(machine)
    except AtollError as fault:
        print(f"atoll: a saved profile is not used: {fault}", file=sys.stderr)
        return None


def _explained(advice: Advice, name: str) -> str:
    tuners = {line.tuner: line for line in advice.lines}
    tuner, rule = rule_named(tuners[name].rule if name in tuners else name)
    line = tuners[tuner.name]
    decides = line if line.rule == rule.name else None
    return rule_text(tuner, rule, decides, width=min(width(), 100))
