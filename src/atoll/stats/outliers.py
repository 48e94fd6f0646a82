"""Flags outliers by the modified Z-score, with the threshold that hyperfine uses.

Iglewicz and Hoaglin, How to Detect and Handle Outliers (ASQC, 1993): the distance from the
median in units of the median absolute deviation (MAD). An outlier is flagged, never removed:
it shows that the machine was disturbed, not that the value may be ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

# 1.4826 turns the MAD of normal noise into a standard deviation; ten of those are far outside.
THRESHOLD = 1.4826 * 10.0


def outliers(values: Sequence[float]) -> tuple[int, ...]:
    """Indices of the values whose modified Z-score exceeds THRESHOLD on either side."""
    if not values:
        return ()
    middle = median(values)
    deviations = [abs(value - middle) for value in values]
    # If the majority has no spread (MAD 0), any value that differs stands out.
    limit = THRESHOLD * median(deviations)
    return tuple(index for index, deviation in enumerate(deviations) if deviation > limit)
