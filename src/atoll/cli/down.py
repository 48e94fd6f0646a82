"""`atoll down`: end a deployment."""

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
@click.option("--all", "everything", is_flag=True, help="End every deployment of this user.")
def command(name: str | None, everything: bool) -> None:
    """End the deployment NAME, all of it and nothing else; return when it is gone.

    NAME may be left out when only one is up. Logs are kept.
    """
    faults: list[AtollError] = []
    for each in _chosen(name, everything):
        try:
            with Console(file=sys.stderr).status(f"ending {each}"):
                down(each, LocalHost())
        except AtollError as fault:
            faults.append(fault)  # the others are ended all the same
        else:
            print(f"{each}: down")
    if faults:
        raise type(faults[0])("; ".join(map(str, faults)))


def _chosen(name: str | None, everything: bool) -> list[str]:
    known = records.names()
    if everything:
        if name is not None:
            raise UsageError("say either a NAME or --all")
        if not known:
            print("nothing is up")
        return known
    if name is not None:
        return [name]
    if len(known) != 1:
        raise UsageError(
            f"say which to end ({', '.join(known)}), or --all" if known else "nothing is up"
        )
    return known
