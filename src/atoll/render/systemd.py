"""A deployment as systemd units: one per process, and a slice and a target for all. Pure.

Two pairs of settings place a slot, because each alone leaves a gap. AllowedCPUs= and
AllowedMemoryNodes= (cgroup v2) cover every child process, and no process can widen them; but
systemd ignores them without the cpuset controller. CPUAffinity= and NUMAPolicy= are set on the
process itself. A cgroup's node list is a hard limit, so only bound memory has AllowedMemoryNodes=.

Source: systemd.exec(5) and systemd.resource-control(5) of systemd 252.
"""

from __future__ import annotations

import shlex
from dataclasses import replace

from atoll.engines.facts import EngineFacts
from atoll.engines.rendered import Rendering, Target
from atoll.errors import UsageError
from atoll.render.deployment import (
    START_S,
    STOP_S,
    UnattendedDeployment,
    earlier,
    folder_of,
    listens,
    writable,
)
from atoll.render.native import preparations, readme
from atoll.schema.cpulist import format_cpulist
from atoll.schema.deployment import ProcessSpec
from atoll.schema.plan import MemoryPolicy
from atoll.supervise.place import plan_cpus

_POLICY = {
    MemoryPolicy.LOCAL: "local",
    MemoryPolicy.BIND: "bind",
    MemoryPolicy.PREFERRED: "preferred",
    MemoryPolicy.INTERLEAVE: "interleave",
}
# A server of an ordinary user needs nothing that these take away.
_CLOSED_OFF = (
    "NoNewPrivileges=yes",
    "CapabilityBoundingSet=",
    "RestrictSUIDSGID=yes",
    "RestrictNamespaces=yes",
    "LockPersonality=yes",
    "ProtectKernelModules=yes",
    "ProtectKernelTunables=yes",
    "ProtectControlGroups=yes",
    "ProtectSystem=strict",
)
_RESTART_S = 5
_STARTS, _START_LIMIT_S = 5, 5 * (START_S + STOP_S)  # then a unit stays failed


def render_systemd(deployment: UnattendedDeployment) -> Rendering:
    """Raises UsageError for a memory policy that systemd lacks, and for a name that a slice cannot
    have."""
    name = deployment.target.name
    if "--" in name or name.endswith("-"):
        raise UsageError(
            f"--name {name}: a slice cannot contain '--' or end with '-'; give another name"
        )
    rendering = folder_of(deployment, {}, readme(deployment, _how(deployment)))
    units = {f"systemd/{name}": text for name, text in unit_files(deployment).items()}
    return replace(rendering, files={**rendering.files, **units})


def unit_files(deployment: UnattendedDeployment) -> dict[str, str]:
    name = deployment.target.name
    units = {
        unit_name(deployment, spec): _service(deployment, spec) for spec in deployment.processes
    }
    wanted = " ".join(units)
    of_all = f"{deployment.plan.engine} under {deployment.plan.policy.value}"
    return {
        f"{name}.slice": _text([("Unit", [f"Description=All of {of_all}"]), *_limit(deployment)]),
        f"{name}.target": _text(
            [
                ("Unit", [f"Description={of_all}", f"Wants={wanted}"]),
                ("Install", ["WantedBy=multi-user.target"]),
            ]
        ),
        **units,
    }


def _limit(deployment: UnattendedDeployment) -> list[tuple[str, list[str]]]:
    most = deployment.limit_bytes
    return [] if most is None else [("Slice", [f"MemoryMax={most}"])]


def _service(deployment: UnattendedDeployment, spec: ProcessSpec) -> str:
    target = deployment.target
    before = [unit_name(deployment, other) for other in earlier(deployment, spec)]
    # An address of a NIC can be used once the network is configured.
    network = "network-online.target" if deployment.plan.addresses else "network.target"
    unit = [
        f"Description={deployment.plan.engine}: {spec.name}",
        f"PartOf={target.name}.target",
        f"After={' '.join([network, *before])}",
        *([f"Wants={network}"] if deployment.plan.addresses else []),
        # A start takes longer than systemd's default interval, so that would never end it.
        f"StartLimitIntervalSec={_START_LIMIT_S}",
        f"StartLimitBurst={_STARTS}",
    ]
    if before:
        unit.append(f"Requires={' '.join(before)}")
    service = [
        "Type=exec",
        f"User={target.user}",
        f"Slice={target.name}.slice",
        f"WorkingDirectory={_escaped(f'{target.folder}/{spec.cwd}'.rstrip('/'))}",
        *(f"Environment={_word(f'{key}={value}')}" for key, value in deployment.environment(spec)),
        *(f"EnvironmentFile={_escaped(path)}" for path in deployment.secret_environment(spec)),
        f"ExecStart={' '.join(_argument(word) for word in spec.argv)}",
        *_readiness(spec),
        "SuccessExitStatus=143",  # the exit status of a JVM after SIGTERM
        # The first process ends its own children: a database's processes, a worker's executors.
        "KillMode=mixed",
        *_stop_signal(deployment.facts),
        f"TimeoutStopSec={STOP_S}",
        "Restart=on-failure",
        f"RestartSec={_RESTART_S}",
        "UMask=0077",
        *_CLOSED_OFF,
        f"ReadWritePaths={' '.join(map(_word, writable(deployment, spec)))}",
        # A private /tmp would hide a deployment that lies there.
        f"PrivateTmp={'no' if _is_temporary(target) else 'yes'}",
        "LimitNOFILE=131072",
        *_place(deployment, spec),
    ]
    return _text([("Unit", unit), ("Service", service)])


