"""Classifies the nested groups: threads of a core, chiplets, quadrants, packages.

The grouping is measured; its meaning often is not. Two groups of 8 cores may be two CCDs of one
package or two sockets: the matrix has the same shape. Priors then decide, each from published
measurements, and the confidence reflects it. docs/inference.md lists them with their sources.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atoll.infer.hierarchy import Group

WIDE_SMT_NS = 13.0  # threads by 4 or 8
MANY_WIDE_SMT_NS = 17.0  # if there are too many equal groups for a desktop's two CCDs
_MANY_CORES = 8
# Within an L3 complex 15 to 27 ns; within a package's ring or mesh 30 to 60.
_COMPLEX_NS = 27.5
_STEEP = 3.4  # across over within: 4 and more between L3 complexes, 2 to 3.3 between sockets
_FEW_CORES = 4  # L3 complexes of Zen to Zen 2 and most clusters; no server socket since 2012
_SMALL_CORES = 6  # clusters of phones and desktops; packages this small had SMT
_LARGE_CORES = 16  # no complex or cluster is larger, except the tiles of Sapphire Rapids
_MANY = 4  # more packages than this are rare
# A link lies between sockets: 180 ns and more if an I/O die is already in between.
_SOCKET_NS = 160.0
_SOCKET_RATIO = 1.35
_LEAST_LINK = 1.5  # across over within, if packages have no chiplets
_LEAST_LINK_NS = 90.0  # two cache agents and a link; the fastest known pair of sockets has 100
_LEAST_CHIPLETS = 3  # of few cores, in a machine with several packages; two are one die of Zen
_ALIKE = 1.25  # packages of one machine differ in size by no more, unless cores are disabled


@dataclass(frozen=True)
class Step:
    """One level as measured. Latencies are in ns, or in 1/(GB/s) if `in_ns` is false."""

    groups: tuple[Group, ...]
    cores: tuple[int, ...]  # of each group
    within: float
    across: float


def is_wide_smt(step: Step) -> bool:
    """Whether the groups are the threads of cores with 4 or 8 threads each."""
    sizes = {len(group) for group in step.groups}
    bound = MANY_WIDE_SMT_NS if len(step.groups) >= _MANY_CORES else WIDE_SMT_NS
    return sizes <= {4, 8} and step.within < bound and step.across > 1.5 * step.within


def package_odds(step: Step, others: int, *, in_ns: bool) -> float:
    """The log odds that the first groups above cores are packages rather than chiplets.

    `others`: cores in no group.
    """
    largest = max(step.cores)
    ratio = step.across / step.within
    odds = 3.0 * math.log(_STEEP / ratio) if in_ns else 0.0
    if in_ns:
        odds += 9.0 * math.log(step.within / _COMPLEX_NS)
    elif ratio < 1.3:
        odds -= 3.0  # a link between sockets costs more than that
    if largest > _LARGE_CORES:
        odds += 2.5
    elif median_low(step.cores) <= _FEW_CORES or (
        largest <= _SMALL_CORES and all(map(_has_no_threads, step.groups, step.cores))
    ):
        odds -= 6.0
    if len(step.groups) > _MANY:
        odds -= 3.0 if largest > _LARGE_CORES else 6.0
    elif len(step.groups) > 2:
        odds -= 1.5
    if max(step.cores) > _ALIKE * min(step.cores):
        odds -= 4.0
    if others:
        odds -= 2.0
    if ratio < _LEAST_LINK or (in_ns and step.across < _LEAST_LINK_NS):
        return min(odds, -2.0)
    return odds


def _has_no_threads(group: Group, cores: int) -> bool:
    return len(group) == cores


def are_packages_above(step: Step, chiplets: Step, *, in_ns: bool) -> bool:
    """Whether groups of chiplets are packages rather than quadrants or dies of one package."""
    held = [sum(set(c) <= group for c in chiplets.groups) for group in map(set, step.groups)]
    if max(held) < _LEAST_CHIPLETS and median_low(chiplets.cores) <= _FEW_CORES:
        return False
    if step.across < _SOCKET_RATIO * step.within:
        return False
    if max(step.cores) > 1.5 * _ALIKE * min(step.cores):
        return False
    return step.across >= _SOCKET_NS if in_ns else True


def completed(groups: Sequence[Group], everyone: Sequence[int]) -> tuple[Group, ...] | None:
    """`groups` plus the remaining PUs as one more group if they are of that size; otherwise None.

    If all lines are homed in the other socket, a socket's own pairs are as slow as those across,
    and only one socket shows. Packages of a machine are alike.
    """
    inside = {pu for group in groups for pu in group}
    rest = tuple(pu for pu in everyone if pu not in inside)
    if not rest:
        return tuple(groups)
    sizes = [len(group) for group in groups]
    if len(rest) <= _ALIKE * max(sizes) and min(sizes) <= _ALIKE * len(rest):
        return (*groups, rest)
    return None
