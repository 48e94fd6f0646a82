"""Kubernetes pods: sizes, what is refused, the kubelet's settings, and the API's own schemas."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

import kubernetes_validate
import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from atoll.engines import registry
from atoll.errors import UsageError
from atoll.host.topology import read_machine
from atoll.plan import make_plan
from atoll.plan.coordinator import CoordinatorChoice, parse_coordinator
from atoll.render.deployment import UnattendedDeployment, lay_out
from atoll.render.k8s import render_k8s
from atoll.schema.machine import Machine
from atoll.schema.plan import CoordinatorKind, MemoryPolicy
from tests.parts.faults import fails
from tests.parts.machines import NodeShape, build, milan
from tests.parts.paths import GOLDEN
from tests.parts.render import ENGINES, TARGET, THERE

MEMORYLESS = read_machine(str(GOLDEN / "machines" / "memoryless-node.xml"))
CONTAINERS = replace(TARGET, image="db:1", user="1001")


def made(engine: str = "trino", policy: str = "win", **options: Any) -> UnattendedDeployment:
    adapter = registry.get(engine)
    machine = options.pop("machine", None) or milan(2, 2, 4, smt=options.pop("threads", 1))
    kept = {"reserve_cores": 1, "reserve_bytes": 2 << 30}
    plan = make_plan(machine, adapter.traits, policy, **{**kept, **options})
    return lay_out(plan, adapter, THERE, CONTAINERS, machine=machine)


def documents(deployment: UnattendedDeployment, name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(render_k8s(deployment).files[f"k8s/{name}.yaml"]))


def container(deployment: UnattendedDeployment, name: str) -> dict[str, Any]:
    (pod,) = [p for p in documents(deployment, "pods") if p["metadata"]["name"] == f"t-{name}"]
    found: dict[str, Any] = pod["spec"]["containers"][0]
    return found


@pytest.mark.parametrize("threads", [1, 2])
def test_a_slot_has_guaranteed_qos_and_all_threads_of_its_cores(threads: int) -> None:
    deployment = made(threads=threads)
    resources = container(deployment, "worker-1")["resources"]
    assert resources["requests"] == resources["limits"]
    slot = deployment.plan.slots[1]
    assert resources["limits"] == {
        "cpu": str(slot.cores * threads),
        "memory": str(slot.memory_bytes),
    }
    assert set(container(deployment, "coordinator")["resources"]["limits"]) == {"memory"}


def test_the_kubelet_keeps_what_the_plan_leaves() -> None:
    deployment = made(threads=2)
    (kubelet,) = documents(deployment, "kubelet")
    assert kubelet["kubeReserved"] == {"cpu": "2", "memory": "1024Mi"}
    assert kubelet["topologyManagerPolicy"] == "single-numa-node"
    assert "evictionHard" not in kubelet  # one threshold would turn off the others
    assert kubelet["reservedMemory"] == [
        {"numaNode": node, "limits": {"memory": "562Mi"}} for node in (0, 1)
    ]
    (spread,) = documents(made(policy="spmwin", memory=MemoryPolicy.BIND), "kubelet")
    assert spread["topologyManagerPolicy"] == "best-effort"


def test_three_nodes_reserve_1124_mib_too() -> None:
    (kubelet,) = documents(made(machine=milan(3, 1, 2)), "kubelet")
    taken = [each["limits"]["memory"] for each in kubelet["reservedMemory"]]
    assert taken == ["375Mi", "375Mi", "374Mi"]


@pytest.mark.parametrize(
    ("machine", "least_mib"),
    [
        (milan(2, 2, 4), 1124),
        (milan(3, 1, 2), 1125),
        (build([[NodeShape((), 4, 16)], [NodeShape((), 4, 48)]]), 2248),
        (MEMORYLESS, 1124),
    ],
    ids=["two", "three", "unequal", "one-without"],
)
def test_a_plan_that_leaves_the_kubelet_too_little_memory_is_refused(
    machine: Machine, least_mib: int
) -> None:
    for less in (0, (least_mib - 1) << 20):
        with fails(UsageError, option=f"--reserve {least_mib}MiB"):
            render_k8s(made("postgresql", machine=machine, reserve_bytes=less))
    render_k8s(made("postgresql", machine=machine, reserve_bytes=least_mib << 20))


def test_the_reserve_that_is_named_suffices_beside_a_coordinator_of_its_own() -> None:
    reserve_mib = 0
    for _ in range(3):
        own: dict[str, Any] = {
            "coordinator": parse_coordinator("reserved:1"),
            "reserve_bytes": reserve_mib << 20,
        }
        try:
            render_k8s(made("trino", machine=milan(2, 2, 4), **own))
            break
        except UsageError as fault:
            named = int(str(fault).rsplit(" ", 1)[1].removesuffix("MiB"))
            assert named > reserve_mib
            reserve_mib = named
    else:
        raise AssertionError(f"{reserve_mib} MiB do not suffice")


def test_chiplets_of_a_node_leave_1124_mib_in_all() -> None:
    with fails(UsageError, option="--reserve 1124MiB"):
        render_k8s(made("postgresql", "wicp", reserve_bytes=0))
    render_k8s(made("postgresql", "wicp", reserve_bytes=1124 << 20))
    unequal = build([[NodeShape((4,), 0, 16)], [NodeShape((4,), 0, 48)]])
    with fails(UsageError, option="--reserve 1124MiB"):
        render_k8s(made("postgresql", "wicp", machine=unequal, reserve_bytes=0))


def test_a_node_without_memory_has_no_part_in_the_reserve() -> None:
    deployment = made("spark", machine=MEMORYLESS)
    (kubelet,) = documents(deployment, "kubelet")
    assert kubelet["reservedMemory"] == [{"numaNode": 0, "limits": {"memory": "1124Mi"}}]
    assert kubelet["topologyManagerPolicy"] == "best-effort"
    page = render_k8s(deployment).files["README.md"]
    assert "Node 1 has CPUs and no memory" in page
    assert "no memory" not in render_k8s(made()).files["README.md"]


def test_without_masks_the_kubelet_keeps_its_settings() -> None:
    rendering = render_k8s(made("postgresql", "wim", memory=MemoryPolicy.FIRST_TOUCH))
    assert "k8s/kubelet.yaml" not in rendering.files
    page = rendering.files["README.md"]
    assert "kubelet.yaml" not in page and "Which memory" not in page
    assert "kubectl label node" in page


def test_slots_of_chiplets_have_balloons_of_their_size() -> None:
    deployment = made(policy="wicp")
    last = deployment.plan.slots[3].cpus
    assert last is not None
    (policy,) = documents(deployment, "balloons")
    types = {each["name"]: each for each in policy["spec"]["balloonTypes"]}
    for pod in documents(deployment, "pods"):
        spec = pod["spec"]["containers"][0]
        if cpus := spec["resources"]["limits"].get("cpu"):
            (own,) = pod["metadata"]["annotations"].values()
            assert types[own]["minCPUs"] == types[own]["maxCPUs"] == int(cpus)
    assert types["t-worker-3"]["preferCloseToDevices"] == [
        "/sys/devices/system/node/node1",
        f"/sys/devices/system/cpu/cpu{last[0]}/cache/index3",
    ]
    assert documents(deployment, "kubelet")[0]["cpuManagerPolicy"] == "none"
    assert policy["metadata"]["name"] == "node.NODE"
    assert "node's name for NODE" in render_k8s(deployment).files["README.md"]
    assert "k8s/balloons.yaml" not in render_k8s(made()).files


def test_the_balloons_leave_cpus_to_the_coordinator() -> None:
    deployment = made(policy="wicp", threads=2)
    (policy,) = documents(deployment, "balloons")
    spec = policy["spec"]
    # The slots' balloons come first, so that the reserved one gets all CPUs that are left.
    assert {(each["minBalloons"], each["allocatorPriority"]) for each in spec["balloonTypes"]} == {
        (1, "normal")
    }
    left = deployment.plan.machine.pus - sum(each["minCPUs"] for each in spec["balloonTypes"])
    assert spec["reservedResources"] == {"cpu": f"{left}000m"}
    assert spec["reservedPoolNamespaces"] == ["*"]
    pods = {pod["metadata"]["name"]: pod["metadata"] for pod in documents(deployment, "pods")}
    assert "annotations" not in pods["t-coordinator"]


def test_a_coordinator_with_cores_has_a_balloon_near_them() -> None:
    own = CoordinatorChoice(CoordinatorKind.RESERVED, 1)
    deployment = made(policy="wicp", coordinator=own)
    (policy,) = documents(deployment, "balloons")
    (found,) = [t for t in policy["spec"]["balloonTypes"] if t["name"] == "t-coordinator"]
    place = deployment.plan.coordinator
    assert place is not None and place.cpus is not None
    assert found["minCPUs"] == len(place.cpus)
    assert found["preferCloseToDevices"] == [
        *(f"/sys/devices/system/node/node{node}" for node in place.memory_nodes),
        f"/sys/devices/system/cpu/cpu{place.cpus[0]}/cache/index3",
    ]


def test_what_pods_cannot_do_is_refused() -> None:
    with fails(UsageError, policy="interleave"):
        render_k8s(made(memory=MemoryPolicy.INTERLEAVE))
    with fails(UsageError, option="--coordinator in-worker"):
        render_k8s(made(coordinator=CoordinatorChoice(CoordinatorKind.IN_WORKER)))
    with fails(UsageError, option="--reserve-cores 1"):
        render_k8s(made(reserve_cores=0))
    with fails(UsageError, name="--name T"):
        render_k8s(replace(made(), target=replace(CONTAINERS, name="T")))
    with fails(UsageError, path="/srv/a:b"):
        render_k8s(replace(made(), target=replace(CONTAINERS, folder="/srv/a:b")))


@pytest.mark.parametrize("policy", ["wim", "win", "wicp"])
@pytest.mark.parametrize("engine", ENGINES)
def test_the_api_accepts_the_pods(engine: str, policy: str) -> None:
    deployment = made(engine, policy)
    names = ["pods", *(["create"] if deployment.prepare else [])]
    for pod in (pod for name in names for pod in documents(deployment, name)):
        kubernetes_validate.validate(pod, "1.37", strict=True)
        pod["spec"]["hostNetworks"] = True
        with pytest.raises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(pod, "1.37", strict=True)


@settings(max_examples=25)
@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20))
@example("$(A) $$")
def test_no_text_is_another_after_kubernetes_has_replaced_variables(text: str) -> None:
    deployment = made("postgresql")
    argv, env = ("/bin/x", text), {"A": text}
    changed = {"argv": argv, "env": env, "ready_socket": text}
    spec = deployment.processes[0].model_copy(update=changed)
    found = container(replace(deployment, processes=(spec,), prepare={}), spec.name)
    values = {each["name"]: each["value"] for each in found["env"]}
    probe = found["startupProbe"]["exec"]["command"][-1]
    assert shlex.quote(f" {text}").replace("$", "$$") in probe
    for word in (found["command"][-1], values["A"]):
        assert "$" not in word.replace("$$", "")
        assert word.replace("$$", "$") == text
