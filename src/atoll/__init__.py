"""Atoll: run query engines at the speed of the hardware they already have.

One flow, one file between any two steps (docs/architecture.md):
topology -> measure -> plan -> launch -> verify -> bench -> report.

`atoll.measure(...)` measures this machine and returns a `Profile` (atoll.probing.measure).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atoll.probing.measure import measure as measure

__version__ = "0.1.0"
__all__ = ["__version__", "measure"]


def __getattr__(name: str) -> object:
    # Imported on demand, since few commands measure.
    if name == "measure":
        from atoll.probing.measure import measure

        return measure
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
