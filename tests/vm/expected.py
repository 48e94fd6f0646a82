"""The machine that Linux must show in a guest, worked out from the guest's topology file.

Pure, and without a call to `atoll`: this is what Atoll's answers are compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from atoll.guest.topology import Place, Topology
from tests.vm.landing import Layout


def layout(topology: Topology) -> Layout:
    """The CPUs that are online, and what they belong to."""
    online = topology.online()

    def split(
        by: Callable[[Place], Hashable], within: Callable[[Place], bool]
    ) -> list[frozenset[int]]:
        parts: dict[Hashable, set[int]] = {}
        for cpu, place in online.items():
            if within(place):
                parts.setdefault(by(place), set()).add(cpu)
        return [frozenset(part) for part in parts.values()]

    core_of = {cpu: (place.package, place.l3, place.core) for cpu, place in online.items()}
    cores: dict[Hashable, list[int]] = {}
    for cpu in sorted(online):
        cores.setdefault(core_of[cpu], []).append(cpu)

    def is_chiplet(part: frozenset[int], package: frozenset[int]) -> bool:
        return part < package and len({core_of[cpu] for cpu in part}) >= 2

    chiplets: list[frozenset[int]] = []
    sources: set[str] = set()
    for package in range(topology.packages):
        inside = lambda place, package=package: place.package == package  # noqa: E731
        whole = frozenset(cpu for cpu, place in online.items() if place.package == package)
        candidates = {
            "l3": [] if topology.hide_l3 else split(lambda place: place.l3, inside),
            "die": split(lambda place: place.die, inside),
            "sub-numa": split(lambda place: place.node, inside),
        }
        for source, parts in candidates.items():
            found = [part for part in parts if is_chiplet(part, whole)]
            if found:
                chiplets += found
                sources.add(source)
                break
    return Layout(
        cores=tuple(map(tuple, cores.values())),
        node_of={cpu: place.node for cpu, place in online.items()},
        package_of={cpu: place.package for cpu, place in online.items()},
        chiplets=tuple(sorted(chiplets, key=min)),
        chiplet_source=next(iter(sources), ""),
        memory_nodes=tuple(n for n, mib in enumerate(topology.memory_mib) if mib),
        distances={
            (one, other): topology.distance(one, other)
            for one in range(len(topology.memory_mib))
            for other in range(len(topology.memory_mib))
        },
    )
