"""`atoll topo` in guests of every topology, beside the machine that was built and beside hwloc's,
numactl's, util-linux's and the kernel's own answers there.

What must come out is worked out from the topology file (tests/vm/expected.py), and the counts
stand here once more, written by hand.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from atoll.guest import topology
from atoll.guest.guest import Guest
from atoll.guest.seen import cpu_list
from tests.vm import expected
from tests.vm.proof import TOPOLOGIES, every_topology, proof

# (packages, nodes, chiplets, L3, cores, PUs), where the chiplets are known from
COUNTS = {
    "milan2": ((2, 2, 8, 8, 16, 16), "l3"),
    "milan4": ((2, 4, 8, 8, 16, 16), "l3"),
    "milan8": ((2, 8, 8, 8, 16, 16), "l3"),
    "smt": ((2, 2, 4, 4, 8, 16), "l3"),
    "short": ((2, 2, 4, 4, 15, 15), "l3"),
    "spr4": ((2, 4, 4, 4, 16, 16), "l3"),
    "cxl": ((2, 4, 8, 8, 16, 16), "l3"),
    "hidden": ((1, 1, 0, 0, 8, 8), ""),
    "siblings": ((2, 2, 4, 4, 8, 16), "l3"),
}


def test_every_topology_is_proved() -> None:
    assert set(topology.names()) == set(TOPOLOGIES) == set(COUNTS)


@every_topology
def test_topo_is_the_machine_that_was_built(guest: Guest) -> None:
    built, found = guest.topology, proof(guest)
    topo, layout = found.topo, found.layout
    counts, source = COUNTS[built.name]
    names = ("packages", "numa_nodes", "chiplets", "l3", "cores", "pus")
    assert tuple(topo["summary"][name] for name in names) == counts
    assert topo["origin"]["kind"] == "live"
    assert topo["smt"] == (built.threads > 1)
    assert sorted(tuple(core["pus"]) for core in topo["cores"]) == sorted(layout.cores)
    for core in topo["cores"]:
        assert {layout.node_of[pu] for pu in core["pus"]} == {core["node"]}
        assert {layout.package_of[pu] for pu in core["pus"]} == {core["package"]}

    assert [frozenset(chiplet["pus"]) for chiplet in topo["chiplets"]] == sorted(
        layout.chiplets, key=lambda pus: _first_core(topo, pus)
    )
    assert {chiplet["source"] for chiplet in topo["chiplets"]} == {source} - {""}
    assert layout.chiplet_source == source
    for index, chiplet in enumerate(topo["chiplets"]):
        assert chiplet["index"] == index
        assert {layout.package_of[pu] for pu in chiplet["pus"]} == {chiplet["package"]}
        assert {layout.node_of[pu] for pu in chiplet["pus"]} == {chiplet["node"]}

    # In hwloc's order a package's memory without CPUs comes before the next package.
    nodes = _by_number(topo["nodes"])
    assert [node["os_index"] for node in nodes] == list(range(len(built.memory_mib)))
    for node, mib in zip(nodes, built.memory_mib, strict=True):
        assert node["pus"] == [pu for pu in layout.cpus if layout.node_of[pu] == node["os_index"]]
        # Less what the kernel takes at boot, most of it on node 0.
        assert mib - 96 <= node["memory_bytes"] / 2**20 <= mib
    assert topo["allowed"] == {
        "pus": list(layout.cpus),
        "nodes": list(range(len(nodes))),
        "memory_max_bytes": None,
    }
    assert topo["offline_cpus"] == sorted(built.offline)
    if len(nodes) > 1:
        rows = zip(topo["distances"]["nodes"], topo["distances"]["values"], strict=True)
        assert {
            (one, other): value
            for one, row in rows
            for other, value in zip(topo["distances"]["nodes"], row, strict=True)
        } == layout.distances


def _first_core(topo: Mapping[str, Any], pus: frozenset[int]) -> int:
    return min(int(core["index"]) for core in topo["cores"] if pus.issuperset(core["pus"]))


def _by_number(nodes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(nodes, key=lambda node: int(node["os_index"]))


@every_topology
def test_hwloc_counts_the_same(guest: Guest) -> None:
    found = proof(guest)
    kinds = {"package": "packages", "numa": "numa_nodes", "l3": "l3", "core": "cores", "pu": "pus"}
    info = _hwloc_info(found.said["hwloc-info"])
    for kind, name in kinds.items():
        ours = found.topo["summary"][name]
        counted = int(found.said[f"hwloc-calc -N {kind} all"] or 0)
        assert (kind, counted) == (kind, ours)
        assert info.get(kind, 0) == ours


def _hwloc_info(text: str) -> dict[str, int]:
    """Objects by kind: ' depth 2:           8 L3Cache (type #6)'."""
    names = {"Package": "package", "NUMANode": "numa", "L3Cache": "l3", "Core": "core", "PU": "pu"}
    lines = re.findall(r"depth -?\d+:\s+(\d+) (\w+)", text)
    return {names[kind]: int(count) for count, kind in lines if kind in names}


@every_topology
def test_numactl_shows_the_same_nodes(guest: Guest) -> None:
    found = proof(guest)
    said = found.said["numactl --hardware"]
    cpus = re.findall(r"node (\d+) cpus:([ \d]*)", said)
    assert [(int(node), [int(cpu) for cpu in listed.split()]) for node, listed in cpus] == [
        (node["os_index"], node["pus"]) for node in _by_number(found.topo["nodes"])
    ]
    sizes = re.findall(r"node \d+ size: (\d+) MB", said)
    assert [int(size) for size in sizes] == [
        node["memory_bytes"] // 2**20 for node in _by_number(found.topo["nodes"])
    ]
    rows = re.findall(r"^ +(\d+): +([ \d]+)$", said, re.MULTILINE)
    theirs = {
        (int(one), other): int(value)
        for one, row in rows
        for other, value in enumerate(row.split())
    }
    distances = found.topo["distances"] or {"nodes": [0], "values": [[topology.LOCAL_DISTANCE]]}
    assert theirs == {
        (one, other): value
        for one, row in zip(distances["nodes"], distances["values"], strict=True)
        for other, value in zip(distances["nodes"], row, strict=True)
    }


@every_topology
def test_lscpu_shows_the_same_cores(guest: Guest) -> None:
    found = proof(guest)
    said = found.said["lscpu -p=CPU,NODE,SOCKET"]
    theirs = {
        tuple(map(int, line.split(","))) for line in said.splitlines() if not line.startswith("#")
    }
    assert theirs == {
        (pu, core["node"], core["package"]) for core in found.topo["cores"] for pu in core["pus"]
    }


@every_topology
def test_sysfs_shows_the_same_l3_domains(guest: Guest) -> None:
    found = proof(guest)
    said = next(text for tool, text in found.said.items() if tool.startswith("grep"))
    files: dict[str, dict[str, str]] = defaultdict(dict)
    for line in said.splitlines():
        path, _, text = line.partition(":")
        folder, _, name = path.rpartition("/")
        files[folder][name] = text
    domains = {
        cpu_list(entry["shared_cpu_list"])
        for folder, entry in files.items()
        if "/cache/index" in folder and entry.get("level") == "3"
    }
    assert domains == {frozenset(l3["pus"]) for l3 in found.topo["l3"]}


def test_what_is_expected_of_a_topology_file() -> None:
    """The derivation itself, beside layouts written by hand."""
    short = expected.layout(topology.load("short"))
    assert sorted(map(len, short.chiplets)) == [3, 4, 4, 4]
    siblings = expected.layout(topology.load("siblings"))
    assert all(len(core) == 2 for core in siblings.cores)
    assert any(one + 1 != other for one, other in siblings.cores)
    cxl = expected.layout(topology.load("cxl"))
    assert (cxl.home_nodes, cxl.memory_nodes) == ((0, 1), (0, 1, 2, 3))
