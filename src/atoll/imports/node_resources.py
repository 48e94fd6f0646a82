"""A NodeResourceTopology of Kubernetes, YAML or JSON, as `kubectl get -o yaml` prints it. Pure.

A zone of type Node counts a NUMA node's CPUs and memory, and has its distances to the others.
Which CPUs they are, and their cores, caches and packages, the object does not say. Only
Koordinator's agent adds CPUs and cores, in an annotation; otherwise numbers are assumed, and a
notice says so.

Sources: k8stopologyawareschedwg/noderesourcetopology-api, v1alpha1 and v1alpha2;
node-feature-discovery, docs/usage/nfd-topology-updater.md (what a zone counts, and the attributes);
Koordinator, docs/proposals, fine-grained CPU orchestration (the annotation);
kubernetes.io, 'Quantity'.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from atoll.errors import TopologyError
from atoll.imports.description import MOST_CPUS, Cpu, Description
from atoll.schema.machine import Notice
from atoll.schema.size import gib
from atoll.schema.yaml_text import parse_yaml

_KIND = "NodeResourceTopology"
_VERSIONS = ("topology.node.k8s.io/v1alpha1", "topology.node.k8s.io/v1alpha2")
_KOORDINATOR = "node.koordinator.sh/cpu-topology"
_QUANTITY = re.compile(
    r"(\d{1,18}(?:\.\d{1,9})?)(?:([KMGTPE])i|([numkMGTPE])|e(\d{1,2}))?", re.ASCII
)
_POWERS = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_ALIGNING = ("single-numa-node", "restricted", "SingleNUMANode", "Restricted")


_ASSUMED = Notice(
    code="cpus-assumed",
    message="a NodeResourceTopology counts CPUs and does not name them, their cores, caches or "
    "packages; CPU numbers are assumed, node by node, so use them only with 'atoll render --to "
    "k8s', where the kubelet chooses the CPUs",
)


@dataclass(frozen=True, slots=True)
class _Zone:
    """What pods may have of a NUMA node, and what it has."""

    name: str
    costs: Mapping[str, int]
    cpus: int
    all_cpus: int
    memory_bytes: int
    all_memory_bytes: int


def read_node_resources(content: bytes) -> Description:
    """Raises TopologyError."""
    try:
        item = _only_object(parse_yaml(content))
    except ValueError as fault:
        raise TopologyError(str(fault)) from None
    found = _list(item, "zones")
    zones = [_zone(zone) for zone in found if zone.get("type") == "Node"]
    if len({zone.name for zone in zones}) < len(zones):
        raise TopologyError("two zones of type Node have one name")
    annotations = item.get("metadata") or {}
    annotations = annotations.get("annotations") or {} if isinstance(annotations, dict) else {}
    detail = annotations.get(_KOORDINATOR) if isinstance(annotations, dict) else None
    if not zones and detail is None:
        kinds = ", ".join(sorted({str(zone.get("type"))[:30] for zone in found}))
        raise TopologyError(f"has no zone of type Node (types: {kinds or 'none'})")
    numbers = _numbers(zones)
    notices = [*_about_policy(item)]
    kept: list[int] = []
    if detail is not None:
        cpus = _koordinators(detail)
    else:
        cpus, kept = _assumed(zones, numbers)
        notices.append(_ASSUMED)
    notices += _about_reserved(zones, named=detail is not None)
    memory = {numbers[zone.name]: zone.memory_bytes for zone in zones}
    return Description(
        kind="node-resource-topology",
        cpus=tuple(cpus),
        kept=tuple(kept),
        memory_bytes=dict(sorted(memory.items())) if any(memory.values()) else {},
        distances=_distances(zones, numbers),
        notices=tuple(notices),
    )


def _only_object(document: Any) -> dict[str, Any]:
    if isinstance(document, dict) and isinstance(document.get("items"), list):
        items = document["items"]
        if len(items) != 1:
            raise TopologyError(
                f"lists {len(items)} objects; write one with 'kubectl get noderesourcetopologies "
                "NAME -o yaml'"
            )
        document = items[0]
    if not isinstance(document, dict) or document.get("kind") != _KIND:
        raise TopologyError(f"is not a {_KIND}")
    version = document.get("apiVersion")
    if version not in _VERSIONS:
        raise TopologyError(
            f"apiVersion {str(version)[:60]!r}: Atoll reads {' and '.join(_VERSIONS)}"
        )
    return document


def _list(item: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    value = item.get(name) or []
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise TopologyError(f"{name}: must be a list of objects")
    return value


def _zone(zone: dict[str, Any]) -> _Zone:
    name = str(zone.get("name"))[:60]
    resources = {str(one.get("name")): one for one in _list(zone, "resources")}

    def amounts(resource: str) -> tuple[int, int]:
        """What pods may have, and all."""
        given, where = resources.get(resource, {}), f"zone {name}, {resource}"
        whole = _quantity(given.get("capacity", 0), where)
        usable = _quantity(given.get("allocatable", whole), where)
        if usable > whole:
            raise TopologyError(f"{where}: {usable} is allocatable, but the capacity is {whole}")
        return usable, whole

    if "cpu" not in resources:
        raise TopologyError(f"zone {name} does not count its CPUs (resource cpu)")
    cpus, all_cpus = amounts("cpu")
    memory_bytes, all_memory_bytes = amounts("memory")
    return _Zone(
        name=name,
        costs={
            str(one.get("name"))[:60]: _quantity(one.get("value"), f"zone {name}, costs")
            for one in _list(zone, "costs")
        },
        cpus=cpus,
        all_cpus=all_cpus,
        memory_bytes=memory_bytes,
        all_memory_bytes=all_memory_bytes,
    )


def _quantity(value: Any, where: str) -> int:
    """A Quantity of Kubernetes, rounded down."""
    match = _QUANTITY.fullmatch(str(value))
    if match is None or isinstance(value, bool):
        raise TopologyError(f"{where}: {str(value)[:40]!r} is not a quantity")
    number, binary, decimal, exponent = match.groups()
    if binary:
        return int(Decimal(number) * 1024 ** ("KMGTPE".index(binary) + 1))
    return int(Decimal(number).scaleb(_POWERS[decimal] if decimal else int(exponent or 0)))


def _numbers(zones: list[_Zone]) -> dict[str, int]:
    """The node's number by the zone's name: 'node-1' is 1. Without numbers, in order."""
    found = [re.search(r"(\d{1,6})$", zone.name) for zone in zones]
    numbers = [int(match[1]) for match in found if match]
    if len(set(numbers)) < len(zones):
        numbers = list(range(len(zones)))
    return {zone.name: number for zone, number in zip(zones, numbers, strict=True)}


def _assumed(zones: list[_Zone], numbers: Mapping[str, int]) -> tuple[list[Cpu], list[int]]:
    """Its CPUs, numbered node by node, and those of them that the kubelet keeps: the first."""
    if sum(zone.all_cpus for zone in zones) > MOST_CPUS:
        raise TopologyError(f"counts over {MOST_CPUS} CPUs, the most that Linux has")
    cpus: list[Cpu] = []
    kept: list[int] = []
    for zone in sorted(zones, key=lambda zone: numbers[zone.name]):
        first = len(cpus)
        cpus += [Cpu(first + n, node=numbers[zone.name]) for n in range(zone.all_cpus)]
        kept += range(first, first + zone.all_cpus - zone.cpus)
    return cpus, kept


def _koordinators(detail: Any) -> list[Cpu]:
    """Its agent lists every CPU with its core, which it numbers within the socket or beyond."""
    try:
        document = json.loads(detail)
        return [
            Cpu(_whole(one, "id"), _whole(one, "core"), _whole(one, "socket"), _whole(one, "node"))
            for one in document["detail"]
        ]
    except (ValueError, TypeError, KeyError):
        raise TopologyError(
            f"annotation {_KOORDINATOR}: does not list id, core, socket and node"
        ) from None


def _whole(one: Mapping[str, Any], name: str) -> int:
    value = one[name]
    if type(value) is not int or value < 0:
        raise ValueError(value)
    return value


def _distances(zones: list[_Zone], numbers: Mapping[str, int]) -> dict[int, tuple[int, ...]]:
    """Empty if a zone leaves out a distance."""
    ordered = sorted(zones, key=lambda zone: numbers[zone.name])
    names = [zone.name for zone in ordered]
    if any(not zone.costs.keys() >= set(names) for zone in ordered):
        return {}
    return {numbers[zone.name]: tuple(zone.costs[name] for name in names) for zone in ordered}


def _about_reserved(zones: list[_Zone], *, named: bool) -> list[Notice]:
    """`named`: the object names its CPUs, but not which of them the kubelet keeps."""
    cpus = sum(zone.all_cpus - zone.cpus for zone in zones)
    memory = sum(zone.all_memory_bytes - zone.memory_bytes for zone in zones)
    if not cpus and not memory:
        return []
    effect = "no plan uses them"
    if named and cpus:
        effect = "which CPUs is unknown, so plans use all; leave some out with --reserve-cores"
    return [
        Notice(
            code="kubelet-reserved",
            message=f"the kubelet keeps {cpus} CPUs and {gib(memory)} from pods; {effect}",
        )
    ]


def _about_policy(item: dict[str, Any]) -> list[Notice]:
    """v1alpha2 has it as an attribute, v1alpha1 as a word of a list."""
    attributes = _list(item, "attributes")
    stated = [one.get("value") for one in attributes if one.get("name") == "topologyManagerPolicy"]
    older = item.get("topologyPolicies")
    stated += older if isinstance(older, list) else []
    policy = str(stated[0])[:40] if stated else ""
    if not policy or policy.startswith(_ALIGNING):
        return []
    return [
        Notice(
            code="topology-manager-policy",
            message=f"the kubelet's topology manager has the policy {policy}, which may spread "
            "a pod over nodes; set it as k8s/kubelet.yaml of 'atoll render --to k8s' does",
        )
    ]
