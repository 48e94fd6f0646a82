"""When a cluster's count of its instances can be relied upon."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from atoll.engines.api import Client, SettlingClient


@dataclass(frozen=True, slots=True)
class Look:
    count: int  # of the instances that are in
    is_over: bool  # all are in, and will be


@dataclass(slots=True)
class Settling:
    """All instances are in at every look for as long as the last look wants it: its `settles_s`.

    A look lasts as long as its query, and the count may be of any moment in between, so the
    seconds begin when the first of the looks was answered and end when the last was asked.
    """

    instances: int
    _since: float | None = field(default=None, init=False)

    def look(self, clients: Iterable[Client], *, timeout_s: float) -> Look:
        """Ask them all, each within `timeout_s`. Raises EngineFailed as `Client.instances`."""
        asked_s = time.monotonic()
        count, settles_s = 0, 0.0
        for client in clients:
            count += client.instances(timeout_s=timeout_s)
            if isinstance(client, SettlingClient):
                settles_s = max(settles_s, float(client.settles_s))
        is_over = self.take(count, settles_s, asked_s=asked_s, answered_s=time.monotonic())
        return Look(count, is_over)

    def take(self, count: int, settles_s: float, *, asked_s: float, answered_s: float) -> bool:
        """Whether it is over with this look, whose times are those of one monotonic clock."""
        if count != self.instances:
            self._since = None
            return False
        if self._since is None:
            self._since = answered_s
        return not settles_s or asked_s - self._since >= settles_s
