"""The callback by which an install reports its progress."""

from __future__ import annotations

from typing import Protocol


class Tell(Protocol):
    def __call__(self, doing: str, done_bytes: int = 0, total_bytes: int = 0) -> None:
        """`total_bytes` is 0 if it is unknown. It is called many times a second."""
        ...
