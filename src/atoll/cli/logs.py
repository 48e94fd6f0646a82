"""`atoll logs`: show what a deployment's processes wrote."""

from __future__ import annotations

import click

from atoll.host.local import LocalHost
from atoll.schema.text import printable
from atoll.supervise import records
from atoll.supervise.logs import follow, last_lines, log_files

_POLL_S = 0.2


@click.command(epilog="Examples: atoll logs trino; atoll logs trino worker-0 -f")
@click.argument("name")
@click.argument("process", required=False)
@click.option("-f", "--follow", "follows", is_flag=True, help="Print new lines until it ends.")
@click.option(
    "-n",
    "count",
    metavar="LINES",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="Number of lines from the end of each log.",
)
def command(name: str, process: str | None, follows: bool, count: int) -> None:
    """Print the logs of the deployment NAME, of all processes or of one.

    Logs stay after 'atoll down', until the next deployment of that name. The log 'supervisor' is
    Atoll's own.
    """
    logs = log_files(name, process)
    width = max(map(len, logs)) if len(logs) > 1 else 0

    def show(each: str, line: str) -> None:
        label = f"{each:{width}} | " if width else ""
        click.echo(label + printable(line.expandtabs()))

    ends = {}
    for each, path in logs.items():
        lines, ends[each] = last_lines(path, count)
        for line in lines:
            show(each, line)
    if follows:
        host = LocalHost()
        for each, line in follow(
            logs,
            ends,
            goes_on=lambda: records.is_held(name),
            pause=lambda: host.sleep(_POLL_S),
        ):
            show(each, line)
