"""`atoll up`: start an engine as planned and watch it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click
from rich.console import Console

from atoll.cli.options import (
    base_option,
    count_option,
    listen_option,
    listen_places,
    machine_for,
    policy_option,
)
from atoll.cli.planning import planning_options, refuse_choices
from atoll.cli.terminal import print_warnings
from atoll.engines import registry
from atoll.engines.api import Engine
from atoll.engines.calls import located
from atoll.engines.userconfig.apply import with_user_tree
from atoll.engines.userconfig.changes import count_changes
from atoll.engines.userconfig.tree import UserTree
from atoll.host.api import Host
from atoll.host.local import LocalHost
from atoll.host.topology import read_machine
from atoll.plan import make_plan
from atoll.plan.capacity import check_room
from atoll.plan.request import Choices
from atoll.render.deployment import preview
from atoll.schema.machine import Machine
from atoll.schema.plan import Plan
from atoll.schema.text import plural
from atoll.store.plan_file import is_plan_file, read_plan
from atoll.supervise.interrupts import terminate_is_interrupt
from atoll.supervise.launch import Progress, Running, launch


@click.command(epilog="Example: atoll up spark --policy wicp -d, then atoll verify spark")
@click.argument("engine_or_plan", metavar="ENGINE|PLAN")
@policy_option
@count_option
@planning_options
@click.option("--name", help="Name of the deployment (default: the engine's).")
@listen_option
@base_option
@click.option(
    "-d", "--detach", is_flag=True, help="Return once it is ready; stop it with 'atoll down'."
)
def command(
    engine_or_plan: str,
    policy: str | None,
    choices: Choices,
    name: str | None,
    listen: str | None,
    base: str | None,
    detach: bool,
) -> None:
    """Start an ENGINE on this machine, or a PLAN that 'atoll plan' wrote.

    Reports ready once every worker has joined for good and a test query succeeded. Without -d,
    Ctrl-C stops the whole deployment.
    """
    host = LocalHost()
    with terminate_is_interrupt():
        plan, machine, engine, users = _planned(engine_or_plan, policy, choices, listen, base, host)
        print_warnings(plan)
        if users is not None:
            _print_changes(engine, plan, users, host)
        with _progress() as progress:
            running = launch(plan, engine, machine=machine, host=host, name=name, progress=progress)
        if detach:
            running.detach()
            print(f"{running.name}: ready; stop it with 'atoll down {running.name}'")
            return
        with running:
            _print_ready(running, plan)
            running.wait()
            print(f"{running.name}: was stopped by another command")


def _planned(
    engine_or_plan: str,
    policy: str | None,
    choices: Choices,
    listen: str | None,
    base: str | None,
    host: Host,
) -> tuple[Plan, Machine, Engine, UserTree | None]:
    """Read the user's configuration first: the plan allows for the memory that it adds to heaps."""
    if is_plan_file(engine_or_plan):
        refuse_choices(policy, choices, listen)
        plan = read_plan(engine_or_plan)
        engine, users = with_user_tree(registry.get(plan.engine), base, host)
        check_room(plan, engine.traits)
        # A plan file already contains the chiplets.
        return plan, read_machine(), engine, users
    engine, users = with_user_tree(registry.get(engine_or_plan), base, host)
    machine = machine_for()
    places = listen_places(listen, machine, here=True)
    plan = make_plan(machine, engine.traits, policy or "auto", listen=places, **choices)
    return plan, machine, engine, users


def _print_changes(engine: Engine, plan: Plan, tree: UserTree, host: Host) -> None:
    layout = preview(engine, plan, located(engine, host))
    settings, files = count_changes(tree, layout.files)
    print(
        f"atoll: {plural(settings, 'setting')} in {plural(files, 'file')} changed; "
        f"'atoll render {plan.engine} --base {shlex.quote(tree.root)} --diff' shows them",
        file=sys.stderr,
    )


def _print_ready(running: Running, plan: Plan) -> None:
    instances = plural(len(plan.slots), "worker instance")
    print(
        f"{running.name}: ready, {plan.engine} under {plan.policy.value} with {instances}; "
        "Ctrl-C stops it",
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
