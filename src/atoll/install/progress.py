"""How whoever waits is told what is going on."""

from __future__ import annotations

from typing import Protocol


class Tell(Protocol):
    def __call__(self, doing: str, done_bytes: int = 0, total_bytes: int = 0) -> None:
        """`total_bytes` is 0 where nobody knows it. May be called many times a second."""
        ...
