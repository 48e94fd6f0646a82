"""`atoll render`: a plan as the engine's own configuration, scripts or systemd units."""

from __future__ import annotations

import os
import pwd
import re
import sys
from pathlib import Path

import click

from atoll.cli.machine import machine_for
from atoll.cli.planned import (
    POLICIES,
    base_option,
    is_plan_file,
    read_plan,
    refuse_choices,
    say_warnings,
)
from atoll.engines import registry
from atoll.engines.api import Engine, Installation
from atoll.engines.calls import located
from atoll.engines.facts import facts_of
from atoll.engines.reasons import ExplainedEngine
from atoll.engines.userconfig.apply import with_user_tree
from atoll.engines.userconfig.changes import changes
from atoll.engines.userconfig.tree import UserTree
from atoll.errors import EngineFailed, NotPermitted, UsageError
from atoll.host.local import LocalHost
from atoll.install.parts import engines_dir
from atoll.plan import make_plan
from atoll.plan.capacity import check_room
from atoll.render import unseen
from atoll.render.deployment import Rendering, Standing, Target, stand
from atoll.render.explain import explain
from atoll.render.native import render_native
from atoll.render.systemd import render_systemd
from atoll.render.writing import write_rendering
from atoll.report.terminal.plan import plan_text
from atoll.schema.plan import Plan
from atoll.supervise.records import check_name

_RENDERERS = {"native": render_native, "systemd": render_systemd}
# By name, as shadow-utils and directories (user@domain) have them, or by number, but for root's.
_ACCOUNT = re.compile(r"[A-Za-z_][A-Za-z0-9_.@-]*|[1-9][0-9]*")
_USERS = {"singlestore": "memsql", "greenplum": "gpadmin"}


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
@click.option("--diff", is_flag=True, help="List what changes in --base; secrets as ***.")
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
    if base is not None and output is not None:
        _refuse_inside(output, base)
    written = _written(engine_or_plan, policy, count, source, synthetic)
    name_of_engine = written.engine if written else engine_or_plan
    host = LocalHost()
    # What a configuration takes beside a heap is planned with.
    engine, users = (
        (None, None)
        if name_of_engine in unseen.ENGINES
        else with_user_tree(registry.get(name_of_engine), base, host, starts=False)
    )
    plan = written or _planned(engine, engine_or_plan, policy, count, source, synthetic)
    if written:
        check_room(plan, engine.traits if engine else unseen.ENGINES[plan.engine].traits)
    say_warnings(plan)
    folder = at or str((output or Path(plan.engine)).absolute())
    target = Target(
        name=name or plan.engine,
        folder=_absolute(folder),
        user=user or _USERS.get(plan.engine) or facts_of(engine).account or plan.engine,
        port_base=port_base,
    )
    check_name(target.name)
    if target.user == "root":
        raise UsageError("no engine needs root; name another --user")
    if not _ACCOUNT.fullmatch(target.user):
        raise UsageError(f"--user {target.user!r}: cannot be an account; name one that is not root")
    if engine is None:
        if explained or diff or base is not None or output is None:
            raise UsageError(f"{plan.engine} is only written whole; give -o DIR alone")
        if form == "systemd" or home is not None or java is not None:
            raise UsageError(
                f"{plan.engine} is written as scripts, which look for it themselves; "
                "leave out --to, --home and --java"
            )
        _write(unseen.ENGINES[plan.engine].render(plan, target), output)
        return
    here = home is None and source is None and synthetic is None
    installation = _installation(engine, host, here=here, home=home, java=java)
    if here:
        _warn_of_cache(installation, target.user)
    standing = stand(plan, engine, installation, target)
    if users is not None and diff:
        click.echo(changes(users, standing.layout.files), nl=False)
    if explained:
        click.echo(_explained(standing, engine, users))
    if output is not None:
        _write(_RENDERERS[form](standing), output)


def _refuse_inside(output: Path, base: str) -> None:
    """Nothing is written into a user's configuration: the next rendering would take it for some."""
    if Path(os.path.realpath(output)).is_relative_to(os.path.realpath(base)):
        raise UsageError(f"-o {output}: lies in --base, which stays as it is; name another folder")


def _written(
    engine_or_plan: str,
    policy: str | None,
    count: int | None,
    source: str | None,
    synthetic: str | None,
) -> Plan | None:
    """The plan, where the argument is a file that has one."""
    if not is_plan_file(engine_or_plan):
        return None
    refuse_choices(policy, count)
    if source is not None or synthetic is not None:
        raise UsageError("a plan file says its machine itself; leave out --machine")
    return read_plan(engine_or_plan)


def _planned(
    engine: Engine | None,
    name: str,
    policy: str | None,
    count: int | None,
    source: str | None,
    synthetic: str | None,
) -> Plan:
    traits = engine.traits if engine else unseen.ENGINES[name].traits
    default = "auto" if engine else unseen.ENGINES[name].policy
    return make_plan(machine_for(source, synthetic), traits, policy or default, count=count)


def _installation(
    engine: Engine, host: LocalHost, *, here: bool, home: str | None, java: str | None
) -> Installation:
    """What lies on this machine where that is the one, else what was said or the usual place."""
    found = None
    if here:
        try:
            found = located(engine, host)
        except (EngineFailed, NotPermitted) as fault:
            click.echo(f"atoll: written for the usual places, since here {fault}", err=True)
    if found is not None and java is None:
        return found
    usual = facts_of(engine).home or f"/opt/{engine.traits.name}"
    return Installation(
        version=found.version if found else "",
        home=_absolute(home) if home else found.home if found else usual,
        java=_absolute(java) if java else "/usr/bin/java",
    )


def _warn_of_cache(installation: Installation, user: str) -> None:
    """The cache is closed to others, and what is rendered runs as an account of its own."""
    cache = f"{engines_dir()}/"
    closed = [path for path in (installation.home, installation.java) if path.startswith(cache)]
    if closed and not _is_us(user):
        click.echo(
            f"atoll: {closed[0]} is in your own cache, which the user {user!r} may not be able to "
            "read; copy it to where it can, and name that with --home or --java",
            err=True,
        )


def _is_us(user: str) -> bool:
    try:
        return pwd.getpwnam(user).pw_uid == os.getuid()
    except KeyError:
        return False  # no account of this machine


def _absolute(path: str) -> str:
    if not path.isprintable():
        raise UsageError(f"{path!r}: no unit or script can name it; use printable letters")
    return os.path.normpath(os.path.join(os.getcwd(), path))


def _explained(standing: Standing, engine: Engine, users: UserTree | None) -> str:
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
