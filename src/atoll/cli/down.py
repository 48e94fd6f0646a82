"""`atoll down`: stop a deployment."""

from __future__ import annotations

import sys

import click
from rich.console import Console

from atoll.errors import AtollError, UsageError
from atoll.host.local import LocalHost
from atoll.supervise import records
from atoll.supervise.stop import down


@click.command(epilog="Example: atoll down spark")
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="Stop all deployments of this user.")
def command(name: str | None, everything: bool) -> None:
    """Stop all processes of the deployment NAME, and return when they have ended.

    You may leave out NAME if only one deployment is up. Logs are kept.
    """
    faults: list[AtollError] = []
    for each in _chosen(name, everything):
        try:
            with Console(file=sys.stderr).status(f"stopping {each}"):
                down(each, LocalHost())
        except AtollError as fault:
            faults.append(fault)  # and stop the others
        else:
            print(f"{each}: down")
    if faults:
        raise type(faults[0])("; ".join(map(str, faults)))


def _chosen(name: str | None, everything: bool) -> list[str]:
    known = records.names()
    if everything:
        if name is not None:
            raise UsageError("give either a NAME or --all, not both")
        if not known:
            print("nothing is up")
        return known
    if name is not None:
        return [name]
    if len(known) != 1:
        raise UsageError(
            f"name the deployment to stop ({', '.join(known)}), or use --all"
            if known
            else "nothing is up"
        )
    return known
