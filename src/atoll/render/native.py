"""A deployment as one script per process, with a README. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence

from atoll.engines.calls import engine_notes
from atoll.engines.rendered import Rendering
from atoll.render.deployment import UnattendedDeployment, folder_of, numactl_argv, place_of
from atoll.schema.deployment import ProcessSpec
from atoll.schema.plan import Malloc, MemoryPolicy
from atoll.schema.size import gib
from atoll.supervise.place import counts


def render_native(deployment: UnattendedDeployment) -> Rendering:
    scripts = {
        f"bin/{spec.name}.sh": script(deployment, spec, numactl_argv(deployment.plan, spec))
        for spec in deployment.processes
    }
    return folder_of(deployment, scripts, readme(deployment, _started_by_hand(deployment)))


def script(deployment: UnattendedDeployment, spec: ProcessSpec, argv: Sequence[str]) -> str:
    """A shell script that becomes `argv`: the process, behind numactl if that places it."""
    plan, folder = deployment.plan, deployment.target.folder
    lines = [
        "#!/bin/sh",
        f"# {spec.name}, with its place in the words of numactl: {place_of(plan, spec)}",
        f"cd {shlex.quote(f'{folder}/{spec.cwd}'.rstrip('/'))} || exit 1",
        *(f"export {key}={shlex.quote(value)}" for key, value in deployment.environment(spec)),
        *(f"set -a; . {shlex.quote(path)}; set +a" for path in deployment.secret_environment(spec)),
        f"exec {_wrapped(argv)}",
    ]
    return "\n".join(lines) + "\n"


def readme(deployment: UnattendedDeployment, start: Sequence[str]) -> str:
    """The README: each process with its place, and `start`, the lines on how to start them."""
    plan, target = deployment.plan, deployment.target
    lines = [
        f"# {target.name}: {plan.engine} under {plan.policy.value}",
        "",
        f"Rendered by `atoll render` for a machine with {counts(plan.machine)}, for the folder "
        f"`{target.folder}`. CPU numbers are those of that machine.",
        "",
        "`plan.json` is the plan. `atoll up plan.json` starts the same deployment under Atoll "
        "(give it the same `--base`, if there was one). "
        f"`atoll plan {plan.engine} --compare plan.json` shows what a new plan would change.",
        "",
        "## Places",
        "",
        "| process | place (numactl) | heap | threads | listens at |",
        "|---|---|---|---|---|",
        *(_row(deployment, spec) for spec in deployment.processes),
        "",
        *start,
        "",
        "## Connect",
        "",
        *_connect(deployment),
        "",
        "## Check",
        "",
        f"`atoll verify --rendered {shlex.quote(target.folder)}` checks every thread and page of "
        "the running processes against `plan.json`. It needs Atoll, and root or the account "
        f"`{target.user}`.",
    ]
    notes = [*_notes(deployment), *(f"- {warning}" for warning in plan.warnings)]
    if notes:
        lines += ["", "## Remarks", "", *notes]
    return "\n".join(lines) + "\n"


def _connect(deployment: UnattendedDeployment) -> list[str]:
    plan, target = deployment.plan, deployment.target
    lines = []
    if any(spec.ready_socket for spec in deployment.processes):
        lines.append(
            f"It listens only on UNIX sockets in `{target.folder}`, which is closed to all but "
            f"`{target.user}` and root."
        )
    if any(spec.ready_port for spec in deployment.processes):
        lines.append(
            f"It listens at {', '.join(plan.addresses)}. Others on that network can reach it, and "
            "the traffic is not encrypted."
            if plan.addresses
            else "It listens only on loopback, so only programs on this machine can connect."
        )
    # Without a driver there is no server of Atoll's to send queries to.
    if len(deployment.processes) == len(deployment.layout.processes):
        commands = [access.command for access in deployment.layout.access]
        lines += ["", f"As `{target.user}`:", "", "```sh", *commands, "```"] if commands else []
    return lines


def preparations(
    deployment: UnattendedDeployment, create: Callable[[ProcessSpec], str] | None = None
) -> list[str]:
    """What to do once. The files contain secrets, so they must belong to the engine's account.

    `create`: the shell command that creates a process's data directory; without it, sudo."""
    target = deployment.target
    is_number = target.user.isdigit()
    account = f"#{target.user}" if is_number else target.user
    create = create or (
        lambda spec: shlex.join(["sudo", "-u", account, *creating(deployment, spec)])
    )
    lines = [
        "## Before the first start",
        "",
        "```sh",
        # chown(1) knows no group of an account that is only a number.
        f"chown -R {target.user}{'' if is_number else ':'} {shlex.quote(target.folder)}",
    ]
    if not target.own_data:
        lines.append(f"install -d -m 700 -o {target.user} {shlex.quote(target.data)}")
    own = (create(spec) for spec in deployment.processes if spec.name in deployment.prepare)
    lines += dict.fromkeys(own)  # one command may do it for all
    return [*lines, "```", ""]


def creating(deployment: UnattendedDeployment, spec: ProcessSpec) -> list[str]:
    """The account's command that creates the process's data directory, in its place."""
    command = deployment.prepare[spec.name]
    placed = numactl_argv(deployment.plan, spec.model_copy(update={"argv": command}))
    env = [f"{key}={value}" for key, value in sorted(spec.env.items())]
    return ["env", *env, *placed]


def _started_by_hand(deployment: UnattendedDeployment) -> list[str]:
    stages = sorted({spec.stage for spec in deployment.processes})
    lines = [*preparations(deployment), "## Start"]
    lines += [
        "",
        f"Start these as the user `{deployment.target.user}`. Each runs until you end it.",
        "",
    ]
    if len(stages) > 1:
        lines += ["After each group, wait until all its processes accept connections.", ""]
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
    port = f"{spec.ready_address}:{spec.ready_port}" if spec.ready_port else spec.ready_socket or ""
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
    if deployment.plan.malloc is not Malloc.SYSTEM:
        yield (
            f"- `LD_PRELOAD` gives every process {deployment.plan.malloc}. Without that file the "
            "dynamic linker prints an error and starts the process with the system's malloc; "
            "`atoll inspect PID` shows whose malloc it calls."
        )


def _wrapped(argv: Sequence[str]) -> str:
    """The place on one line, then one word per line, so that two scripts can be compared."""
    first = argv.index("--") + 1 if argv[0] == "numactl" else 1
    return " \\\n  ".join((shlex.join(argv[:first]), *map(shlex.quote, argv[first:])))
