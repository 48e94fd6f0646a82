"""What is measured in which mode, and how the time is shared out. Pure.

`--quick` has 30 s and `--full` 5 minutes of wall time, on a busy machine too. So time is not
added up from the parts but given out: a kind gets its weight's part of what is left when it
begins. A kind that needs less leaves more to those after it, one that ran over leaves less, and
the sum holds. The rest to 30 s (300 s) is for starting, for a request that cannot be stopped
at once, and for what is concluded at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from atoll.schema.profile import Kind, Mode

TOTAL_S = {Mode.QUICK: 24.0, Mode.FULL: 280.0}
# After its time, a request has this long to end before its probe is killed.
GRACE_S = {Mode.QUICK: 1.5, Mode.FULL: 5.0}
# The parts of the time, in seconds where all kinds are measured in quick mode.
WEIGHTS = {
    Kind.LATENCY: 4.0,
    Kind.BANDWIDTH: 2.0,
    Kind.NODES: 3.0,
    Kind.CACHE: 4.5,
    Kind.STREAM: 5.0,
    Kind.SHARING: 2.5,
    Kind.CHURN: 3.0,
}


@dataclass(frozen=True, slots=True)
class Budget:
    mode: Mode
    kinds: tuple[Kind, ...]  # in the order in which they are measured
    total_s: float
    grace_s: float

    def share_s(self, kind: Kind, *, elapsed_s: float) -> float:
        """What the kind may take that begins now; those before it are over."""
        rest = self.kinds[self.kinds.index(kind) :]
        weight = WEIGHTS[kind] / sum(WEIGHTS[later] for later in rest)
        return max(0.0, (self.total_s - elapsed_s) * weight)


def budget(mode: Mode, kinds: Sequence[Kind]) -> Budget:
    ordered = tuple(kind for kind in Kind if kind in kinds)
    return Budget(mode, ordered, TOTAL_S[mode], GRACE_S[mode])
