"""`atoll engine`: list, install and remove engines."""

from __future__ import annotations

import dataclasses
import json

import click
from rich.console import Console

from atoll.cli.terminal import show
from atoll.engines import registry
from atoll.engines.availability import EngineState, catalog, look, names, wanted_parts
from atoll.errors import EngineFailed
from atoll.host.api import Host
from atoll.host.local import LocalHost
from atoll.install import installing
from atoll.install.catalog import parts_of
from atoll.install.client import runner
from atoll.report.terminal.install import (
    announcement,
    engine_table,
    install_progress,
    where_line,
)
from atoll.schema.deployment import State
from atoll.schema.text import one_line
from atoll.supervise.interrupts import terminate_is_interrupt
from atoll.supervise.stop import listing


@click.group(epilog="Example: atoll engine list, then atoll engine install trino")
def command() -> None:
    """List the engines, install what they need, and remove it again."""


@command.command("list", epilog="Example: atoll engine list --json | jq '.[].state'")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of the table.")
def list_engines(as_json: bool) -> None:
    """List the engines with their state, Java, size and folder.

    'ready': can be started. 'installed': present but unusable. 'damaged': an installed file has
    changed. 'not permitted': this user may not run it. 'missing': not installed. The lines below
    the table give the reasons. The list includes engines from other packages.
    """
    host = LocalHost()
    states = [look(name, host) for name in names()]
    if as_json:
        print(json.dumps([_as_json(state) for state in states], indent=1))
        return
    show(engine_table(states))
    for state in states:
        print(where_line(state))
    for line in registry.passed_over():
        print(one_line(line))


def _as_json(state: EngineState) -> dict[str, object]:
    return {**dataclasses.asdict(state), "size_bytes": state.size_bytes}


@command.command(
    short_help="Install what these engines need.",
    epilog="Example: atoll engine install trino postgresql",
)
@click.argument("engines", nargs=-1, required=True, metavar="ENGINE...")
def install(engines: tuple[str, ...]) -> None:
    """Install the missing or damaged parts of these engines into Atoll's cache.

    The machine's own clients (mvn, pip, apt) fetch the files, with their mirrors and proxies.
    Atoll checks the files against pinned checksums (Debian packages against apt's signed index)
    before it unpacks them. If the machine already has an engine or a Java, Atoll uses that one.
    Nothing is installed into the system or into a Python environment.
    """
    host = LocalHost()
    parts_of(engines, catalog())  # reports an unknown name before anything is fetched
    with terminate_is_interrupt(), install_progress() as progress:
        found = [look(name, host, checking=progress) for name in dict.fromkeys(engines)]
    wanted = (part for state in found for part in wanted_parts(state, host))
    parts = list({part.name: part for part in wanted}.values())
    for line in announcement(parts):
        print(line, flush=True)
    if parts:
        with terminate_is_interrupt(), install_progress() as progress:
            installing.install(parts, tell=progress, run=runner(host))
    _report([look(name, host) for name in dict.fromkeys(engines)])


def _report(states: list[EngineState]) -> None:
    for state in states:
        if state.state == "not permitted":
            print(f"{state.name}: this user may not run it: {one_line(state.why)}")
            continue
        where = f": {state.version} in {state.home}" if state.home else ""
        print(f"{state.name} is {state.state}{where}")
    lacking = [state for state in states if state.state in ("installed", "damaged", "missing")]
    for state in lacking[1:]:
        print(f"{state.name}: {one_line(state.why)}")
    if lacking:
        raise EngineFailed(f"{lacking[0].name}: {lacking[0].why}")


@command.command(
    short_help="Remove what was installed for these engines.",
    epilog="Example: atoll engine remove trino",
)
@click.argument("engines", nargs=-1, required=True, metavar="ENGINE...")
def remove(engines: tuple[str, ...]) -> None:
    """Remove everything from Atoll's cache that was installed for these engines or loaded into
    them.

    This includes files that another version of Atoll installed. Parts that another installed engine
    needs stay, and so do engines that a deployment uses.
    """
    with terminate_is_interrupt(), install_progress() as progress:
        gone = installing.remove(engines, catalog(), in_use=_in_use(LocalHost()), tell=progress)
    Console(highlight=False).print(
        f"removed: {', '.join(gone)}" if gone else "nothing to remove: the cache has no part of it",
        markup=False,
    )


def _in_use(host: Host) -> dict[str, str]:
    up, _ = listing(host)
    return {
        deployment.plan.engine: deployment.name
        for deployment in up
        if deployment.state in (State.STARTING, State.READY, State.STOPPING)
    }
