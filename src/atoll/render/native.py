"""A deployment as scripts, one per process, and a page that says how to use them. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from atoll.engines.calls import engine_notes
from atoll.render.deployment import Rendering, Standing, folder_of, numactl_argv, place_of
from atoll.schema.deployment import ProcessSpec
from atoll.schema.plan import MemoryPolicy
from atoll.schema.size import gib


def render_native(standing: Standing) -> Rendering:
    scripts = {f"bin/{spec.name}.sh": script(standing, spec) for spec in standing.processes}
    return folder_of(standing, scripts, readme(standing, _started_by_hand(standing)))


def script(standing: Standing, spec: ProcessSpec) -> str:
    """A shell script that becomes the process."""
    plan, folder = standing.plan, standing.target.folder
    lines = [
        "#!/bin/sh",
        f"# {spec.name}, placed with numactl: {place_of(plan, spec)}",
        f"cd {shlex.quote(f'{folder}/{spec.cwd}'.rstrip('/'))} || exit 1",
        *(f"export {key}={shlex.quote(value)}" for key, value in sorted(spec.env.items())),
        *(f"set -a; . {shlex.quote(path)}; set +a" for path in standing.secret_environment(spec)),
        f"exec {_wrapped(numactl_argv(plan, spec))}",
    ]
    return "\n".join(lines) + "\n"


def readme(standing: Standing, how: Sequence[str]) -> str:
    """What lies in the folder and who sits where; `how` says how it is started."""
    plan, target = standing.plan, standing.target
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
        *(_row(standing, spec) for spec in standing.processes),
        "",
        *how,
        "",
        "## Afterwards",
        "",
        "`atoll inspect PID` says where the threads and the memory of a process really are.",
    ]
    notes = [*_notes(standing), *(f"- {warning}" for warning in plan.warnings)]
    if notes:
        lines += ["", "## To know", "", *notes]
    return "\n".join(lines) + "\n"


def preparations(standing: Standing) -> list[str]:
    """Before the first start; secrets lie in the files, so they are closed to others."""
    target = standing.target
    is_number = target.user.isdigit()
    lines = [
        "## Once, before the first start",
        "",
        "```sh",
        # Of a number it knows no group.
        f"chown -R {target.user}{'' if is_number else ':'} {shlex.quote(target.folder)}",
    ]
    for spec in standing.processes:
        if command := standing.prepare.get(spec.name):
            placed = numactl_argv(standing.plan, spec.model_copy(update={"argv": command}))
            env = [f"{key}={value}" for key, value in sorted(spec.env.items())]
            account = f"#{target.user}" if is_number else target.user
            lines.append(shlex.join(["sudo", "-u", account, "env", *env, *placed]))
    return [*lines, "```", ""]


def _started_by_hand(standing: Standing) -> list[str]:
    stages = sorted({spec.stage for spec in standing.processes})
    lines = [*preparations(standing), "## Start"]
    lines += ["", f"As the user `{standing.target.user}`; each runs until it is ended.", ""]
    if len(stages) > 1:
        lines += ["Wait after each group until all of it accept connections.", ""]
    lines += ["```sh"]
    for stage in stages:
        if stage != stages[0]:
            lines += [""]
        lines += [
            shlex.quote(f"{standing.target.folder}/bin/{spec.name}.sh")
            for spec in standing.processes
            if spec.stage == stage
        ]
    return [*lines, "```"]


def _row(standing: Standing, spec: ProcessSpec) -> str:
    plan = standing.plan
    heap, threads = "", ""
    if spec.slot is not None:
        slot = plan.slots[spec.slot]
        heap, threads = gib(slot.heap_bytes), str(slot.threads)
    elif plan.coordinator is not None and len(standing.processes) == len(standing.layout.processes):
        heap = gib(plan.coordinator.heap_bytes)
    port = str(spec.ready_port or spec.ready_socket or "")
    return f"| {spec.name} | `{place_of(plan, spec)}` | {heap} | {threads} | {port} |"


def _notes(standing: Standing) -> Iterable[str]:
    if len(standing.processes) < len(standing.layout.processes):
        yield (
            f"- No driver is rendered: that is your application. Start it with the configuration "
            f"of this folder; what is said of `{standing.plan.engine}` in Atoll's docs holds for it"
            "."
        )
    yield from (f"- {note}" for note in engine_notes(standing.facts, standing.layout.files))
    policies = {slot.memory_policy for slot in standing.plan.slots}
    if MemoryPolicy.WEIGHTED_INTERLEAVE in policies:
        yield "- `numactl -w` needs numactl 2.0.18 and Linux 6.9."


def _wrapped(argv: Sequence[str]) -> str:
    """A word a line, so that two scripts can be compared; the place on one."""
    first = argv.index("--") + 1 if argv[0] == "numactl" else 1
    return " \\\n  ".join((shlex.join(argv[:first]), *map(shlex.quote, argv[first:])))
