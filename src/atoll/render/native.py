"""A deployment as scripts, one per process, and a page that says how to use them. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from atoll.engines.calls import engine_notes
from atoll.engines.rendered import Rendering
from atoll.render.deployment import UnattendedDeployment, folder_of, numactl_argv, place_of
from atoll.schema.deployment import ProcessSpec
from atoll.schema.plan import MemoryPolicy
from atoll.schema.size import gib


def render_native(deployment: UnattendedDeployment) -> Rendering:
    scripts = {f"bin/{spec.name}.sh": script(deployment, spec) for spec in deployment.processes}
    return folder_of(deployment, scripts, readme(deployment, _started_by_hand(deployment)))


def script(deployment: UnattendedDeployment, spec: ProcessSpec) -> str:
    """A shell script that becomes the process."""
    plan, folder = deployment.plan, deployment.target.folder
    lines = [
        "#!/bin/sh",
        f"# {spec.name}, placed with numactl: {place_of(plan, spec)}",
        f"cd {shlex.quote(f'{folder}/{spec.cwd}'.rstrip('/'))} || exit 1",
        *(f"export {key}={shlex.quote(value)}" for key, value in sorted(spec.env.items())),
        *(f"set -a; . {shlex.quote(path)}; set +a" for path in deployment.secret_environment(spec)),
        f"exec {_wrapped(numactl_argv(plan, spec))}",
    ]
    return "\n".join(lines) + "\n"


def readme(deployment: UnattendedDeployment, how: Sequence[str]) -> str:
    """What lies in the folder and who sits where; `how` says how it is started."""
    plan, target = deployment.plan, deployment.target
    lines = [
        f"# {target.name}: {plan.engine} under {plan.policy.value}",
        "",
        f"Rendered by `atoll render` for a machine with {plan.machine.packages} packages, "
        f"{plan.machine.numa_nodes} NUMA nodes, {plan.machine.chiplets} chiplets and "
        f"{plan.machine.cores} cores, to lie at `{target.folder}`. CPU numbers hold on that "
        "machine alone.",
        "",
        "`plan.json` is the plan: `atoll up plan.json` starts the same, watched and ended by "
        "Atoll (with the same `--base`, where it was rendered with one), and "
        f"`atoll plan {plan.engine} --diff plan.json` shows what a new plan would change.",
        "",
        "## Who sits where",
        "",
        "| process | place (numactl) | heap | threads | port |",
        "|---|---|---|---|---|",
        *(_row(deployment, spec) for spec in deployment.processes),
        "",
        *how,
        "",
        "## Afterwards",
        "",
        "`atoll inspect PID` says where the threads and the memory of a process really are.",
    ]
    notes = [*_notes(deployment), *(f"- {warning}" for warning in plan.warnings)]
    if notes:
        lines += ["", "## To know", "", *notes]
    return "\n".join(lines) + "\n"


def preparations(deployment: UnattendedDeployment) -> list[str]:
    """Before the first start; secrets lie in the files, so they are closed to others."""
    target = deployment.target
    is_number = target.user.isdigit()
    lines = [
        "## Once, before the first start",
        "",
        "```sh",
        # Of a number it knows no group.
        f"chown -R {target.user}{'' if is_number else ':'} {shlex.quote(target.folder)}",
    ]
    for spec in deployment.processes:
        if command := deployment.prepare.get(spec.name):
            placed = numactl_argv(deployment.plan, spec.model_copy(update={"argv": command}))
            env = [f"{key}={value}" for key, value in sorted(spec.env.items())]
            account = f"#{target.user}" if is_number else target.user
            lines.append(shlex.join(["sudo", "-u", account, "env", *env, *placed]))
    return [*lines, "```", ""]


def _started_by_hand(deployment: UnattendedDeployment) -> list[str]:
    stages = sorted({spec.stage for spec in deployment.processes})
    lines = [*preparations(deployment), "## Start"]
    lines += ["", f"As the user `{deployment.target.user}`; each runs until it is ended.", ""]
    if len(stages) > 1:
        lines += ["Wait after each group until all of it accept connections.", ""]
    lines += ["```sh"]
    for stage in stages:
        if stage != stages[0]:
            lines += [""]
        lines += [
            shlex.quote(f"{deployment.target.folder}/bin/{spec.name}.sh")
            for spec in deployment.processes
            if spec.stage == stage
        ]
    return [*lines, "```"]


def _row(deployment: UnattendedDeployment, spec: ProcessSpec) -> str:
    plan = deployment.plan
    heap, threads = "", ""
    if spec.slot is not None:
        slot = plan.slots[spec.slot]
        heap, threads = gib(slot.heap_bytes), str(slot.threads)
    elif plan.coordinator is not None and len(deployment.processes) == len(
        deployment.layout.processes
    ):
        heap = gib(plan.coordinator.heap_bytes)
    port = str(spec.ready_port or spec.ready_socket or "")
    return f"| {spec.name} | `{place_of(plan, spec)}` | {heap} | {threads} | {port} |"


def _notes(deployment: UnattendedDeployment) -> Iterable[str]:
    if len(deployment.processes) < len(deployment.layout.processes):
        yield (
            "- The driver is your own application. Start it with the configuration in this "
            f"folder; see the page of `{deployment.plan.engine}` in Atoll's docs."
        )
    yield from (f"- {note}" for note in engine_notes(deployment.facts, deployment.layout.files))
    policies = {slot.memory_policy for slot in deployment.plan.slots}
    if MemoryPolicy.WEIGHTED_INTERLEAVE in policies:
        yield "- `numactl -w` needs numactl 2.0.18 and Linux 6.9."


def _wrapped(argv: Sequence[str]) -> str:
    """A word a line, so that two scripts can be compared; the place on one."""
    first = argv.index("--") + 1 if argv[0] == "numactl" else 1
    return " \\\n  ".join((shlex.join(argv[:first]), *map(shlex.quote, argv[first:])))
