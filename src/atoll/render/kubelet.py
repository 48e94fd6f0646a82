"""The kubelet's settings for a plan: the CPUs and the memory that it keeps, and its policies. Pure.

Source: kubernetes.io, 'Control CPU Management Policies on the Node' and 'Memory Manager'.
"""

from __future__ import annotations

from atoll.errors import UsageError
from atoll.render.deployment import UnattendedDeployment
from atoll.render.yaml import Value
from atoll.schema.deployment import ProcessSpec
from atoll.schema.plan import Policy

# The kubelet's memory, and its default of evictionHard; it wants both in reservedMemory.
_OWN_MIB, _EVICTION_MIB = 1024, 100


def pod_cpus(deployment: UnattendedDeployment, spec: ProcessSpec) -> int | None:
    """The CPUs of the pod: all threads of its cores, of which the engine may use one each. None:
    it shares the CPUs that are in no pod."""
    cpus = deployment.place(spec).cpus
    if cpus is None:
        return None
    machine = deployment.plan.machine
    threads = machine.pus // machine.cores if machine.cores else 1  # 0: the input showed none
    return len(cpus) * (1 if deployment.plan.smt else threads)


def free_cpus(deployment: UnattendedDeployment) -> int:
    taken = sum(pod_cpus(deployment, spec) or 0 for spec in deployment.processes)
    return deployment.plan.machine.pus - taken


def check_memory(deployment: UnattendedDeployment) -> None:
    """Raises UsageError if the kubelet would have no memory for a pod, because the plan leaves too
    little of a node or of all."""
    sizes, slots = deployment.node_bytes, deployment.plan.slots
    if not sizes or not has_own_cpus(deployment):
        return
    kept_mib = _kept_mib(deployment)
    left, beside = dict(sizes), False
    for spec in deployment.processes:
        place = deployment.place(spec)
        nodes = place.nodes if spec.slot is None else slots[spec.slot].nodes
        if len(nodes) == 1:
            left[nodes[0]] -= place.limit_bytes or 0
            beside |= spec.slot is None
    pods_bytes = sum(deployment.place(spec).limit_bytes or 0 for spec in deployment.processes)
    least_mib = _OWN_MIB + _EVICTION_MIB
    lacks = sum(sizes.values()) - pods_bytes < least_mib << 20
    if not smaller_than_node(deployment):
        # The plan takes --reserve from all nodes in proportion to their size.
        whole = sum(sizes[node] for node in kept_mib)
        missing = max(
            -(-((mib << 20) - left[node]) * whole // sizes[node]) for node, mib in kept_mib.items()
        )
        if missing > 0:
            lacks = True
            # Rounded, as heaps are by some bytes. The node of a coordinator's pod gets less back
            # than its share of --reserve.
            more_mib = (whole - pods_bytes + missing + (1 << 19) >> 20) - least_mib
            least_mib += max(0, more_mib) * (2 if beside else 1)
    if lacks:
        raise UsageError(
            f"the plan leaves too little memory to Kubernetes, which needs {_OWN_MIB} MiB and "
            f"{_EVICTION_MIB} MiB that stay free; plan with --reserve {least_mib}MiB"
        )


def _used_nodes(deployment: UnattendedDeployment) -> set[int]:
    return {node for slot in deployment.plan.slots for node in slot.nodes}


def _without_memory(deployment: UnattendedDeployment) -> list[int]:
    """The nodes that have instances and, as far as is known, no memory."""
    used = _used_nodes(deployment)
    return sorted(node for node in used if deployment.node_bytes.get(node) == 0)


def _kept_mib(deployment: UnattendedDeployment) -> dict[int, int]:
    """What the kubelet keeps, by node: from all alike that have instances and memory."""
    nodes = sorted(_used_nodes(deployment) - {*_without_memory(deployment)})
    nodes = nodes or [node for node, size in deployment.node_bytes.items() if size] or [0]
    whole, rest = divmod(_OWN_MIB + _EVICTION_MIB, len(nodes))
    return {node: whole + (place < rest) for place, node in enumerate(nodes)}


def kubelet_settings(deployment: UnattendedDeployment) -> dict[str, Value]:
    """The settings to put into the kubelet's own configuration."""
    settings: dict[str, Value] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "kubeReserved": {"cpu": str(free_cpus(deployment)), "memory": f"{_OWN_MIB}Mi"},
    }
    if smaller_than_node(deployment):
        return {**settings, "cpuManagerPolicy": "none", "memoryManagerPolicy": "None"}
    one_node = all(len(slot.nodes) == 1 for slot in deployment.plan.slots)
    strict = one_node and not _without_memory(deployment)
    return {
        **settings,
        "cpuManagerPolicy": "static",
        "cpuManagerPolicyOptions": {"full-pcpus-only": "true"},
        "memoryManagerPolicy": "Static",
        "reservedMemory": [
            {"numaNode": node, "limits": {"memory": f"{mib}Mi"}}
            for node, mib in _kept_mib(deployment).items()
        ],
        "topologyManagerPolicy": "single-numa-node" if strict else "best-effort",
        "topologyManagerScope": "pod",
    }


def has_own_cpus(deployment: UnattendedDeployment) -> bool:
    """Under WIM no pod is Guaranteed, so the kubelet gives none CPUs of its own."""
    return deployment.plan.policy is not Policy.WIM


def smaller_than_node(deployment: UnattendedDeployment) -> bool:
    return deployment.plan.policy in (Policy.WICP, Policy.WICP_MIXED, Policy.WIC)


def settings_explained(deployment: UnattendedDeployment) -> list[str]:
    """What to know of the kubelet's settings, and of the balloons policy."""
    lines = [
        "Put the settings of `k8s/kubelet.yaml` into the kubelet's configuration, remove "
        "`cpu_manager_state` and `memory_manager_state` in its folder, and restart it.",
        "",
        f"- `kubeReserved` gives it the CPUs that the plan leaves, and {_OWN_MIB} MiB of memory.",
        "- The pods take all other CPUs. If another pod requests CPU on this node, such as a "
        "daemon set's, one of them stays Pending.",
    ]
    if smaller_than_node(deployment):
        return [
            *lines,
            "- A pod stays Pending if the plan leaves less memory (`--reserve`).",
            "- `k8s/balloons.yaml` needs the balloons plugin of NRI on the node "
            "(containers/nri-plugins). Write the node's name for NODE in it. A policy named "
            "`default` would apply to every node that has the plugin.",
            "- Pods without a balloon of their own share the CPUs that the plan leaves.",
            "",
        ]
    if empty := _without_memory(deployment):
        lines.append(
            f"- Node {empty[0]} has CPUs and no memory, so `single-numa-node` would reject its "
            "pod. Under `best-effort` the pod runs, and may have CPUs of another node."
        )
    return [
        *lines,
        "- The kubelet takes the first cores, as `--reserve-cores` does. If the table above leaves "
        "others, name all their threads in `reservedSystemCPUs`, or it may reject a pod.",
        f"- `reservedMemory` is this memory and {_EVICTION_MIB} MiB, from all nodes alike that "
        "have instances and memory. If the plan leaves less (`--reserve`), the kubelet rejects a "
        "pod.",
        "- `reservedMemory` must equal the memory of `kubeReserved`, `systemReserved` and "
        "`evictionHard` together, or the kubelet does not start. It is written for a kubelet "
        f"without `systemReserved`, and with the default of `evictionHard`, {_EVICTION_MIB} MiB.",
        "",
    ]
