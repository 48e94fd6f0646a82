"""`atoll up`: start an engine as planned, and watch it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console

from atoll.cli.machine import machine_for
from atoll.engines import registry
from atoll.errors import UsageError
from atoll.host.local import LocalHost
from atoll.host.topology import read_machine
from atoll.plan import make_plan
from atoll.schema.base import parse
from atoll.schema.machine import Machine
from atoll.schema.plan import Plan, Policy
from atoll.supervise.interrupts import terminate_is_interrupt
from atoll.supervise.launch import Progress, Running, launch

POLICIES = ("auto", *(policy.value for policy in Policy))


@click.command(epilog="Example: atoll up spark --policy wicp -d, then atoll verify spark")
@click.argument("engine_or_plan", metavar="ENGINE|PLAN")
@click.option(
    "--policy",
    type=click.Choice(POLICIES),
    help="Plan with this policy (default: auto); only with an ENGINE.",
)
@click.option("-n", "count", type=click.IntRange(min=1), help="Number of worker instances.")
@click.option("--name", help="Name of the deployment (default: the engine's).")
@click.option("-d", "--detach", is_flag=True, help="Return once it is ready; 'atoll down' ends it.")
def command(
    engine_or_plan: str, policy: str | None, count: int | None, name: str | None, detach: bool
) -> None:
    """Start an ENGINE, or a PLAN that 'atoll plan' wrote, on this machine.

    Ready means that the engine answered a query with all worker instances in. Without -d it
    stays in the foreground and Ctrl-C ends all of it.
    """
    host = LocalHost()
    with terminate_is_interrupt():
        # A plan says itself where the chiplets are.
        machine = read_machine() if _is_file(engine_or_plan) else machine_for()
        plan = _plan(engine_or_plan, policy, count, machine)
        engine = registry.get(plan.engine)
        with _progress() as progress:
            running = launch(plan, engine, machine=machine, host=host, name=name, progress=progress)
        if detach:
            running.detach()
            print(f"{running.name}: ready; 'atoll down {running.name}' ends it")
            return
        with running:
            _say_ready(running, plan)
            running.wait()
            print(f"{running.name}: ended from outside")


def _is_file(engine_or_plan: str) -> bool:
    """A path ends in .json or holds a slash; everything else is an engine's name."""
    return engine_or_plan.endswith(".json") or os.sep in engine_or_plan


def _plan(engine_or_plan: str, policy: str | None, count: int | None, machine: Machine) -> Plan:
    if _is_file(engine_or_plan):
        if policy is not None or count is not None:
            raise UsageError("a plan file says its policy itself; leave out --policy and -n")
        try:
            text = Path(engine_or_plan).read_bytes()
        except OSError as fault:
            raise UsageError(f"{engine_or_plan}: cannot be read ({fault.strerror})") from None
        return parse(Plan, text, where=engine_or_plan)
    traits = registry.get(engine_or_plan).traits
    return make_plan(machine, traits, policy or "auto", count=count)


def _say_ready(running: Running, plan: Plan) -> None:
    instances = len(plan.slots)
    print(
        f"{running.name}: ready, {plan.engine} under {plan.policy.value} with {instances} worker "
        f"instance{'s' if instances > 1 else ''}; Ctrl-C ends it",
        flush=True,
    )


@contextmanager
def _progress() -> Iterator[Progress]:
    """One changing line on a terminal, one line each in a file."""
    console = Console(file=sys.stderr, highlight=False)
    if not console.is_terminal:
        yield lambda line: print(line, file=sys.stderr, flush=True)
        return
    with console.status("starting") as status:
        yield lambda line: status.update(line)
