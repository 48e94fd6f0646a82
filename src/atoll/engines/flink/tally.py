"""What the sinks of Atoll's own job count (StreamJob.java, CountingSink). Pure."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from itertools import accumulate

PER_SECOND, AGES = "perSecond", "ages"
_GROWTH = 1.05  # bucket b has the ages above 1.05^(b-1) and up to 1.05^b microseconds
_ENTRY = re.compile(r"(\d{1,18}):(\d{1,18})")


def parse_tally(text: str) -> Counter[int]:
    """'number:count' separated by blanks; what is not of this form is left out."""
    return Counter(
        {int(entry[1]): int(entry[2]) for word in text.split() if (entry := _ENTRY.fullmatch(word))}
    )


def percentile_ms(ages: Mapping[int, int], percent: int) -> float:
    """The age that this share of the rows did not exceed, by nearest rank, at most 5 % too high.
    Raises ValueError without rows."""
    rank = -(-percent * sum(ages.values()) // 100)
    if rank <= 0:
        raise ValueError("no rows")
    buckets = sorted(ages)
    place = bisect_left(list(accumulate(ages[bucket] for bucket in buckets)), rank)
    return float(_GROWTH ** buckets[place] / 1000)


def whole_seconds(per_second: Mapping[int, int], first: int, last: int) -> tuple[float, ...]:
    """The counts of the seconds from `first` up to `last`, without it."""
    return tuple(float(per_second.get(second, 0)) for second in range(first, last))
