"""`atoll render`: a plan as the engine's own configuration, scripts or systemd units."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from atoll.cli.machine import machine_for
from atoll.cli.planned import POLICIES, base_option, is_plan_file, read_plan, refuse_choices
from atoll.engines import registry
from atoll.engines.base import Base, Engine, Installation
from atoll.engines.bases import on_base
from atoll.engines.changes import changes
from atoll.engines.reasons import ExplainedEngine
from atoll.errors import EngineFailed, NotPermitted, UsageError
from atoll.host.local import LocalHost
from atoll.plan import make_plan
from atoll.render import unseen
from atoll.render.deployment import Rendering, Standing, Target, stand
from atoll.render.explain import explain
from atoll.render.native import render_native
from atoll.render.systemd import render_systemd
from atoll.render.writing import write_rendering
from atoll.report.plan_table import plan_text
from atoll.schema.plan import EngineTraits, Plan
from atoll.supervise.records import check_name

_RENDERERS = {"native": render_native, "systemd": render_systemd}
# The accounts that packages of these make; that of any other has the engine's name.
_USERS = {
    "postgresql": "postgres",
    "mariadb": "mysql",
    "singlestore": "memsql",
    "greenplum": "gpadmin",
}
# Where packages put these; any other is looked for in /opt.
_HOMES = {"postgresql": "/usr/lib/postgresql/15/bin", "mariadb": "/usr"}


@click.command(
    epilog="Examples: atoll render trino -o /etc/atoll-trino --to systemd; "
    "atoll render trino --machine other.xml --explain; atoll render trino --synthetic "
    "'Package:2 NUMANode:1(memory=256GB) Core:48 PU:1' --explain; "
    "atoll render trino --base /etc/trino --diff; atoll render singlestore -o leaves"
)
@click.argument("engine_or_plan", metavar="ENGINE|PLAN")
@click.option("-o", "--output", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--to",
    "form",
    type=click.Choice(list(_RENDERERS)),
    default="native",
    show_default=True,
    help="Scripts that place each process with numactl, or systemd units.",
)
@click.option("--policy", type=click.Choice(POLICIES), help="Plan with it; only with an ENGINE.")
@click.option("-n", "count", type=click.IntRange(min=1), help="Number of worker instances.")
@click.option("--machine", "source", metavar="FILE", help="Render for this machine instead.")
@click.option("--synthetic", metavar="TEXT", help="Render for a machine that hwloc makes of this.")
@base_option
@click.option(
    "--home",
    metavar="DIR",
    help="Where the engine lies there (default: as here; with --machine the usual place).",
)
@click.option("--java", metavar="FILE", help="The java there (default: /usr/bin/java).")
@click.option("--at", metavar="DIR", help="Where -o will lie there (default: where it lies here).")
@click.option("--name", help="Name of the deployment (default: the engine's).")
@click.option("--user", help="The account that it runs as (default: the engine's name).")
@click.option(
    "--port-base",
    metavar="PORT",
    type=click.IntRange(1024, 64000),
    default=8080,
    show_default=True,
    help="The first of its ports; the others follow.",
)
@click.option("--explain", "explained", is_flag=True, help="Say why each setting is as it is.")
@click.option("--diff", is_flag=True, help="Show what is changed in --base; secrets as ***.")
def command(
    engine_or_plan: str,
    output: Path | None,
    form: str,
    policy: str | None,
    count: int | None,
    source: str | None,
    synthetic: str | None,
    base: str | None,
    home: str | None,
    java: str | None,
    at: str | None,
    name: str | None,
    user: str | None,
    port_base: int,
    explained: bool,
    diff: bool,
) -> None:
    """Write what starts ENGINE, or a PLAN that 'atoll plan' wrote, without Atoll.

    The engine need not be installed here, and the machine may be another. SingleStore and
    Greenplum, which Atoll does not run, can be rendered: their files are marked 'rendered, not
    run'.
    """
    if output is None and not (explained or diff):
        raise UsageError("say where to with -o DIR, or ask for --explain or --diff")
    if diff and base is None:
        raise UsageError("--diff shows what is changed in a configuration; name it with --base")
    plan = _plan(engine_or_plan, policy, count, source, synthetic)
    folder = at or str((output or Path(plan.engine)).absolute())
    target = Target(
        name=name or plan.engine,
        folder=_absolute(folder),
        user=user or _USERS.get(plan.engine, plan.engine),
        port_base=port_base,
    )
    check_name(target.name)
    if target.user == "root":
        raise UsageError("no engine needs root; name another --user")
    if plan.engine in unseen.ENGINES:
        if explained or diff or base is not None or output is None:
            raise UsageError(f"{plan.engine} is only written whole; give -o DIR alone")
        _write(unseen.ENGINES[plan.engine].render(plan, target), output)
        return
    host = LocalHost()
    engine, users = on_base(registry.get(plan.engine), base, host)
    here = home is None and source is None and synthetic is None
    installation = _installation(engine, host, here=here, home=home, java=java)
    standing = stand(plan, engine, installation, target)
    if users is not None and diff:
        click.echo(changes(users, standing.layout.files), nl=False)
    if explained:
        click.echo(_explained(standing, engine, users))
    if output is not None:
        _write(_RENDERERS[form](standing), output)


def _plan(
    engine_or_plan: str,
    policy: str | None,
    count: int | None,
    source: str | None,
    synthetic: str | None,
) -> Plan:
    if is_plan_file(engine_or_plan):
        refuse_choices(policy, count)
        if source is not None or synthetic is not None:
            raise UsageError("a plan file says its machine itself; leave out --machine")
        return read_plan(engine_or_plan)
    traits, default = _traits(engine_or_plan)
    return make_plan(machine_for(source, synthetic), traits, policy or default, count=count)


def _traits(engine: str) -> tuple[EngineTraits, str]:
    """And the policy where none is said."""
    if found := unseen.ENGINES.get(engine):
        return found.traits, found.policy
    return registry.get(engine).traits, "auto"


def _installation(
    engine: Engine, host: LocalHost, *, here: bool, home: str | None, java: str | None
) -> Installation:
    """What lies on this machine where that is the one, else what was said or the usual place."""
    found = None
    if here:
        try:
            found = engine.locate(host)
        except (EngineFailed, NotPermitted) as fault:
            click.echo(f"atoll: written for the usual places, since here {fault}", err=True)
    if found is not None and java is None:
        return found
    usual = _HOMES.get(engine.traits.name, f"/opt/{engine.traits.name}")
    return Installation(
        version=found.version if found else "",
        home=_absolute(home) if home else found.home if found else usual,
        java=_absolute(java) if java else "/usr/bin/java",
    )


def _absolute(path: str) -> str:
    return os.path.normpath(os.path.join(os.getcwd(), path))


def _explained(standing: Standing, engine: Engine, users: Base | None) -> str:
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    reasons = engine.reasons if isinstance(engine, ExplainedEngine) else {}
    return "\n".join(
        (
            plan_text(standing.plan, explain=True, colour=colour),
            explain(standing.layout.files, standing.processes, reasons, base=users),
        )
    ).rstrip()


def _write(rendering: Rendering, output: Path) -> None:
    write_rendering(rendering, output)
    count = len(rendering.files) + len(rendering.scripts) + len(rendering.copies)
    click.echo(f"{output}: {count} files; README.md says how to use them", err=True)
