"""`atoll render`: a plan as the engine's own configuration and the files that start it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from atoll.cli.options import (
    base_option,
    count_option,
    listen_option,
    listen_places,
    machine_for,
    machine_option,
    policy_option,
    synthetic_option,
)
from atoll.cli.planning import planning_options, refuse_choices
from atoll.cli.terminal import has_colour, print_changes, print_warnings
from atoll.errors import UsageError
from atoll.host.local import LocalHost
from atoll.plan.cluster import refuse_part
from atoll.plan.request import Choices
from atoll.render.job import FORMS, Ground, RenderOptions, make_job
from atoll.render.writing import write_rendering
from atoll.report.terminal.plan import plan_text
from atoll.store.plan_file import is_plan_file, read_plan


@click.command(
    epilog="Examples: atoll render trino -o /etc/atoll-trino --to systemd; "
    "atoll render trino --machine other.xml --explain; atoll render trino --synthetic "
    "'Package:2 NUMANode:1(memory=256GB) Core:48 PU:1' --explain; "
    "atoll render trino --base /etc/trino --diff; "
    "atoll render trino -o /srv/trino --to compose --image trinodb/trino:476 --user 1000; "
    "atoll render postgresql -o /shared/pg --to slurm; "
    "atoll render singlestore -o leaves"
)
@click.argument("engine_or_plan", metavar="ENGINE|PLAN")
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Folder to write. An existing one is replaced only if Atoll wrote it.",
)
@click.option(
    "--to",
    "form",
    type=click.Choice(list(FORMS)),
    default="native",
    show_default=True,
    help="What starts it: scripts that place each process with numactl, systemd units, a Compose "
    "file, a Slurm job, pods of Kubernetes, or Ansible playbooks that install the units.",
)
@policy_option
@count_option
@planning_options
@machine_option
@synthetic_option
@listen_option
@base_option
@click.option(
    "--home",
    metavar="DIR",
    help="The engine's folder on the target machine (default: the one found here; for another "
    "machine, the usual folder).",
)
@click.option(
    "--java",
    metavar="FILE",
    help="The java program on the target machine (default: /usr/bin/java).",
)
@click.option(
    "--at",
    metavar="DIR",
    help="Where the folder -o will be on the target machine (default: the same path).",
)
@click.option(
    "--data",
    metavar="DIR",
    help="Folder on the target machine for whatever grows (default: data below the other files).",
)
@click.option("--name", help="Name of the deployment (default: the engine's).")
@click.option(
    "--user", help="Account that runs it (default: the one that the engine's packages create)."
)
@click.option(
    "--image",
    metavar="NAME",
    help="For compose and k8s: the image that has the engine, at --home and --java.",
)
@click.option(
    "--port-base",
    metavar="PORT",
    type=click.IntRange(1024, 64000),
    default=8080,
    show_default=True,
    help="First of its ports; the others follow.",
)
@click.option("--explain", is_flag=True, help="Explain each setting, with its source.")
@click.option("--diff", is_flag=True, help="List what changes in --base, with secrets as ***.")
def command(
    engine_or_plan: str,
    source: str | None,
    synthetic: str | None,
    listen: str | None,
    choices: Choices,
    **options: Any,
) -> None:
    """Write files that start ENGINE, or a PLAN from 'atoll plan', without Atoll.

    The engine need not be installed here, and the machine may be another one. Atoll also renders
    engines that it cannot run; their files say 'rendered, not run'.
    """
    here = source is None and synthetic is None
    chosen = RenderOptions(here=here, choices=choices, **options)
    plan = None
    if is_plan_file(engine_or_plan):
        refuse_choices(chosen.policy, chosen.choices, listen)
        if not chosen.here:
            raise UsageError("a plan file names its machine itself; leave out --machine")
        plan = read_plan(engine_or_plan)
        refuse_part(plan, "start it with 'atoll fleet up'; it cannot be rendered")

    def ground() -> Ground:
        machine = machine_for(source, synthetic)
        return machine, listen_places(listen, machine, here=chosen.here)

    job = make_job(
        plan or engine_or_plan,
        chosen,
        ground=ground,
        host=LocalHost(),
    )
    print_warnings(job.plan)
    for remark in job.remarks:
        click.echo(f"atoll: {remark}", err=True)
    print_changes(job.summary, job.plan.engine, chosen.base)
    click.echo(job.changes, nl=False)
    if chosen.explain:
        click.echo(plan_text(job.plan, explain=True, colour=has_colour()))
        click.echo(job.explanation.rstrip())
    if chosen.output is not None and job.rendering is not None:
        written = write_rendering(job.rendering, chosen.output)
        click.echo(f"{chosen.output}: {written} files; README.md explains them", err=True)
