"""`atoll ps`: list the deployments that are up or have failed."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

import click

from atoll.supervise import records

if TYPE_CHECKING:
    from atoll.schema.deployment import Deployment


@click.command(epilog="Example: atoll ps --json | jq '.[].state'")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of the table.")
def command(as_json: bool) -> None:
    """List the deployments that are up and those that have failed. 'atoll status' shows one.

    First it ends the processes that a killed supervisor left behind.
    """
    deployments = _deployments() if records.names() else []
    if as_json:
        print(json.dumps(_documents(deployments), indent=1))
    elif not deployments:
        print("nothing is up")
    else:
        _print_table(deployments)


def _deployments() -> list[Deployment]:
    from atoll.host.local import LocalHost
    from atoll.supervise.stop import listing

    deployments, notices = listing(LocalHost())
    for notice in notices:
        print(f"atoll: {notice}", file=sys.stderr)
    return deployments


def _documents(deployments: list[Deployment]) -> list[dict[str, object]]:
    if not deployments:
        return []  # without the imports that take longer than all else
    from atoll.supervise.status import summary

    return [summary(deployment) for deployment in deployments]


def _print_table(deployments: list[Deployment]) -> None:
    from rich.console import Console
    from rich.table import Table

    from atoll.report.terminal.deployment import endpoint

    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("NAME", "ENGINE", "POLICY"):
        table.add_column(title, overflow="fold")
    table.add_column("SLOTS", justify="right")
    for title in ("STATE", "UP SINCE"):
        table.add_column(title, no_wrap=True)
    table.add_column("ENDPOINT", overflow="fold")
    for deployment in deployments:
        since = time.strftime("%m-%d %H:%M:%S", time.localtime(deployment.created_unix_s))
        table.add_row(
            *(deployment.name, deployment.plan.engine, deployment.plan.policy.value),
            *(str(len(deployment.plan.slots)), deployment.state.value, since),
            endpoint(deployment),
        )
    console = Console(highlight=False)
    console.print(table)
    for deployment in deployments:
        if deployment.error:
            console.print(f"{deployment.name}: {deployment.error}", markup=False, soft_wrap=True)
