"""The latencies of a real machine, as `atoll measure` found them, for simulated caches. Pure.

Medians of a profile: of its cache curve for L2 and L3, of its core-to-core matrix for lines from
other caches, of its node matrix for memory. What it lacks stays the catalog's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

from atoll.errors import UsageError
from atoll.guest.topology import Topology

if TYPE_CHECKING:
    from atoll.schema.profile import Profile

_CURVE = {2: "l2", 3: "own_l3"}


def with_latencies(topology: Topology, profile: Profile) -> Topology:
    """Raises UsageError if the profile has none, or those of an emulated CPU."""
    if profile.emulated:
        raise UsageError("the profile is that of an emulated CPU, whose latencies mean nothing")
    values: defaultdict[str, list[float]] = defaultdict(list)
    for name, ns in _figures(profile):
        values[name].append(ns)
    if not values:
        raise UsageError("the profile has no latencies; see atoll measure --only")
    found = {name: median(each) for name, each in values.items()}
    about = f"{topology.about}, latencies measured on {profile.machine_title}"
    return replace(topology, about=about, latency_ns=tuple(found.items()))


def _figures(profile: Profile) -> Iterator[tuple[str, float]]:
    for curve in profile.caches:
        for level in curve.levels:
            if level.level in _CURVE:
                yield _CURVE[level.level], level.latency_ns
    yield from _from_caches(profile)
    yield from _from_memory(profile)


def _from_caches(profile: Profile) -> Iterator[tuple[str, float]]:
    matrix, inferred = profile.core_latency_cas_ns, profile.inference
    if matrix is None or inferred is None:
        return
    chiplet = {pu: number for number, pus in enumerate(inferred.chiplets) for pu in pus}
    package = {pu: number for number, pus in enumerate(inferred.packages) for pu in pus}
    for one, row in zip(matrix.pus, matrix.values, strict=True):
        for other, ns in zip(matrix.pus, row, strict=True):
            if ns is None:
                continue
            if package.get(one) != package.get(other):
                yield "far_cache", ns
            elif chiplet.get(one) != chiplet.get(other):
                yield "other_chiplet", ns
                yield "near_cache", ns


def _from_memory(profile: Profile) -> Iterator[tuple[str, float]]:
    """The profile does not say which node is on which package: they follow each other."""
    matrix = profile.nodes
    if matrix is None:
        return
    packages = len(profile.inference.packages) if profile.inference else 0
    per_package = len(matrix.cpu_nodes) // max(packages, 1)
    for at, row in enumerate(matrix.latency_ns):
        for node, figure in zip(matrix.memory_nodes, row, strict=True):
            if figure is None or node not in matrix.cpu_nodes:
                continue
            home = matrix.cpu_nodes.index(node)
            same = home // per_package == at // per_package
            yield (
                "local_memory" if home == at else "near_memory" if same else "far_memory",
                figure.value,
            )
