"""High percentiles of run times, from all runs together. Pure.

A percentile is the run of that rank, rounded up (nearest rank), so it is always a time that was
measured. The 95th is about one run in 20 and needs at least 20 runs; the 99th needs 100.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def percentile(values: Sequence[float], percent: int) -> float | None:
    """The percentile of the values; None if they are too few."""
    if len(values) * (100 - percent) < 100:
        return None
    return sorted(values)[math.ceil(percent * len(values) / 100) - 1]
