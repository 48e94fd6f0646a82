"""The callback by which an install reports its progress."""

from __future__ import annotations

import sys
from typing import Protocol


class Tell(Protocol):
    def __call__(self, doing: str, done_bytes: int = 0, total_bytes: int = 0) -> None:
        """`total_bytes` is 0 if it is unknown. It is called many times a second."""
        ...


class Lines:
    """A `Tell` that prints a line on stderr for each step, with a name before it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._last = ""

    def __call__(self, doing: str, done_bytes: int = 0, total_bytes: int = 0) -> None:
        if doing != self._last:
            self._last = doing
            print(f"{self._name}: {doing}", file=sys.stderr, flush=True)
