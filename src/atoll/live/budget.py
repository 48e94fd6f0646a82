"""Which of many things to look at now, so that all looks together cost a fixed share of a core."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

_T = TypeVar("_T")
_MOST_CREDIT_S = 20.0  # of elapsed time: after a pause it does not catch up with more


class Budget:
    """For one kind of look. `share`: of one core. `least_age_s`: what was looked at later than this
    is not looked at again. `clock`: the CPU time of the calling thread."""

    def __init__(self, share: float, least_age_s: float, clock: Callable[[], float]) -> None:
        self._share, self._least_age_s, self._clock = share, least_age_s, clock
        self._credit_s = 0.0  # CPU time that may be used now; negative after a dear look

    def due(
        self,
        subjects: Iterable[tuple[float | None, _T]],
        now_s: float,
        elapsed_s: float | None,
    ) -> Iterator[_T]:
        """Those to look at now, each of them before the next is asked for. `subjects`: with the
        time of the last look, None for never. The one looked at longest ago comes first.
        `elapsed_s`: since the last call; None: all are due, whatever that costs."""
        most_s = self._share * _MOST_CREDIT_S
        self._credit_s = min(self._credit_s + self._share * (elapsed_s or 0.0), most_s)
        for at_s, subject in sorted(subjects, key=lambda one: -1.0 if one[0] is None else one[0]):
            young = at_s is not None and now_s - at_s < self._least_age_s
            if elapsed_s is not None and (young or self._credit_s <= 0):
                return
            began_s = self._clock()
            yield subject
            if elapsed_s is not None:
                self._credit_s -= self._clock() - began_s
