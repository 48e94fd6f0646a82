"""When a cluster's count of its instances can be relied upon. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Settling:
    """All instances are in at every look of `settles_s` seconds; 0: one look is enough.

    A look lasts as long as its query, and the count may be of any moment in between, so the
    seconds begin when the first of the looks was answered and end when the last was asked.
    """

    settles_s: float
    _since: float | None = None

    def is_over(self, *, whole: bool, asked_s: float, answered_s: float) -> bool:
        """Takes one look in, whose times are those of one clock that never goes back."""
        if not whole:
            self._since = None
            return False
        if self._since is None:
            self._since = answered_s
            return not self.settles_s
        return asked_s - self._since >= self.settles_s
