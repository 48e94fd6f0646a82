"""Decides when the instance count that a cluster reports is stable."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from atoll.engines.api import Client, SettlingClient


@dataclass(frozen=True, slots=True)
class Look:
    count: int  # of the instances that have joined
    is_stable: bool  # all have joined, and will stay
    settles_s: float = 0.0  # for how long the count must stay the same


@dataclass(slots=True)
class StableCount:
    """The count is stable once every look has found all instances for the `settles_s` seconds that
    the last look asks for.

    A look takes as long as its query, and the count may be of any moment in between. So the time
    runs from the answer of the first look to the question of the last.
    """

    instances: int
    _since: float | None = field(default=None, init=False)

    def look(self, clients: Iterable[Client], *, timeout_s: float) -> Look:
        """Ask all clients, each within `timeout_s`. Raises EngineFailed as `Client.instances`."""
        asked_s = time.monotonic()
        count, settles_s = 0, 0.0
        for client in clients:
            count += client.instances(timeout_s=timeout_s)
            if isinstance(client, SettlingClient):
                settles_s = max(settles_s, float(client.settles_s))
        is_stable = self.take(count, settles_s, asked_s=asked_s, answered_s=time.monotonic())
        return Look(count, is_stable, settles_s)

    def take(self, count: int, settles_s: float, *, asked_s: float, answered_s: float) -> bool:
        """Whether the count is stable with this look; both times are of one monotonic clock."""
        if count != self.instances:
            self._since = None
            return False
        if self._since is None:
            self._since = answered_s
        return not settles_s or asked_s - self._since >= settles_s
