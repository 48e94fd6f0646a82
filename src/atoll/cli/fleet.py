"""`atoll fleet`: the same commands on several machines, over ssh."""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from atoll.cli.terminal import progress, show
from atoll.errors import CheckFailed, UsageError
from atoll.schema.text import plural
from atoll.store.files import write_atomic
from atoll.store.paths import make_folder, new_results
from atoll.supervise.interrupts import terminate_is_interrupt
from atoll.supervise.ports import LAST_PORT

if TYPE_CHECKING:
    from atoll.schema.fleet_answers import HostAnswer
    from atoll.schema.plan import Plan

_PORT = 7077
_PASSES_ON = {"ignore_unknown_options": True}


def _no_option(context: click.Context, parameter: click.Parameter, value: str) -> str:
    if value.startswith("-"):
        raise UsageError(
            f"options for the hosts come last; {value!r} stands where "
            f"{parameter.make_metavar(context)} belongs"
        )
    return value


_inventory = click.argument("inventory", metavar="INVENTORY", callback=_no_option)
_engine = click.argument("engine", callback=_no_option)
_name = click.argument("name", required=False)
_rest = click.argument("options", metavar="[OPTIONS]...", nargs=-1, type=click.UNPROCESSED)
_json = click.option("--json", "as_json", is_flag=True, help="Print the answers as JSON.")
_folder = click.option(
    "-o",
    "--output",
    "folder",
    metavar="FOLDER",
    type=click.Path(file_okay=False),
    help="Also write what the hosts sent to FOLDER/HOST/, and the answers to FOLDER.",
)


@click.group(
    epilog="Example: atoll fleet discover hosts.json, then atoll fleet plan hosts.json spark -o "
    "fleet, atoll fleet up hosts.json fleet/, atoll fleet verify, atoll fleet down"
)
def command() -> None:
    """Run Atoll on several machines, over ssh.

    INVENTORY is a JSON file with the hosts (docs/fleet.md). Each needs the same version of Atoll,
    which runs there only as long as a command does. Unknown options go to the command on the
    hosts. The exit code is 1 if a host failed or drifted.
    """


@command.command(epilog="Example: atoll fleet discover hosts.json -o fleet")
@_inventory
@_folder
@_json
def discover(inventory: str, folder: str | None, as_json: bool) -> None:
    """Show the topology and the clock of every host."""
    _need_library()
    from atoll.fleet import looking

    _look("discover", inventory, looking.discover(_path(folder)), folder, as_json)


@command.command(
    context_settings=_PASSES_ON, epilog="Example: atoll fleet measure hosts.json --full -o fleet"
)
@_inventory
@_rest
@_folder
@_json
def measure(inventory: str, options: tuple[str, ...], folder: str | None, as_json: bool) -> None:
    """Measure every host.

    Runs 'atoll measure OPTIONS' there. Each host keeps its profile, for its plans.
    """
    _need_library()
    from atoll.fleet import looking

    _look("measure", inventory, looking.measure(options, _path(folder)), folder, as_json)


@command.command(
    context_settings=_PASSES_ON,
    epilog="Example: atoll fleet plan hosts.json spark --policy wicp -o fleet",
)
@_inventory
@_engine
@_rest
@click.option(
    "--cluster",
    is_flag=True,
    help="Plan one engine with instances on all hosts. Its coordinator is on the first host of "
    "INVENTORY. Needs -o.",
)
@click.option(
    "--port",
    metavar="N",
    type=click.IntRange(1, LAST_PORT),
    help="With --cluster: the port of the coordinator, which the other hosts' instances join "
    f"(default: {_PORT}).",
)
@_folder
@_json
def plan(
    inventory: str,
    engine: str,
    options: tuple[str, ...],
    cluster: bool,
    port: int | None,
    folder: str | None,
    as_json: bool,
) -> None:
    """Plan ENGINE on every host.

    Runs 'atoll plan ENGINE OPTIONS' there, so each is planned by its own topology.
    """
    _need_library()
    from atoll.fleet import looking

    if not cluster:
        if port:
            raise UsageError("--port is the coordinator's port of a --cluster; leave it out")
        _look("plan", inventory, looking.plan(engine, options, _path(folder)), folder, as_json)
        return
    from atoll.engines import registry
    from atoll.engines.calls import spanning
    from atoll.fleet.inventory import read_inventory
    from atoll.plan.cluster import over_machines
    from atoll.store.document import write_document

    if folder is None:
        raise UsageError("--cluster needs -o FOLDER: 'atoll fleet up' starts the plans in it")
    spanning(registry.get(engine), "")  # raises UsageError if it cannot
    parts: dict[str, Plan] = {}
    work = looking.plan_cluster(engine, options, parts)
    _look("plan", inventory, work, folder, as_json)
    ordered = {host.name: parts[host.name] for host in read_inventory(inventory)}
    for name, part in over_machines(ordered, port or _PORT).items():
        write_document(make_folder(Path(folder) / name) / "plan.json", part)


