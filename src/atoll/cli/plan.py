"""`atoll plan`: say who sits where, and why."""

from __future__ import annotations

import json
import os
import sys

import click

from atoll.cli.machine import machine_for, profile_option
from atoll.cli.planned import POLICIES, base_option, read_plan, say_warnings
from atoll.engines import registry
from atoll.engines.userconfig.apply import with_user_tree
from atoll.errors import UsageError
from atoll.host.local import LocalHost
from atoll.plan import make_plan
from atoll.plan.capacity import Demand
from atoll.plan.coordinator import parse_coordinator
from atoll.plan.diff import Change, compare
from atoll.report.terminal.plan import plan_text
from atoll.schema.plan import MemoryPolicy, Placement
from atoll.schema.size import parse_size
from atoll.store.files import write_atomic


@click.command(
    epilog="Examples: atoll plan spark; atoll plan spark --policy win --explain; "
    "atoll plan duckdb -n 4 -o plan.json; atoll plan spark --diff plan.json"
)
@click.argument("engine", metavar="ENGINE")
@click.option(
    "--policy",
    type=click.Choice(POLICIES),
    default="auto",
    show_default=True,
    help="How many worker instances there are, and what each owns.",
)
@click.option("-n", "count", type=int, metavar="N", help="So many instances, of equal size.")
@click.option(
    "--memory",
    type=click.Choice(list(map(str, MemoryPolicy))),
    help="Memory policy (default: bind where nodes are several).",
)
@click.option(
    "--placement",
    type=click.Choice(list(map(str, Placement))),
    default="none",
    show_default=True,
    help="How threads sit inside a slot.",
)
@click.option("--smt", is_flag=True, help="Use all threads of a core, not one.")
@click.option(
    "--coordinator",
    metavar="shared|in-worker|reserved:K",
    help="Where the coordinator sits (default: shared, anywhere on the machine).",
)
@click.option(
    "--peak",
    metavar="SIZE",
    help="Warn where one query's peak over all instances (40GiB) exceeds their shares.",
)
@click.option("--broadcast", metavar="SIZE", help="What every instance copies of a query's tables.")
@click.option("--peak-from", metavar="FILE", help="Take the peak that a bench observed.")
@base_option
@click.option("--machine", "source", metavar="FILE", help="Plan for this machine instead.")
@click.option("--chiplets", metavar="SETS", help='Hidden chiplets: "0-13;14-27" or "cores=14".')
@profile_option
@click.option("-o", "--output", metavar="FILE", help="Write the plan file.")
@click.option("--explain", is_flag=True, help="Say every rule that was used, and its source.")
@click.option("--diff", "old", metavar="FILE", help="Show what changed from a plan file.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print the plan (or the differences) as JSON."
)
def command(
    engine: str,
    policy: str,
    count: int | None,
    memory: str | None,
    placement: str,
    smt: bool,
    coordinator: str | None,
    peak: str | None,
    broadcast: str | None,
    peak_from: str | None,
    base: str | None,
    source: str | None,
    chiplets: str | None,
    profile: str | None,
    output: str | None,
    explain: bool,
    old: str | None,
    as_json: bool,
) -> None:
    """Plan where the worker instances of ENGINE sit on this machine.

    Policies: wim, win, wicp and wic are one instance per machine, NUMA node, chiplet and core.
    wicp-mixed has as many instances as wicp, each over all chiplets of its node; spmwin as many
    as win, each over all nodes. auto takes the best by rule, and says the rule.
    """
    before = read_plan(old) if old is not None else None
    machine = machine_for(source, chiplets=chiplets, profile=profile)
    adapter, _ = with_user_tree(registry.get(engine), base, LocalHost(), starts=False)
    plan = make_plan(
        machine,
        adapter.traits,
        policy,
        count=count,
        memory=MemoryPolicy(memory) if memory else None,
        placement=Placement(placement),
        smt=smt,
        coordinator=parse_coordinator(coordinator) if coordinator else None,
        demand=_demand(engine, peak, broadcast, peak_from),
    )
    if output is not None:
        write_atomic(output, plan.model_dump_json(indent=2) + "\n")
    if before is not None:
        click.echo(_diff_json(compare(before, plan)) if as_json else _diff(compare(before, plan)))
    elif as_json:
        click.echo(plan.model_dump_json(indent=2))
    else:
        colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        click.echo(plan_text(plan, explain=explain, colour=colour), nl=False)
    say_warnings(plan)


def _demand(engine: str, peak: str | None, broadcast: str | None, observed: str | None) -> Demand:
    if peak is not None and observed is not None:
        raise UsageError("--peak and --peak-from say the same thing; leave one out")
    copied = _size("--broadcast", broadcast)
    if observed is None:
        return Demand(_size("--peak", peak), copied)
    # Not for every plan: the statistics of a bench take as long to import as all the rest.
    from atoll.bench.engine_work import observed_peak
    from atoll.bench.results import read_results

    found = observed_peak(read_results(observed), engine, where=observed)
    return Demand(found.size_bytes, copied, f"observed in {found.query} under {found.label}")


def _size(option: str, text: str | None) -> int:
    try:
        return parse_size(text) if text is not None else 0
    except ValueError as fault:
        raise UsageError(f"{option}: {fault}") from None


def _diff(changes: list[Change]) -> str:
    return "\n".join(map(str, changes)) or "no differences"


def _diff_json(changes: list[Change]) -> str:
    return json.dumps([change._asdict() for change in changes], indent=2)
