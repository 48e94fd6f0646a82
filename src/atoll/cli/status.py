"""`atoll status`: show one deployment."""

from __future__ import annotations

import json
import sys

import click

from atoll.cli import turning
from atoll.host.local import LocalHost
from atoll.supervise.status import document, find, status


@click.command(epilog="Example: atoll status trino --json | jq -r '.access[].command'")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def command(name: str | None, as_json: bool) -> None:
    """Show the state of the deployment NAME, how to connect to it, and its processes.

    You may leave out NAME if there is only one. Memory is what a process and its children have
    resident. 'atoll verify' checks where it lies. Without NAME, the knobs that Atoll has set are
    listed, too.
    """
    host = LocalHost()
    knobs = turning.control().turned()
    if name is None and not as_json and knobs:
        print(
            f"knobs set: {', '.join(knobs)} ('atoll knobs' shows them, 'atoll undo' restores them)"
        )
    deployment, notices = find(name, host)
    for notice in notices:
        print(f"atoll: {notice}", file=sys.stderr)
    found = status(deployment, host)
    if as_json:
        print(json.dumps({**document(found), "knobs_set": knobs}, indent=1))
        return
    from atoll.cli.terminal import show
    from atoll.report.terminal.deployment import heading, process_table

    for line in heading(found):
        print(line)
    show(process_table(found))
