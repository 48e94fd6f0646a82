"""`atoll restart`: stop a deployment and start it again, as it was."""

from __future__ import annotations

import click

from atoll.cli.terminal import progress
from atoll.engines import registry
from atoll.engines.userconfig.apply import with_user_tree
from atoll.engines.userconfig.blame import naming_users_files
from atoll.errors import UsageError
from atoll.host.local import LocalHost
from atoll.host.topology import read_machine
from atoll.report.terminal.deployment import ready_lines
from atoll.supervise import records
from atoll.supervise.interrupts import terminate_is_interrupt
from atoll.supervise.launch import launch
from atoll.supervise.prepare import prepare
from atoll.supervise.status import find
from atoll.supervise.stop import down


@click.command(epilog="Example: atoll restart trino")
@click.argument("name")
def command(name: str) -> None:
    """Stop the deployment NAME, if it is up, and start it with the same plan and options.

    It keeps a port that --port chose, and reads the folder of --base again. Afterwards it runs
    detached: 'atoll down' stops it. If the start fails, you can run the command again.
    """
    host = LocalHost()
    with terminate_is_interrupt():
        record, _ = find(name, host)
        options = record.options
        if options is None:
            raise UsageError(f"{name}: was not started by 'atoll up'; start it as it was started")
        own = registry.get(record.plan.engine)
        engine, _ = with_user_tree(own, options.base, host)
        machine = read_machine()
        # Whatever forbids the start is reported while the old deployment still runs.
        prepare(record.plan, engine, machine=machine, host=host, name=name, options=options)
        with progress(f"stopping {name}") as tell:
            down(name, host)
            # Again: until now, ports that the configuration names were the old deployment's.
            engine, users = with_user_tree(own, options.base, host)
            try:
                with naming_users_files(users):
                    running = launch(
                        record.plan,
                        engine,
                        machine=machine,
                        host=host,
                        name=name,
                        options=options,
                        progress=tell,
                    )
            except BaseException as fault:
                # A start that fails leaves no record, and without one it cannot be tried again.
                records.write(record.after_failure(str(fault) or "the restart was interrupted"))
                raise
        running.detach()
    for line in ready_lines(name, running.access):
        print(line)
