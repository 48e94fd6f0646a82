"""`atoll up`: start an engine as planned and watch it."""

from __future__ import annotations

import os
from pathlib import Path

import click

from atoll.cli.options import (
    FiniteRange,
    base_option,
    count_option,
    listen_option,
    listen_places,
    machine_for,
    policy_option,
)
from atoll.cli.planning import planning_options, refuse_choices
from atoll.cli.terminal import has_colour, print_changes, print_warnings, progress
from atoll.engines import registry
from atoll.engines.api import Engine
from atoll.engines.calls import located, spanning
from atoll.engines.userconfig.apply import with_user_tree
from atoll.engines.userconfig.blame import naming_users_files
from atoll.engines.userconfig.tree import UserTree
from atoll.errors import UsageError
from atoll.host.api import Host
from atoll.host.local import LocalHost
from atoll.host.topology import read_machine
from atoll.inspect.nics import route_findings
from atoll.plan import make_plan
from atoll.plan.capacity import check_room
from atoll.plan.request import Choices
from atoll.render.deployment import summary_before_start
from atoll.report.terminal.deployment import access_lines, ready_lines, start_lines
from atoll.report.terminal.plan import plan_text
from atoll.schema.deployment import START_TIMEOUT_S, UpOptions
from atoll.schema.machine import Machine
from atoll.schema.plan import Plan
from atoll.schema.text import plural
from atoll.store.plan_file import is_plan_file, read_plan
from atoll.store.tokens import read_token
from atoll.supervise.interrupts import terminate_is_interrupt
from atoll.supervise.launch import Running, launch
from atoll.supervise.ports import LAST_PORT
from atoll.supervise.prepare import Prepared, prepare


@click.command(
    epilog="Examples: atoll up spark --policy wicp -d, then atoll verify spark; "
    "atoll up trino --port 8080 --reserve 16GiB"
)
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
@click.option(
    "--port",
    metavar="N",
    type=click.IntRange(1, LAST_PORT),
    help="Port for clients on this machine; if every instance is a server: N, N+1, ... (default: "
    "a free port, or sockets).",
)
@click.option(
    "--timeout",
    "timeout_s",
    metavar="SECONDS",
    type=FiniteRange(min=1),
    default=START_TIMEOUT_S,
    show_default=True,
    help="Seconds after which it must be ready.",
)
@click.option(
    "--secret",
    "secret_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="FILE has the secret that all hosts of a cluster share; only you may read it. For a PLAN "
    "that is a part of a cluster.",
)
@click.option(
    "--dry-run", is_flag=True, help="Show the plan, files and command lines, and start nothing."
)
def command(
    engine_or_plan: str,
    policy: str | None,
    choices: Choices,
    name: str | None,
    listen: str | None,
    base: str | None,
    detach: bool,
    port: int | None,
    timeout_s: float,
    secret_file: Path | None,
    dry_run: bool,
) -> None:
    """Start an ENGINE on this machine, or a PLAN that 'atoll plan' wrote.

    Reports ready once every worker has joined for good and a test query succeeded, and prints how
    to connect. Without -d, Ctrl-C stops the whole deployment.
    """
    host = LocalHost()
    options = UpOptions(base=base and os.path.abspath(base), port=port, timeout_s=timeout_s)
    with terminate_is_interrupt():
        plan, machine, engine, users = _planned(engine_or_plan, policy, choices, listen, base, host)
        if secret_file and not plan.cluster:
            raise UsageError("--secret is for a plan that is a part of a cluster; leave it out")
        if secret_file:
            engine = spanning(engine, read_token(secret_file))
        print_warnings(plan)
        for route in route_findings(host, plan):
            click.echo(
                f"atoll: warning: {route.found}, not as planned ({route.expected}); "
                f"{route.remedy} [{route.code}]",
                err=True,
            )
        if users is not None:
            found = located(engine, host)
            print_changes(summary_before_start(engine, [plan], found, users), plan.engine, base)
        if dry_run:
            _print_start(
                prepare(plan, engine, machine=machine, host=host, name=name, options=options), host
            )
            return
        with progress("starting") as tell, naming_users_files(users):
            running = launch(
                plan,
                engine,
                machine=machine,
                host=host,
                name=name,
                options=options,
                progress=tell,
            )
        if detach:
            running.detach()
            print("\n".join(ready_lines(running.name, running.access)))
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


def _print_ready(running: Running, plan: Plan) -> None:
    instances = plural(len(plan.slots), "worker instance")
    line = (
        f"{running.name}: ready, {plan.engine} under {plan.policy.value} with {instances}; "
        "Ctrl-C stops it"
    )
    print("\n".join((line, *access_lines(running.name, running.access))), flush=True)


def _print_start(prepared: Prepared, host: Host) -> None:
    prepared.refuse_taken_ports(host)
    print(plan_text(prepared.plan, explain=False, colour=has_colour()), end="")
    print("\n".join(start_lines(prepared.request("ID"))))
