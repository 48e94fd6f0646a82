"""`atoll operators apply` and `undo`: place the operators of a program that runs, and restore."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

import click

from atoll.cli.options import machine_for, machine_option
from atoll.errors import CheckFailed, UsageError
from atoll.host.local import LocalHost
from atoll.schema.placement import Placement
from atoll.schema.size import percent
from atoll.schema.text import first_of, plural, printable
from atoll.store.files import write_atomic
from atoll.store.operator_files import read_placement


@click.command(
    "apply",
    epilog="Examples: atoll operators apply packed.json --url http://localhost:8081; "
    "atoll operators undo",
)
@click.argument("file", metavar="PLACEMENT")
@click.option("--url", metavar="URL", help="Where the program listens.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="For an engine whose operators cannot be placed: write a plan with that many cores.",
)
@machine_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def command(
    file: str, url: str | None, output: str | None, source: str | None, as_json: bool
) -> None:
    """Bind the operators of a running program as planned.

    PLACEMENT is a file that 'atoll operators plan' wrote. Every thread of an operator gets the one
    CPU of its unit, and a process all of whose operators are on one node gets its own pages there.
    Atoll moves no other thread. It saves each old mask first, so 'atoll operators undo' restores
    it.

    Then Atoll checks every thread; the exit code is 1 if one is not where it should be. It is 2 for
    an engine whose operators cannot be placed; then the command says how many cores they need, and
    -o plans a deployment of that size, for this machine or that of --machine.
    """
    from atoll.engines import registry
    from atoll.operators.apply import apply

    if source is not None and output is None:
        raise UsageError("--machine is for the plan that -o writes")
    placement = read_placement(file)
    if not placement.engine:
        raise UsageError(
            f"{file}: names no program in its field 'engine'; a program of your own reads the file "
            "when it starts (docs/operators.md)"
        )
    if registry.why_not_placeable(placement.engine):
        _answer(placement, file, as_json=as_json)
        words = "for a deployment of that size, add -o plan.json"
        if output is not None:
            _write_plan(placement, source, output)
            words = f"a deployment of that size: atoll up {output}"
        if not as_json:
            print(words)
    program = registry.get_attachable(placement.engine)
    if output is not None:
        raise UsageError(f"-o is for engines that can only be given a size, not {placement.engine}")
    if url is None:
        raise UsageError(f"say with --url where {placement.engine} listens")
    host = LocalHost()
    with program.attach(host, url) as running:
        found = apply(host, running, placement, _leave if program.independent else None)
    if as_json:
        print(json.dumps(asdict(found), indent=1))
    else:
        print(
            f"{plural(found.threads, 'thread')} bound to {plural(len(placement.cores), 'CPU')}"
            + (f"; {plural(found.idle, 'thread')} idle since" if found.idle else "")
        )
        if found.local is not None:
            print(f"memory: {percent(found.local)} of the operators' own pages are on their node")
        for fault in found.faults:
            print(printable(fault))
    if found.faults:
        raise CheckFailed(f"operators not where the placement has them: {len(found.faults)}")


@click.command("undo", epilog="Example: atoll operators undo")
def undo_command() -> None:
    """Restore the CPUs of threads that 'apply' has bound.

    Memory stays where it is.
    """
    from atoll.operators.apply import undo

    restored, ended = undo(LocalHost())
    print(
        f"{plural(restored, 'thread')} restored"
        + (f"; {plural(ended, 'thread')} ended meanwhile" if ended else "")
        if restored or ended
        else "nothing to undo"
    )


def _leave(strangers: Sequence[str]) -> None:
    names = printable(first_of(strangers, 3))
    click.echo(f"atoll: not in the placement, and left as they are: {names}", err=True)


def _answer(placement: Placement, file: str, *, as_json: bool) -> None:
    """How many cores the operators need. Raises UsageError."""
    from atoll.report.terminal.operators import against

    if placement.deployment != "packed":
        raise UsageError(
            f"{file}: the deployment {placement.deployment} does not say how many cores the "
            "operators need; make a plan with --deployment packed"
        )
    cores, bound = len(placement.cores), placement.bound
    operators = len({name for unit in placement.units for name in unit.operators})
    if as_json:
        found = {"engine": placement.engine, "operators": operators, "cores": cores}
        print(json.dumps(found | {"fewest_cores": bound and bound.cores}, indent=1))
        return
    need = against(cores, bound.cores, "core") if bound else plural(cores, "core")
    print(f"{plural(operators, 'operator')} of {placement.engine} need {need}")


def _write_plan(placement: Placement, source: str | None, output: str) -> None:
    from atoll.engines import registry
    from atoll.plan import make_plan
    from atoll.schema.policy import Policy

    traits = registry.get(placement.engine).traits
    plan = make_plan(machine_for(source), traits, Policy.WIM, cores=len(placement.cores))
    write_atomic(output, plan.model_dump_json(indent=2) + "\n")
