"""Proposes candidate groups: two trees by average linkage, and flat partitions by spectrum.

atoll.infer.evidence decides which candidates are real. There are three methods, since each finds
groups that the others miss:
- average linkage (Sokal and Michener 1958) on the costs: exact if the contrast is well above
  the noise, with each branch at its own height;
- the same on the profiles (how a PU sees all others): the noise of single pairs averages out
  over a whole row;
- the leading eigenvectors of the centred cost, as in spectral partitioning, after which members
  move to the group to which they are closest on average. This finds many groups whose contrast is
  below the noise of one pair, such as Intel's tiles in bandwidth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Labels = npt.NDArray[np.intp]

Group = tuple[int, ...]
_ROUNDS = 20  # of moving members; three or four usually suffice


def average_linkage(cost: Floats) -> list[tuple[Group, int]]:
    """All groups from 2 members up to all, each with the index of the next enclosing group (-1:
    none). Children precede their parents."""
    size = len(cost)
    distance = cost.copy()
    np.fill_diagonal(distance, np.inf)
    members: list[Group] = [(i,) for i in range(size)]
    made_at = [-1] * size
    weight = np.ones(size)
    nearest = distance.argmin(axis=1) if size else np.zeros(0, dtype=np.intp)
    reach = distance[np.arange(size), nearest]
    groups: list[Group] = []
    parents: list[int] = []
    for step in range(size - 1):
        a = int(reach.argmin())
        b = int(nearest[a])
        for child in (made_at[a], made_at[b]):
            if child >= 0:
                parents[child] = step
        members[a] = tuple(sorted(members[a] + members[b]))
        made_at[a] = step
        groups.append(members[a])
        parents.append(-1)
        merged = (weight[a] * distance[a] + weight[b] * distance[b]) / (weight[a] + weight[b])
        merged[[a, b]] = np.inf
        weight[a] += weight[b]
        distance[a], distance[:, a] = merged, merged
        distance[b], distance[:, b] = np.inf, np.inf
        reach[b] = np.inf
        stale = np.flatnonzero((nearest == a) | (nearest == b) | (merged < reach))
        stale = np.union1d(stale[np.isfinite(reach[stale])], [a])
        nearest[stale] = distance[stale].argmin(axis=1)
        reach[stale] = distance[stale, nearest[stale]]
    return list(zip(groups, parents, strict=True))


def profile_distance(cost: Floats) -> Floats:
    """The mean square difference of how two PUs see every third one."""
    size = len(cost)
    plain = cost.copy()
    np.fill_diagonal(plain, 0.0)
    square = plain**2
    # Over k other than i and j: the sum over all k, minus the two terms with the blank diagonal.
    total = square.sum(axis=1)
    distance = total[:, None] + total[None, :] - 2 * plain @ plain - 2 * square
    distance = np.maximum(distance, 0.0) / max(size - 2, 1)
    np.fill_diagonal(distance, 0.0)
    result: Floats = distance
    return result


def partitions(cost: Floats, most: int) -> list[list[Group]]:
    """Flat partitions into 2 up to `most` groups, each after moving its members."""
    size = len(cost)
    off = ~np.eye(size, dtype=bool)
    rows = np.where(off, cost, 0.0).sum(axis=1) / (size - 1)
    middle = float(rows.mean())
    centred = np.where(off, -(cost - rows[:, None] - rows[None, :] + middle), 0.0)
    values, vectors = np.linalg.eigh(centred)
    lead = vectors[:, ::-1] * np.sqrt(np.maximum(values[::-1], 0.0))
    result = []
    for count in range(2, most + 1):
        labels = _settle(centred, _seeds(lead[:, : count - 1], count))
        groups = [tuple(int(i) for i in np.flatnonzero(labels == k)) for k in range(count)]
        groups = [group for group in groups if group]
        if len(groups) == count and min(map(len, groups)) >= 2:
            result.append(groups)
    return result


def _seeds(points: Floats, count: int) -> Labels:
    """Assigns each point to the nearest of `count` points far apart, then runs k-means (Lloyd)."""
    first = int((points**2).sum(axis=1).argmax())
    chosen = [first]
    reach = ((points - points[first]) ** 2).sum(axis=1)
    for _ in range(count - 1):
        chosen.append(int(reach.argmax()))
        reach = np.minimum(reach, ((points - points[chosen[-1]]) ** 2).sum(axis=1))
    centres = points[chosen]
    labels = np.zeros(len(points), dtype=np.intp)
    for _ in range(_ROUNDS):
        spread = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
        moved = spread.argmin(axis=1)
        if np.array_equal(moved, labels):
            break
        labels = moved
        for k in range(count):
            if np.any(labels == k):
                centres[k] = points[labels == k].mean(axis=0)
    return labels


def _settle(nearness: Floats, labels: Labels) -> Labels:
    """Moves members to the group to which they are closest on average, until none moves."""
    count = int(labels.max()) + 1
    for _ in range(_ROUNDS):
        of_group = (labels[:, None] == np.arange(count)[None, :]).astype(np.float64)
        others = of_group.sum(axis=0)[None, :] - of_group
        average = (nearness @ of_group) / np.maximum(others, 1.0)
        average[others == 0] = -np.inf
        moved = average.argmax(axis=1)
        if np.array_equal(moved, labels):
            break
        labels = moved
    return labels
