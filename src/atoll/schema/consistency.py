"""Checks a machine file for contradictions. Pure.

The native library never returns contradictions, but a machine file may have been edited by hand,
and users of a `Machine` rely on its indices being valid.
"""

from __future__ import annotations

from collections.abc import Iterator

from atoll.schema.cpulist import format_cpulist
from atoll.schema.machine import Machine


def contradiction(machine: Machine) -> str:
    """The first contradiction as text; '' if there is none."""
    return next(_contradictions(machine), "")


def _contradictions(machine: Machine) -> Iterator[str]:
    numbered = ("packages", "dies", "nodes", "l3", "cores", "chiplets")
    for name in numbered:
        for place, item in enumerate(getattr(machine, name)):
            if item.index != place:
                yield f"{name}.{place}: its index is {item.index}, not its place in the list"
    known = {name: range(len(getattr(machine, name))) for name in numbered}
    nodes = [node.os_index for node in machine.nodes]
    if len(set(nodes)) < len(nodes):
        yield "nodes: an os_index occurs twice"
    if machine.memory_bytes < 0:
        yield "memory_bytes: is negative"
    pus = set(machine.pus)
    if not pus:
        yield "cores: there are no PUs"
    if len(pus) < len(machine.pus):
        yield "cores: a PU is in two cores"
    for place, core in enumerate(machine.cores):
        if not core.pus or core.pus != tuple(sorted(core.pus)) or core.pus[0] < 0:
            yield f"cores.{place}: its PUs are not in order, or it has none"
        for index, name in ((core.package, "packages"), (core.die, "dies"), (core.l3, "l3")):
            if index is not None and index not in known[name]:
                yield f"cores.{place}: {name} has no index {index}"
        if core.node is not None and core.node not in nodes:
            yield f"cores.{place}: there is no node {core.node}"
    for name in ("packages", "dies", "nodes", "l3", "caches"):
        for place, item in enumerate(getattr(machine, name)):
            if not pus.issuperset(item.pus):
                yield f"{name}.{place}: has PUs that no core has"
    for place, node in enumerate(machine.nodes):
        if node.memory_bytes < 0:
            yield f"nodes.{place}: memory_bytes is negative"
        if node.package is not None and node.package not in known["packages"]:
            yield f"nodes.{place}: packages has no index {node.package}"
    yield from _about_chiplets(machine)
    if machine.distances is not None:
        size = len(machine.distances.nodes)
        rows = machine.distances.values
        if len(rows) != size or any(len(row) != size for row in rows):
            yield f"distances: {size} nodes need {size} rows of {size} values"
    if not pus.issuperset(machine.allowed.pus):
        stray = format_cpulist(set(machine.allowed.pus) - pus)
        yield f"allowed: this machine has no CPU {stray}"
    if not set(nodes).issuperset(machine.allowed.nodes):
        yield "allowed: names a node that does not exist"


def _about_chiplets(machine: Machine) -> Iterator[str]:
    taken: set[int] = set()
    for place, chiplet in enumerate(machine.chiplets):
        if not all(0 <= core < len(machine.cores) for core in chiplet.cores):
            yield f"chiplets.{place}: names a core that does not exist"
            return
        members = [machine.cores[core] for core in chiplet.cores]
        if not members or chiplet.pus != tuple(sorted(pu for core in members for pu in core.pus)):
            yield f"chiplets.{place}: its PUs are not those of its cores"
        if not taken.isdisjoint(chiplet.cores):
            yield f"chiplets.{place}: has a core that another chiplet has"
        taken |= set(chiplet.cores)
        if {core.package for core in members} - {chiplet.package}:
            yield f"chiplets.{place}: its cores are not in its package"
