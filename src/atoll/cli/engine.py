"""`atoll engine`: which engines are there; fetch one, remove one."""

from __future__ import annotations

import dataclasses
import json

import click
from rich.console import Console

from atoll.cli.terminal import show
from atoll.engines import registry
from atoll.engines.availability import EngineState, catalog, look, wanted_parts
from atoll.errors import EngineFailed
from atoll.host.api import Host
from atoll.host.local import LocalHost
from atoll.install import installing
from atoll.install.catalog import parts_of
from atoll.install.client import runner
from atoll.report.terminal.install import announcement, engine_table, install_progress
from atoll.schema.deployment import State
from atoll.schema.text import one_line
from atoll.supervise.interrupts import terminate_is_interrupt
from atoll.supervise.stop import listing


@click.group(epilog="Example: atoll engine list, then atoll engine install trino")
def command() -> None:
    """List the engines, fetch what one needs, remove it again."""


@command.command("list", epilog="Example: atoll engine list --json | jq '.[].state'")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of the table.")
def list_engines(as_json: bool) -> None:
    """List the engines: which can be started, where they lie, how much of the cache they take.

    'ready' can be started. 'installed' is there and cannot be started, 'damaged' because a part of
    it is not as it was fetched, 'not permitted' not by this user; why, and what a 'missing' one
    needs, is said below the table. Engines that other packages bring are listed, too.
    """
    host = LocalHost()
    states = [look(name, host) for name in registry.names()]
    if as_json:
        print(json.dumps([_as_json(state) for state in states], indent=1))
        return
    show(engine_table(states))
    for state in states:
        if state.why:
            print(f"{state.name}: {one_line(state.why)}")
    for line in registry.passed_over():
        print(one_line(line))


def _as_json(state: EngineState) -> dict[str, object]:
    return {**dataclasses.asdict(state), "size_bytes": state.size_bytes}


@command.command(epilog="Example: atoll engine install trino postgresql")
@click.argument("engines", nargs=-1, required=True, metavar="ENGINE...")
def install(engines: tuple[str, ...]) -> None:
    """Fetch what these engines need and is not there or damaged, into Atoll's cache.

    Files come by the machine's own clients (mvn, pip, apt) with their mirrors and proxies, and are
    compared with pinned checksums before they are unpacked (Debian's packages with apt's signed
    index). An engine, or a Java, that the machine has itself is used, not fetched. Nothing is
    installed into the system or into a Python environment.
    """
    host = LocalHost()
    parts_of(engines, catalog())  # an unknown name is told before anything is fetched
    with terminate_is_interrupt(), install_progress() as tell:
        found = [look(name, host, checking=tell) for name in dict.fromkeys(engines)]
    wanted = (part for state in found for part in wanted_parts(state, host))
    parts = list({part.name: part for part in wanted}.values())
    for line in announcement(parts):
        print(line, flush=True)
    if parts:
        with terminate_is_interrupt(), install_progress() as tell:
            installing.install(parts, tell=tell, run=runner(host))
    _report([look(name, host) for name in dict.fromkeys(engines)])


def _report(states: list[EngineState]) -> None:
    for state in states:
        if state.state == "not permitted":
            print(f"{state.name} is there, but not for this user: {one_line(state.why)}")
            continue
        where = f": {state.version} in {state.home}" if state.home else ""
        print(f"{state.name} is {state.state}{where}")
    lacking = [state for state in states if state.state in ("installed", "damaged", "missing")]
    for state in lacking[1:]:
        print(f"{state.name}: {one_line(state.why)}")
    if lacking:
        raise EngineFailed(f"{lacking[0].name}: {lacking[0].why}")


@command.command(epilog="Example: atoll engine remove trino")
@click.argument("engines", nargs=-1, required=True, metavar="ENGINE...")
def remove(engines: tuple[str, ...]) -> None:
    """Remove from Atoll's cache what 'atoll engine install' fetched for these engines, also by
    another version of Atoll, and the tables that were loaded into them.

    What another installed engine needs stays, and so does an engine that a deployment uses.
    """
    with terminate_is_interrupt(), install_progress() as tell:
        gone = installing.remove(engines, catalog(), in_use=_in_use(LocalHost()), tell=tell)
    Console(highlight=False).print(
        f"removed: {', '.join(gone)}" if gone else "nothing of it was in the cache", markup=False
    )


def _in_use(host: Host) -> dict[str, str]:
    up, _ = listing(host)
    return {
        deployment.plan.engine: deployment.name
        for deployment in up
        if deployment.state in (State.STARTING, State.READY, State.STOPPING)
    }
