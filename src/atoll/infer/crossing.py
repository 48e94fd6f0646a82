"""Finds the data size from which one thread placement stays faster than another.

Threads on one chiplet are faster while their data fits its L3. Threads spread over several chiplets
have more cache and overtake beyond that (olap-on-chiplets 4.4, arcas-runtime 2.3). Far beyond all
caches the two are equal, so the last points are often ties. The crossing means that the first
placement is never faster afterwards, not that the second always is.

A point counts only if the two differ by more than TIE and by more than their intervals allow. A
lone contradiction does not count, and one point alone proves no crossing: the ratio is smoothed by
the median of three neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from atoll.infer.capacities import median_of_three
from atoll.schema.profile import SharingPoint

TIE = 0.05


def crossing_bytes(points: Sequence[SharingPoint]) -> int | None:
    """The size from which the distributed placement stays faster; None: never, or always.

    Between the two surrounding sizes, the crossing is where the ratio passes 1 on a double
    logarithmic scale. Points with a rate that is not positive are skipped. `points` by rising size.
    """
    good = [p for p in points if p.local_gbs.value > 0 and p.distributed_gbs.value > 0]
    if len(good) < 2:
        return None
    sizes = np.log([point.vector_bytes for point in good])
    if np.any(np.diff(sizes) <= 0):
        raise ValueError("sizes must rise")
    seen = np.log([p.distributed_gbs.value / p.local_gbs.value for p in good])
    ratio = median_of_three(seen)
    # An end has neighbours on one side only.
    ratio[0], ratio[-1] = np.median(seen[:3]), np.median(seen[-3:])
    doubt = np.log1p([max(TIE, p.local_gbs.spread + p.distributed_gbs.spread) for p in good])
    local_wins = np.flatnonzero(ratio < -doubt)
    if not len(local_wins):
        return None
    last_local = int(local_wins[-1])
    after = np.flatnonzero(ratio[last_local:] > doubt[last_local:])
    if not len(after):
        return None
    first = last_local + int(after[0])
    # Ties may lie in between: the ratio passes 1 for the last time before `first`.
    below = last_local + int(np.flatnonzero(ratio[last_local:first] <= 0)[-1])
    share = -ratio[below] / (ratio[below + 1] - ratio[below])
    return round(float(np.exp(sizes[below] + share * (sizes[below + 1] - sizes[below]))))
