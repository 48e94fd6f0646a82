"""What cores and units take of the places where they are, and what places have. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

ROUND = 1 + 1e-9  # sums of figures that fill a place exactly


class Load(NamedTuple):
    """What a core, or a unit on a core, takes of the place where it is."""

    amount: float = 0  # GB/s or bytes
    place: int | None = None  # where it must be; an index
    size: int = 1  # of its core, at most the capacity


class Room(NamedTuple):
    """What a place has."""

    cores: int
    amount: float = inf

    def holds(self, loads: Sequence[Load]) -> bool:
        return len(loads) <= self.cores and self.takes(sum(load.amount for load in loads))

    def takes(self, amount: float) -> bool:
        return amount <= self.amount * ROUND

    def over(self, amount: float) -> float:
        """By what part of what it has, this is more."""
        return 0.0 if self.takes(amount) else (amount - self.amount) / (self.amount or 1)


class Core(NamedTuple):
    place: int
    units: list[int]  # indices of the loads
