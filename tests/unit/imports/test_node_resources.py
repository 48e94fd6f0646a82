"""NodeResourceTopology objects: what they say, what is assumed, what is refused."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.engines import registry
from atoll.errors import TopologyError
from atoll.host.topology import read_machine
from atoll.imports import description_of
from atoll.plan import make_plan
from atoll.render.deployment import lay_out
from atoll.render.k8s import render_k8s
from atoll.schema.cpulist import format_cpulist
from atoll.schema.machine import Machine
from tests.parts.imports import read_or_refused
from tests.parts.render import TARGET, THERE

GIB = 1 << 30


def zone(number: int, cpus: Any = "32", allocatable: Any = None, memory: Any = "64Gi") -> Any:
    costs = [{"name": f"node-{other}", "value": 10 if other == number else 21} for other in (0, 1)]
    each = {"capacity": memory, "allocatable": memory}
    return {
        "name": f"node-{number}",
        "type": "Node",
        "costs": costs,
        "resources": [
            {"name": "cpu", "capacity": cpus, "allocatable": allocatable or cpus, "available": "1"},
            {
                "name": "memory",
                **(memory if isinstance(memory, dict) else each),
                "available": "1Gi",
            },
            {"name": "example.com/nic", "capacity": "2", "allocatable": "2", "available": "2"},
        ],
    }


def item(*zones: Any, **fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": "worker"},
        "zones": list(zones or (zone(0), zone(1))),
        **fields,
    }


def read(document: Any, folder: Path) -> Machine:
    path = folder / "nrt.yaml"
    path.write_text(yaml.safe_dump(document))
    return read_machine(str(path))


def codes(machine: Machine) -> list[str]:
    return [notice.code for notice in machine.warnings]


def test_what_a_topology_updater_reports(tmp_path: Path) -> None:
    machine = read(item(zone(1), zone(0, allocatable="30", memory="68719476736")), tmp_path)
    assert [format_cpulist(node.pus) for node in machine.nodes] == ["0-31", "32-63"]
    assert [node.memory_bytes for node in machine.nodes] == [64 * GIB, 64 * GIB]
    assert machine.distances is not None
    assert machine.distances.values == ((10, 21), (21, 10))
    assert format_cpulist(machine.allowed.pus) == "2-63"
    assert machine.origin.kind == "node-resource-topology"
    assert codes(machine) == ["cpus-assumed", "kubelet-reserved", "cores-assumed"]
    assert (machine.packages, machine.l3, machine.chiplets) == ((), (), ())


def test_a_plan_repeats_what_was_assumed(tmp_path: Path) -> None:
    plan = make_plan(read(item(), tmp_path), registry.get("spark").traits, "auto")
    assert [slot.nodes for slot in plan.slots] == [(0,), (1,)]
    assert any("CPU numbers are assumed" in warning for warning in plan.warnings)


def test_its_pods_ask_for_what_the_zones_have(tmp_path: Path) -> None:
    """From one object of Kubernetes to others: the kubelet keeps as much as before."""
    spark = registry.get("spark")
    plan = make_plan(read(item(zone(0, allocatable="30"), zone(1)), tmp_path), spark.traits, "win")
    files = render_k8s(lay_out(plan, spark, THERE, replace(TARGET, image="x", user="1"))).files
    pods = yaml.safe_load_all(files["k8s/pods.yaml"])
    limits = [pod["spec"]["containers"][0]["resources"]["limits"] for pod in pods]
    assert [each["cpu"] for each in limits if "cpu" in each] == ["30", "32"]
    assert yaml.safe_load(files["k8s/kubelet.yaml"])["kubeReserved"]["cpu"] == "2"


@pytest.mark.parametrize(
    ("fields", "warned"),
    [
        ({"attributes": [{"name": "topologyManagerPolicy", "value": "none"}]}, True),
        ({"attributes": [{"name": "topologyManagerPolicy", "value": "single-numa-node"}]}, False),
        ({"topologyPolicies": ["BestEffort"]}, True),
        ({"topologyPolicies": ["SingleNUMANodePodLevel"]}, False),
        ({"topologyPolicies": []}, False),
    ],
)
def test_a_kubelet_without_the_policy(tmp_path: Path, fields: Any, warned: bool) -> None:
    version = "v1alpha1" if "topologyPolicies" in fields else "v1alpha2"
    machine = read(item(**fields, apiVersion=f"topology.node.k8s.io/{version}"), tmp_path)
    assert ("topology-manager-policy" in codes(machine)) is warned


def test_koordinators_cpus(tmp_path: Path) -> None:
    detail = [
        {"id": cpu, "core": cpu % 4, "socket": cpu % 4 // 2, "node": cpu % 4 // 2}
        for cpu in range(8)
    ]
    annotations = {"node.koordinator.sh/cpu-topology": json.dumps({"detail": detail})}
    metadata = {"annotations": annotations}
    machine = read(item(metadata=metadata), tmp_path)
    assert [core.pus for core in machine.cores] == [(0, 4), (1, 5), (2, 6), (3, 7)]
    assert [package.pus for package in machine.packages] == [(0, 1, 4, 5), (2, 3, 6, 7)]
    assert [node.memory_bytes for node in machine.nodes] == [64 * GIB, 64 * GIB]
    assert codes(machine) == []
    machine = read(item(zone(0, "4", "2"), zone(1, "4"), metadata=metadata), tmp_path)
    assert machine.allowed.pus == tuple(range(8))
    [notice] = machine.warnings
    assert (notice.code, "2 CPUs" in notice.message) == ("kubelet-reserved", True)
    assert "which CPUs is unknown" in notice.message


def test_a_list_of_one_and_json(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [item()]}, indent=4))
    assert read_machine(str(path)).summary.pus == 64


@pytest.mark.parametrize(
    ("quantity", "amount"),
    [
        ("2Gi", 2 << 30),
        (2147483648, 2 << 30),
        ("128974848", 128974848),
        ("129e6", 129_000_000),
        ("129M", 129_000_000),
        ("128974848000m", 128974848),
        ("1.5Gi", 3 << 29),
    ],
)
def test_quantities(quantity: Any, amount: int) -> None:
    found = description_of(yaml.safe_dump(item(zone(0, memory=quantity))).encode(), "file")
    assert found is not None
    assert found.memory_bytes == {0: amount}


def lacking(name: str) -> dict[str, Any]:
    shown = zone(0)
    shown["resources"] = [one for one in shown["resources"] if one["name"] != name]
    return item(shown)


@pytest.mark.parametrize(
    ("document", "says"),
    [
        (item({"name": "a", "type": "Socket"}), "no zone of type Node (types: Socket)"),
        (item(zone(0, cpus="many")), "zone node-0, cpu: 'many' is not a quantity"),
        (item(zone(0, cpus="-4")), "'-4' is not a quantity"),
        (item(zone(0, cpus=True)), "'True' is not a quantity"),
        (item(zone(0, cpus="9000")), "over 8192 CPUs"),
        (item(zone(0, cpus="0")), "names no CPU"),
        (item({**zone(0), "costs": [{"name": "node-0", "value": "1e99"}]}), "of 1e+99: Linux has"),
        (item(zone(0, "16", "20")), "zone node-0, cpu: 20 is allocatable, but the capacity is 16"),
        (item(zone(0, memory={"capacity": "1k", "allocatable": "2k"})), "memory: 2000 is allocat"),
        (item(zone(0), zone(0)), "two zones of type Node have one name"),
        (lacking("cpu"), "does not count its CPUs"),
        (item(apiVersion="topology.node.k8s.io/v1beta1"), "apiVersion"),
        (item(zones="none"), "zones: must be a list"),
        ({"kind": "List", "items": [item(), item()]}, "lists 2 objects"),
        (
            item(metadata={"annotations": {"node.koordinator.sh/cpu-topology": "{}"}}),
            "does not list id, core, socket and node",
        ),
    ],
)
def test_refused(document: Any, says: str) -> None:
    content = yaml.safe_dump(document).encode()
    assert read_or_refused(content)
    with pytest.raises(TopologyError) as caught:
        description_of(content, "file")
    assert says in str(caught.value)


HOSTILE = {
    "alias": b"kind: NodeResourceTopology\na: &a [x]\nb: *a\n",
    "deep": b"kind: NodeResourceTopology\na: " + b"[" * 500_000,
    "tag": b"kind: NodeResourceTopology\na: !!python/object/apply:os.system [id]\n",
    "binary": b"kind: NodeResourceTopology\n\xff\xfe",
    "number": b"kind: NodeResourceTopology\na: " + b"9" * 5000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files(name: str) -> None:
    with pytest.raises(TopologyError):
        description_of(HOSTILE[name], "file")
    assert read_or_refused(HOSTILE[name])


def test_what_is_too_large() -> None:
    with pytest.raises(TopologyError, match=r"^file: is over 2 MiB"):
        description_of(b"kind: NodeResourceTopology\n" + b"# \n" * 700_000, "file")
    assert description_of(b"# \n" * 700_000, "file") is None


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damaged_objects_are_read_or_refused(data: st.DataObject) -> None:
    document: Any = copy.deepcopy(item(topologyPolicies=["None"], attributes=[{"name": "x"}]))
    place = document
    while True:  # down to some part of it, which junk replaces
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = data.draw(JUNK)
    assert read_or_refused(json.dumps(document).encode())
