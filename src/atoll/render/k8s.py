"""A deployment as Kubernetes pods, with the kubelet's settings. Pure.

A pod cannot name CPUs. A pod of a slot has Guaranteed QoS and whole CPUs, for which the kubelet's
static policies choose CPUs of their own, and memory of the same node. Where a slot is smaller than
a node, the balloons policy of NRI takes the kubelet's part.

Source: containers/nri-plugins, docs/resource-policy/policy/balloons.md.
"""

from __future__ import annotations

import re
from dataclasses import replace

from atoll.engines.rendered import Rendering
from atoll.errors import UsageError
from atoll.render.container import folders, needs_of_image, with_secrets, working_folder
from atoll.render.deployment import (
    START_S,
    STOP_S,
    UnattendedDeployment,
    earlier,
    folder_of,
    listens,
)
from atoll.render.kubelet import (
    check_memory,
    free_cpus,
    has_own_cpus,
    kubelet_settings,
    pod_cpus,
    settings_explained,
    smaller_than_node,
)
from atoll.render.native import preparations, readme
from atoll.render.yaml import Value, yaml_text
from atoll.schema.deployment import ProcessSpec
from atoll.schema.plan import CoordinatorKind, MemoryPolicy

_NAME = re.compile("[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_LABEL = "atoll/machine"
_BALLOON = "balloon.balloons.resource-policy.nri.io"
_CREATE = "create"


def render_k8s(deployment: UnattendedDeployment) -> Rendering:
    """Raises UsageError for what pods cannot do (a name, memory policies, shared CPUs), and for a
    plan that leaves too little to the kubelet."""
    _check(deployment)
    check_memory(deployment)
    pods = [_pod(deployment, spec) for spec in deployment.processes]
    files = {"pods": pods}
    if has_own_cpus(deployment):
        files["kubelet"] = [kubelet_settings(deployment)]
    if creators := [_creator(deployment, spec) for spec in _to_create(deployment)]:
        files[_CREATE] = creators
    if smaller_than_node(deployment):
        files["balloons"] = [_balloons(deployment)]
    texts = {f"k8s/{name}.yaml": "---\n".join(map(yaml_text, all_)) for name, all_ in files.items()}
    rendering = folder_of(deployment, {}, readme(deployment, _how(deployment)))
    return replace(rendering, files={**rendering.files, **texts})


def _check(deployment: UnattendedDeployment) -> None:
    name, plan = deployment.target.name, deployment.plan
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"--name {name}: a pod's name has only small letters, digits and '-', and begins and "
            "ends with a letter or digit; give another name"
        )
    if ":" in f"{deployment.target.folder}{deployment.target.data}":
        raise UsageError(
            f"{deployment.target.folder}: a container of Kubernetes cannot have a folder with ':'; "
            "give others with --at and --data"
        )
    for spec in deployment.processes:
        policy = deployment.place(spec).policy
        if policy not in (MemoryPolicy.BIND, MemoryPolicy.LOCAL, MemoryPolicy.FIRST_TOUCH):
            raise UsageError(
                f"Kubernetes has no memory policy {policy.value}; plan with --policy win or "
                "--memory bind, or render with --to native"
            )
    if plan.coordinator is not None and plan.coordinator.kind is CoordinatorKind.IN_WORKER:
        raise UsageError(
            "--coordinator in-worker: two pods cannot share CPUs of their own; plan with "
            "--coordinator shared"
        )
    if free_cpus(deployment) < 1:
        raise UsageError(
            "the plan leaves no CPU to Kubernetes, which needs one; plan with --reserve-cores 1"
        )


