"""`atoll plan`: plan the placement of worker instances, with the reasons."""

from __future__ import annotations

import json
from dataclasses import replace

import click

from atoll.cli.options import (
    base_option,
    chiplets_option,
    count_option,
    listen_option,
    listen_places,
    machine_for,
    machine_option,
    policy_option,
    profile_option,
)
from atoll.cli.planning import planning_options, size_of
from atoll.cli.terminal import has_colour, print_warnings, width
from atoll.engines import registry
from atoll.engines.userconfig.apply import with_user_tree
from atoll.errors import UsageError
from atoll.host.local import LocalHost
from atoll.plan import make_plan
from atoll.plan.capacity import Demand
from atoll.plan.diff import Change, compare
from atoll.plan.instance_types import plan_type
from atoll.plan.request import Choices
from atoll.probing.allocators import library_of
from atoll.report.terminal.instance_types import instance_types_text
from atoll.report.terminal.plan import plan_text
from atoll.schema.instance_types import InstanceTypePlans, InstanceTypes
from atoll.schema.plan import Plan
from atoll.store.files import write_atomic
from atoll.store.instance_types_file import machine_of_type, read_compared


@click.command(
    epilog="Examples: atoll plan spark; atoll plan spark --policy win --explain; "
    "atoll plan duckdb -n 4 -o plan.json; atoll plan spark --compare plan.json; "
    "atoll plan trino --compare instance-types.yaml"
)
@click.argument("engine", metavar="ENGINE")
@policy_option
@count_option
@planning_options
@click.option(
    "--peak",
    metavar="SIZE",
    help="Warn if a query's peak memory over all instances, for example 40GiB, exceeds a share.",
)
@click.option(
    "--broadcast", metavar="SIZE", help="Size of the tables that a query copies to every instance."
)
@click.option("--peak-from", metavar="FILE", help="Take the peak from this results file.")
@listen_option
@base_option
@machine_option
@chiplets_option
@profile_option
@click.option("-o", "--output", metavar="FILE", help="Write the plan to this file.")
@click.option("--explain", is_flag=True, help="List every rule that was applied, with its source.")
@click.option(
    "--compare",
    "old",
    metavar="FILE",
    help="Show the changes since this plan file, or what each type of a file with instance types "
    "and your prices would give.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the plan (or the changes) as JSON.")
def command(
    engine: str,
    policy: str | None,
    choices: Choices,
    peak: str | None,
    broadcast: str | None,
    peak_from: str | None,
    listen: str | None,
    base: str | None,
    source: str | None,
    chiplets: str | None,
    profile: str | None,
    output: str | None,
    explain: bool,
    old: str | None,
    as_json: bool,
) -> None:
    """Plan the placement of ENGINE's worker instances on this machine.

    The policies wim, win, wicp and wic have one instance per machine, NUMA node, chiplet and
    core. wicp-mixed has as many instances as wicp, each over all chiplets of its node. spmwin has
    as many as win, each over all nodes. auto chooses one by rules and names the rule.
    """
    before = read_compared(old) if old is not None else None
    host = LocalHost()
    adapter, _ = with_user_tree(registry.get(engine), base, host, starts=False)
    demand = _demand(engine, peak, broadcast, peak_from)
    if old is not None and isinstance(before, InstanceTypes):
        if any((source, chiplets, profile, listen, output, explain)):
            raise UsageError(
                f"{old}: instance types have their own machines; leave out --machine, --chiplets, "
                "--profile, --listen, -o and --explain"
            )
        plans = InstanceTypePlans(
            engine=engine,
            currency=before.currency,
            types=tuple(
                plan_type(
                    kind,
                    machine_of_type(kind, old),
                    adapter.traits,
                    policy or "auto",
                    demand=demand,
                    **choices,
                )
                for kind in before.types
            ),
        )
        _print_types(plans, as_json=as_json)
        return
    machine = machine_for(source, chiplets=chiplets, profile=profile)
    plan = make_plan(
        machine,
        adapter.traits,
        policy or "auto",
        demand=replace(demand, crossing_bytes=_crossing(profile)),
        listen=listen_places(listen, machine, here=source is None),
        **choices,
    )
    if source is None:
        library_of(plan.malloc, host)  # raises
    if output is not None:
        write_atomic(output, plan.model_dump_json(indent=2) + "\n")
    if isinstance(before, Plan):
        click.echo(_diff_json(compare(before, plan)) if as_json else _diff(compare(before, plan)))
    elif as_json:
        click.echo(plan.model_dump_json(indent=2))
    else:
        click.echo(plan_text(plan, explain=explain, colour=has_colour()), nl=False)
    print_warnings(plan)


def _print_types(plans: InstanceTypePlans, *, as_json: bool) -> None:
    if as_json:
        click.echo(plans.model_dump_json(indent=2))
        return
    click.echo(instance_types_text(plans, colour=has_colour(), width=width()), nl=False)
    for one in plans.types:
        for warning in one.warnings:
            click.echo(f"atoll: warning: {one.name}: {warning}", err=True)


def _demand(engine: str, peak: str | None, broadcast: str | None, observed: str | None) -> Demand:
    if peak is not None and observed is not None:
        raise UsageError("give either --peak or --peak-from, not both")
    copied = size_of("--broadcast", broadcast)
    if observed is None:
        return Demand(size_of("--peak", peak), copied)
    # Imported here, because it takes as long as all other imports of this command.
    from atoll.bench.engine_work import observed_peak
    from atoll.bench.results import read_results

    found = observed_peak(read_results(observed), engine, where=observed)
    return Demand(found.size_bytes, copied, f"observed in {found.query} under {found.label}")


def _crossing(profile: str | None) -> int | None:
    """From which size the profile has measured that spread threads are faster."""
    if profile is None:
        return None
    from atoll.probing.profiles import read

    return next((one.crossing_bytes for one in read(profile).sharing if one.crossing_bytes), None)


def _diff(changes: list[Change]) -> str:
    return "\n".join(map(str, changes)) or "no changes"


def _diff_json(changes: list[Change]) -> str:
    return json.dumps([change._asdict() for change in changes], indent=2)
