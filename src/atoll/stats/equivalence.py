"""Whether two things are as good as equal, which 'no significant difference' does not show. Pure.

They are equivalent if the whole interval of their ratio lies within the margin. With an interval of
95 % that is stricter than two one-sided tests of 5 % each, which need 90 % (Schuirmann, Journal of
Pharmacokinetics and Biopharmaceutics 15, 1987).
"""

from __future__ import annotations

from enum import StrEnum

from atoll.stats.paired import Estimate

MARGIN = 1.02


class Equivalence(StrEnum):
    EQUIVALENT = "equivalent"
    DIFFERS = "differs"
    NOT_SHOWN = "not shown"  # neither


def equivalence(ratio: Estimate, margin: float = MARGIN) -> Equivalence:
    """`ratio`: one over the other; `margin`: 1.02 is 2 % on either side. A small difference that is
    certain is still equivalent."""
    interval = ratio.interval
    if interval is None:
        return Equivalence.NOT_SHOWN
    if 1 / margin <= interval.low and interval.high <= margin:
        return Equivalence.EQUIVALENT
    return Equivalence.NOT_SHOWN if interval.holds(1.0) else Equivalence.DIFFERS