def _pod(deployment: UnattendedDeployment, spec: ProcessSpec) -> dict[str, Value]:
    container = _container(deployment, spec)
    if test := listens(spec):
        container["startupProbe"] = {
            "exec": {"command": _words(["bash", "-c", test])},
            "periodSeconds": 2,
            "failureThreshold": START_S // 2,
        }
    # A pod starts at once. It waits itself, because pods know no order.
    waits: list[Value] = [
        {
            **_container(deployment, spec),
            "name": f"await-{other.name}",
            "command": _words(["bash", "-c", f"until ({test}) 2>/dev/null; do sleep 0.2; done"]),
        }
        for other in earlier(deployment, spec)
        if (test := listens(other))
    ]
    pod = _around(deployment, spec, spec.name, container, waits)
    if deployment.facts.stop_signal != "SIGTERM":
        signal = deployment.facts.stop_signal.removeprefix("SIG")
        container["lifecycle"] = {
            "preStop": {"exec": {"command": ["sh", "-c", f"kill -{signal} 1; sleep {STOP_S}"]}}
        }
    return pod


def _creator(deployment: UnattendedDeployment, spec: ProcessSpec) -> dict[str, Value]:
    made = spec.model_copy(update={"argv": deployment.prepare[spec.name]})
    return _around(deployment, spec, f"{_CREATE}-{spec.name}", _container(deployment, made), [])


def _to_create(deployment: UnattendedDeployment) -> list[ProcessSpec]:
    return [spec for spec in deployment.processes if spec.name in deployment.prepare]


def _container(deployment: UnattendedDeployment, spec: ProcessSpec) -> dict[str, Value]:
    place, cpus = deployment.place(spec), pod_cpus(deployment, spec)
    limits: dict[str, Value] = {}
    if cpus is not None:
        limits["cpu"] = str(cpus)
    if place.limit_bytes is not None:
        limits["memory"] = str(place.limit_bytes)
    return {
        "name": "engine",
        "image": deployment.target.image,
        "command": _words(with_secrets(deployment, spec, spec.argv)),
        "workingDir": working_folder(deployment, spec),
        "env": [
            {"name": key, "value": _words([value])[0]}
            for key, value in deployment.environment(spec)
        ],
        "resources": {"requests": limits, "limits": limits},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": f"folder-{index}", "mountPath": path, "readOnly": not may_write}
            for index, (path, may_write) in enumerate(folders(deployment, spec).items())
        ]
        + [{"name": "tmp", "mountPath": "/tmp"}],
    }


def _words(words: list[str]) -> list[str]:
    """Kubernetes replaces $(NAME) in commands, probes and variables, and $$ by $."""
    return [word.replace("$", "$$") for word in words]