def _readiness(spec: ProcessSpec) -> list[str]:
    """The unit counts as started once the process accepts connections. If it ends before, so does
    the check."""
    test = listens(spec)
    if not test:
        return []
    check = f'until ({test}) 2>/dev/null; do kill -0 "$MAINPID" || exit 1; sleep 0.2; done'
    return [
        f"ExecStartPost=/bin/bash -c {_argument(check)}",
        f"TimeoutStartSec={START_S}",
    ]


def _is_temporary(target: Target) -> bool:
    return any(
        f"{path}/".startswith(("/tmp/", "/var/tmp/")) for path in (target.folder, target.data)
    )


def _stop_signal(facts: EngineFacts) -> list[str]:
    return [] if facts.stop_signal == "SIGTERM" else [f"KillSignal={facts.stop_signal}"]


def _place(deployment: UnattendedDeployment, spec: ProcessSpec) -> list[str]:
    place = deployment.place(spec)
    policy, nodes = place.policy, format_cpulist(place.nodes)
    if policy is MemoryPolicy.WEIGHTED_INTERLEAVE or (
        policy is MemoryPolicy.PREFERRED and len(place.nodes) > 1
    ):
        raise UsageError(
            f"systemd has no memory policy {policy.value} of nodes {nodes}; "
            "render with --to native, or plan with --memory bind or interleave"
        )
    lines = []
    if place.cpus is not None:
        cpus = format_cpulist(place.cpus)
        lines += [f"AllowedCPUs={cpus}", f"CPUAffinity={cpus}"]
    if policy is MemoryPolicy.BIND:
        lines.append(f"AllowedMemoryNodes={nodes}")
    if policy in _POLICY:
        lines.append(f"NUMAPolicy={_POLICY[policy]}")
        if policy is not MemoryPolicy.LOCAL:
            lines.append(f"NUMAMask={nodes}")
    return lines


def _how(deployment: UnattendedDeployment) -> list[str]:
    target = deployment.target
    units = f"{shlex.quote(f'{target.folder}/systemd')}/*"
    lines = [
        *preparations(deployment),
        "## Start",
        "",
        "Copy the units, do not link them: the engine's account must not be able to change them.",
        "",
        "```sh",
        f"install -m 644 {units} /etc/systemd/system/",
        "systemctl daemon-reload",
        f"systemctl enable --now {target.name}.target",
        "```",
        "",
        f"`systemctl stop {target.name}.target` stops all of it.",
    ]
    if plan_cpus(deployment.plan):
        lines += [
            "",
            "`AllowedCPUs=` and `AllowedMemoryNodes=` need cgroup v2 with the cpuset controller. "
            f"`systemctl show -p EffectiveCPUs {unit_name(deployment, deployment.processes[-1])}` "
            "shows the CPUs in effect.",
        ]
    if len({spec.stage for spec in deployment.processes}) > 1:
        lines += [
            "",
            "systemd starts a unit once those before it accept connections.",
        ]
    return lines


def unit_name(deployment: UnattendedDeployment, spec: ProcessSpec) -> str:
    return f"{deployment.target.name}-{spec.name}.service"


def _text(sections: list[tuple[str, list[str]]]) -> str:
    return "\n".join(
        f"[{name}]\n" + "".join(f"{line}\n" for line in lines) for name, lines in sections
    )


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


def _word(text: str) -> str:
    """In double quotes if systemd would otherwise split or unescape it."""
    escaped = _escaped(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"' if escaped != text or not text or set(text) & set(" \t';") else text


def _argument(text: str) -> str:
    return _word(text).replace("$", "$$")
