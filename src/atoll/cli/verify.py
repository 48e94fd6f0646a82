"""`atoll verify`: check that every thread and page is where the plan put it."""

from __future__ import annotations

import json

import click

from atoll.errors import CheckFailed, UsageError
from atoll.host.local import LocalHost
from atoll.inspect.verify import Verification, document, verify
from atoll.schema.deployment import State
from atoll.supervise.stop import listing, no_deployment


@click.command(epilog="Examples: atoll verify spark --json; atoll verify --rendered /srv/trino")
@click.argument("name", required=False)
@click.option(
    "--rendered",
    metavar="DIR",
    help="Check what runs from this folder of 'atoll render' against the plan in it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print every thread and finding as JSON.")
def command(name: str | None, rendered: str | None, as_json: bool) -> None:
    """Check every process of the deployment NAME, or of all deployments, against its slot.

    The check includes child processes: each thread's CPUs, the memory policy, the location of
    the pages, the malloc in use, the flags that a JVM applied. Atoll reports each drift with its
    likely cause and a remedy. The exit code is 1 if there is drift; notes are not drift.
    """
    results = _verified(LocalHost(), name, rendered)
    if as_json:
        print(json.dumps([document(result) for result in results], indent=1))
    else:
        from rich.console import Console

        from atoll.report.terminal.inspection import verification_text

        console = Console(highlight=False)
        for result in results:
            console.print(verification_text(result))
    drifted = sum(result.drifted for result in results)
    if drifted:
        raise CheckFailed(f"threads or mappings not where the plan put them: {drifted}")


def _verified(host: LocalHost, name: str | None, rendered: str | None) -> list[Verification]:
    if rendered is not None:
        if name is not None:
            raise UsageError("give either NAME or --rendered, not both")
        from atoll.inspect.rendered import verify_rendered
        from atoll.store.plan_file import read_rendered

        return [verify_rendered(host, *read_rendered(rendered))]
    deployments, _ = listing(host)
    if name is not None:
        chosen = [deployment for deployment in deployments if deployment.name == name]
        if not chosen:
            raise no_deployment(name, [deployment.name for deployment in deployments])
    else:
        chosen = [each for each in deployments if each.state in (State.STARTING, State.READY)]
        if not chosen:
            raise UsageError("nothing is up; start something with 'atoll up'")
    return [verify(host, deployment, deep=True) for deployment in chosen]
