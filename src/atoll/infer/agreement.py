"""Whether a second matrix contradicts the groups that a first one shows.

It may be silent: bandwidth often shows no chiplets where latency does. It contradicts them in two
ways. Its own groups may cross them: then at most one of the two is right. Or pairs inside the
groups may be the far ones, by more than noise gives to means of that many pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from atoll.infer.confidence import Sureness, noise_bound

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from atoll.infer.hierarchy import Floats, Group

_CERTAIN_ERRORS = 2.0  # standard errors of the means that noise may explain


@dataclass(frozen=True)
class Second:
    """The second matrix: its cleaned costs and what it shows by itself."""

    name: str
    cost: Floats
    groups: tuple[Group, ...]
    sureness: float
    least_step: float  # log ratio that counts as a difference


def contradiction(
    groups: Sequence[Group], second: Second, *, cores: Sequence[Group], packages: Sequence[Group]
) -> Sureness:
    """How surely `second` contradicts `groups`. Pairs of one core do not count, since its threads
    share what they move, nor do pairs of two packages."""
    if len(groups) < 2:
        return Sureness(0.0)
    if any(_cross(own, other) for own in groups for other in second.groups):
        words = f"{second.name} shows other groups, which cross these"
        return Sureness(second.sureness, (words,))
    size = len(second.cost)
    inside = _same(groups, size)
    across = ~inside & (_same(packages, size) if packages else True)
    member = np.isin(np.arange(size), [pu for group in groups for pu in group])
    across &= member[:, None] & member[None, :]
    inside &= ~_same(cores, size)
    near, far = (second.cost[np.triu(mask, 1)] for mask in (inside, across))
    if not len(near) or not len(far):
        return Sureness(0.0)
    allowed = _CERTAIN_ERRORS * noise_bound(second.cost) * math.sqrt(1 / len(near) + 1 / len(far))
    reversed_by = float(near.mean() - far.mean()) - allowed
    if not reversed_by > 0:
        return Sureness(0.0)
    times = reversed_by / second.least_step
    value = times**2 / (1 + times**2)
    words = (
        f"{second.name} contradicts: pairs within a group are the far ones, by "
        f"{math.expm1(near.mean() - far.mean()):.0%}"
    )
    return Sureness(value, (words,))


def _cross(one: Group, other: Group) -> bool:
    a, b = set(one), set(other)
    return not (a <= b or b <= a or a.isdisjoint(b))


def _same(groups: Sequence[Group], size: int) -> npt.NDArray[np.bool_]:
    same = np.zeros((size, size), dtype=bool)
    for group in groups:
        same[np.ix_(group, group)] = True
    return same