@command.command(
    context_settings=_PASSES_ON,
    epilog="Examples: atoll fleet up hosts.json spark --policy win; atoll fleet up hosts.json "
    "fleet/ --name nightly",
)
@_inventory
@click.argument("what", metavar="ENGINE|FOLDER/", callback=_no_option)
@_rest
@click.option("--name", help="Name of the fleet (default: the engine's).")
@_json
def up(
    inventory: str, what: str, options: tuple[str, ...], name: str | None, as_json: bool
) -> None:
    """Start an engine on every host.

    Runs 'atoll up OPTIONS' there, of ENGINE or of the plan FOLDER/HOST/plan.json (FOLDER contains a
    slash). The fleet is up on all hosts or on none. It stays up until 'atoll fleet down'.
    """
    _need_library()
    from atoll.fleet import deploy
    from atoll.fleet.inventory import read_inventory
    from atoll.store.plan_file import read_plan

    if "--dry-run" in options:
        raise UsageError("fleet up starts for good; to see the plans: atoll fleet plan")
    hosts = read_inventory(inventory)
    chosen: Any = what
    if os.sep in what:
        chosen = {host.name: read_plan(f"{what}/{host.name}/plan.json") for host in hosts}
        name = name or next(iter(chosen.values())).engine
    name = name or what
    with terminate_is_interrupt(), progress("starting") as tell:
        answers = deploy.up(name, hosts, chosen, options, tell)
    _answer("up", answers, None, as_json, fleet=name)


@command.command(epilog="Example: atoll fleet status spark")
@_name
@_json
def status(name: str | None, as_json: bool) -> None:
    """Show the state of the fleet NAME on every host."""
    _visit("status", name, as_json)


@command.command(epilog="Example: atoll fleet verify spark --json")
@_name
@_json
def verify(name: str | None, as_json: bool) -> None:
    """Check the fleet NAME on every host.

    Runs 'atoll verify' there. The exit code is 1 if a host drifted or does not answer.
    """
    _visit("verify", name, as_json)


@command.command(epilog="Example: atoll fleet down spark")
@_name
@click.option(
    "--forget", is_flag=True, help="Forget hosts that do not answer, whatever runs there."
)
@_json
def down(name: str | None, forget: bool, as_json: bool) -> None:
    """Stop the fleet NAME on every host.

    Hosts where it could not be stopped stay listed: run it again when they are back.
    """
    from atoll.fleet import state

    fleet = state.find(name)
    _need_library()
    from atoll.fleet import deploy  # not above: it loads asyncssh

    with terminate_is_interrupt(), progress("stopping") as tell:
        answers = deploy.down(fleet, tell, forget=forget)
    _answer("down", answers, None, as_json, fleet=fleet.name)


@command.command(
    context_settings=_PASSES_ON,
    epilog="Example: atoll fleet bench hosts.json spark --queries 1,6,18 --blocks 5 -o fleet",
)
@_inventory
@_engine
@_rest
@click.option(
    "-o",
    "--output",
    "folder",
    metavar="FOLDER",
    type=click.Path(file_okay=False),
    help="Where FOLDER/HOST/results.jsonl go (default: a new one in Atoll's state folder).",
)
@_json
def bench(
    inventory: str, engine: str, options: tuple[str, ...], folder: str | None, as_json: bool
) -> None:
    """Compare policies on every host.

    Runs 'atoll bench ENGINE OPTIONS' on up to 64 at the same time.
    """
    _need_library()
    from atoll.fleet import looking

    made = folder or str(new_results("fleet", ""))
    run = f"fleet-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
    work = looking.bench(engine, options, run, Path(made))
    _look("bench", inventory, work, made, as_json)


@command.command(hidden=True)
def remote() -> None:
    """The end on a host of what the other commands do; ssh starts it."""
    from atoll.fleet.remote import Controller, serve
    from atoll.host import processes

    if sys.stdin.isatty():
        raise UsageError("'atoll fleet remote' is for other machines' Atoll, not for people")
    serve(Controller(0, 1), processes.run)


def _need_library() -> None:
    try:
        import asyncssh  # noqa: F401 - whether it is there
    except ImportError:
        raise UsageError("fleet needs asyncssh here; run: pip install 'atoll[fleet]'") from None


def _visit(what: str, name: str | None, as_json: bool) -> None:
    from atoll.fleet import state

    fleet = state.find(name)
    _need_library()
    from atoll.fleet import asking, looking  # not above: they load asyncssh

    work = {"status": looking.status, "verify": looking.verify}[what](fleet.deployment)
    with terminate_is_interrupt(), progress(what) as tell:
        answers = asking.ask_all(fleet.hosts, what, work, tell)
    _answer(what, answers, None, as_json, fleet=fleet.name)


def _look(what: str, inventory: str, work: Any, folder: str | None, as_json: bool) -> None:
    from atoll.fleet.asking import ask_all
    from atoll.fleet.inventory import read_inventory

    hosts = read_inventory(inventory)
    if folder:
        make_folder(Path(folder))
    with terminate_is_interrupt(), progress(what) as tell:
        answers = ask_all(hosts, what, work, tell)
    _answer(what, answers, folder, as_json)


def _answer(
    what: str,
    answers: Sequence[HostAnswer],
    folder: str | None,
    as_json: bool,
    *,
    fleet: str | None = None,
) -> None:
    from atoll.report.terminal.fleet import fault_lines, fleet_table
    from atoll.schema.fleet_answers import FleetAnswers

    document = FleetAnswers(
        command=what, fleet=fleet, asked_unix_s=time.time(), hosts=tuple(answers)
    )
    text = document.model_dump_json(indent=1)
    if as_json:
        print(text)
    else:
        show(fleet_table(answers))
    for line in fault_lines(answers):
        print(f"atoll: {line}", file=sys.stderr)
    if folder:
        write_atomic(Path(folder) / f"{what}.json", text + "\n")
        print(f"atoll: results: {folder}", file=sys.stderr)
    failed = sum(answer.exit_code != 0 for answer in answers)
    if failed:
        raise CheckFailed(f"{plural(failed, 'host')} of {len(answers)} failed")


def _path(folder: str | None) -> Path | None:
    return Path(folder) if folder else None
