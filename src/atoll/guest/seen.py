"""Whether the machine that Linux shows in a guest is the one that the topology file describes.

QEMU and the kernel accept much that they then do not show (an EPYC without topoext has no L3
domains, an L3 that lies across nodes is cut). So every guest is looked at once, before any
command runs. Read from sysfs (Documentation/admin-guide/cputopology.rst); pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable

from atoll.guest.topology import Place, Topology

# Files that one grep prints as PATH:LINE. A CPU that is offline has no topology/.
FILES = (
    "/sys/devices/system/cpu/cpu[0-9]*/topology/package_cpus_list",
    "/sys/devices/system/cpu/cpu[0-9]*/topology/die_cpus_list",
    "/sys/devices/system/cpu/cpu[0-9]*/topology/core_cpus_list",
    "/sys/devices/system/cpu/cpu[0-9]*/cache/index3/shared_cpu_list",
    "/sys/devices/system/node/node[0-9]*/cpulist",
    "/sys/devices/system/node/node[0-9]*/distance",
)
SCRIPT = f"/run/guest/busybox grep -H ^ {' '.join(FILES)} 2>/dev/null; true"


def cpu_list(text: str) -> frozenset[int]:
    """The kernel's list format: 0-3,8."""
    found: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        low, _, high = part.partition("-")
        found.update(range(int(low), int(high or low) + 1))
    return frozenset(found)


def differences(topology: Topology, said: str) -> list[str]:
    """What the output of SCRIPT shows that the topology does not have; empty if nothing."""
    values: dict[str, dict[int, str]] = {path.rpartition("/")[2]: {} for path in FILES}
    for line in said.splitlines():
        path, _, value = line.partition(":")
        number = re.search(r"/(?:cpu|node)(\d+)/", path)
        if number:
            values[path.rpartition("/")[2]][int(number[1])] = value

    def shown(name: str) -> set[frozenset[int]]:
        return {cpu_list(value) for value in values[name].values()}

    expected = topology.online()

    def built(by: Callable[[Place], Hashable]) -> set[frozenset[int]]:
        groups: dict[Hashable, set[int]] = {}
        for cpu, place in expected.items():
            groups.setdefault(by(place), set()).add(cpu)
        return {frozenset(group) for group in groups.values()}

    online = frozenset(values["core_cpus_list"])
    l3 = set() if topology.hide_l3 else built(lambda p: (p.package, p.l3))
    compared = [
        ("online CPUs", {frozenset(expected)}, {online}),
        ("packages", built(lambda p: p.package), shown("package_cpus_list")),
        ("cores", built(lambda p: (p.package, p.l3, p.core)), shown("core_cpus_list")),
        ("L3 domains", l3, shown("shared_cpu_list")),
    ]
    if topology.dies > 1:
        dies = built(lambda p: (p.package, p.die))
        compared.append(("dies", dies, shown("die_cpus_list")))
    found = [
        f"{what} {_sets(there)} instead of {_sets(wanted)}"
        for what, wanted, there in compared
        if wanted != there
    ]
    nodes = range(len(topology.memory_mib))
    for node in nodes:
        cpus = frozenset(cpu for cpu, place in expected.items() if place.node == node)
        there = cpu_list(values["cpulist"].get(node, ""))
        distances = [str(topology.distance(node, other)) for other in nodes]
        if node not in values["cpulist"]:
            found.append(f"no node {node}")
        elif there != cpus:
            found.append(f"CPUs of node {node} {_sets({there})} instead of {_sets({cpus})}")
        elif values["distance"].get(node, "").split() != distances:
            found.append(f"distances of node {node} {values['distance'].get(node)}")
    return found


def _sets(groups: set[frozenset[int]]) -> str:
    ordered = sorted(sorted(group) for group in groups)
    return " | ".join(",".join(map(str, group)) or "none" for group in ordered) or "none"