def _around(
    deployment: UnattendedDeployment,
    spec: ProcessSpec,
    name: str,
    container: dict[str, Value],
    waits: list[Value],
) -> dict[str, Value]:
    target, plan = deployment.target, deployment.plan
    meta: dict[str, Value] = {"name": f"{target.name}-{name}"}
    if smaller_than_node(deployment) and pod_cpus(deployment, spec) is not None:
        meta["annotations"] = {_BALLOON: f"{target.name}-{spec.name}"}
    paths: list[Value] = [
        {"name": f"folder-{index}", "hostPath": {"path": path, "type": "Directory"}}
        for index, path in enumerate(folders(deployment, spec))
    ]
    body: dict[str, Value] = {
        "nodeSelector": {_LABEL: plan.machine_id},
        "hostNetwork": True,
        "restartPolicy": "OnFailure",
        "terminationGracePeriodSeconds": STOP_S,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": int(target.user),
            "runAsGroup": int(target.user),
        },
        **({"initContainers": waits} if waits else {}),
        "containers": [container],
        "volumes": [*paths, {"name": "tmp", "emptyDir": {}}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": body}


def _balloons(deployment: UnattendedDeployment) -> dict[str, Value]:
    types: list[Value] = []
    for spec in deployment.processes:
        if (cpus := pod_cpus(deployment, spec)) is None:
            continue
        types.append(
            {
                "name": f"{deployment.target.name}-{spec.name}",
                "minCPUs": cpus,
                "maxCPUs": cpus,
                # Made before the reserved balloon, which gets the CPUs that are left: it avoids
                # all preferred devices, so it would take those of a slot.
                "minBalloons": 1,
                "maxBalloons": 1,
                "allocatorPriority": "normal",
                "preferCloseToDevices": _near(deployment, spec),
            }
        )
    return {
        "apiVersion": "config.nri/v1alpha1",
        "kind": "BalloonsPolicy",
        "metadata": {"name": "node.NODE", "namespace": "kube-system"},
        "spec": {
            "reservedResources": {"cpu": f"{free_cpus(deployment)}000m"},
            # Else a pod without a balloon would get one of a slot's CPUs.
            "reservedPoolNamespaces": ["*"],
            "pinCPU": True,
            "pinMemory": True,
            "balloonTypes": types,
        },
    }


def _near(deployment: UnattendedDeployment, spec: ProcessSpec) -> list[str]:
    """Devices in sysfs whose CPUs the balloon should have: its nodes, and the L3 of its chiplet."""
    place = deployment.place(spec)
    slot = None if spec.slot is None else deployment.plan.slots[spec.slot]
    nodes = place.nodes if slot is None else slot.nodes
    near = [f"/sys/devices/system/node/node{node}" for node in nodes]
    if place.cpus and (slot is None or len(slot.chiplets) == 1):
        near.append(f"/sys/devices/system/cpu/cpu{place.cpus[0]}/cache/index3")
    return near


def _how(deployment: UnattendedDeployment) -> list[str]:
    pods = "kubectl apply -f k8s/pods.yaml"
    lines = [
        *needs_of_image(deployment, numactl=False),
        "",
        "## What Kubernetes decides",
        "",
        *_differences(deployment),
        "",
        "## The node",
        "",
        *(settings_explained(deployment) if has_own_cpus(deployment) else []),
        "Run kubectl in a copy of this folder that the engine's account cannot change. NODE is the "
        "plan's machine:",
        "",
        "```sh",
        f"kubectl label node NODE {_LABEL}={deployment.plan.machine_id}",
        *(["kubectl apply -f k8s/balloons.yaml"] if smaller_than_node(deployment) else []),
        "```",
        "",
    ]
    create = f"kubectl apply -f k8s/{_CREATE}.yaml"
    lines += preparations(deployment, lambda spec: create)
    if _to_create(deployment):
        lines += [f"Once its pods have completed: `{create.replace('apply', 'delete')}`.", ""]
    return [
        *lines,
        "## Start",
        "",
        "```sh",
        pods,
        "```",
        "",
        f"`{pods.replace('apply', 'delete')}` stops all of it. The kubelet restarts a container "
        "that fails.",
    ]


def _differences(deployment: UnattendedDeployment) -> list[str]:
    places = [deployment.place(spec) for spec in deployment.processes]
    lines = []
    if any(place.cpus is not None for place in places):
        lines.append(
            "- **Which CPUs.** A pod names a number of CPUs, and not which. The table above says "
            "what the plan wants; what runs may differ, and `atoll verify` reports it as drift."
        )
    if smaller_than_node(deployment):
        lines.append(
            "- **Chiplets.** The kubelet's topology manager knows nodes only. So the balloons "
            "policy of NRI (`k8s/balloons.yaml`) chooses CPUs: each slot has a balloon of its "
            "size, near its node and its L3 (`index3` in sysfs). Both are preferences, so a "
            "balloon can have CPUs of two chiplets."
        )
    if has_own_cpus(deployment):
        lines.append(
            "- **Which memory.** Memory is bound to the nodes of the CPUs that the pod gets, "
            "whatever the plan's memory policy. No pod names a node."
        )
    if any(place.cpus is None for place in places):
        lines.append(
            "- **Processes without a mask** share the CPUs that no other pod has to itself. Their "
            "pods are not Guaranteed."
        )
    if deployment.plan.addresses:
        lines.append(
            "- **NICs.** Pods have the host's network; the addresses in the engine's configuration "
            "choose the NIC. Kubernetes does not know which NIC is near a pod."
        )
    return lines
