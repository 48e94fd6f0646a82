"""Programs whose operators run for long, each on threads that can be told apart: what such a
program must offer so that `atoll operators` can profile it, place its operators and compare
placements. The room `atoll.operators` uses only this, and names no engine."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from atoll.engines.api import Installation
from atoll.host.api import Host
from atoll.schema.operator_graph import OperatorGraph
from atoll.schema.placement import Placement


@dataclass(frozen=True, slots=True)
class OperatorThread:
    """A thread that runs nothing but these operators, or a worker of a runtime that does."""

    operators: tuple[str, ...]  # ids of the graph
    pid: int
    tid: int


@dataclass(frozen=True, slots=True)
class Throughput:
    """What one measured stretch gave."""

    unit: str  # of the rates: 'records/s', 'interactions/s'
    per_window: tuple[float, ...]  # rates over windows of 1 s, in order
    p50_ms: float
    p90_ms: float
    p99_ms: float
    backlog: bool = False  # work came in faster than it was done


class Running(Protocol):
    """A program that runs."""

    def profile(self, seconds: float) -> OperatorGraph:
        """Its graph, with the activity of each operator in these seconds."""
        ...

    def place(self, placement: Placement) -> None:
        """Binds operators, and their memory where it can be, as the placement says."""
        ...

    def threads(self) -> Sequence[OperatorThread]:
        """Its operators' threads as they are now."""
        ...

    def measure(self, seconds: float) -> Throughput: ...


class Placeable(Protocol):
    """A program that can be started; the context's end stops it, and all that it started."""

    @property
    def name(self) -> str: ...

    def start(
        self, host: Host, folder: Path, cpus: Sequence[int]
    ) -> AbstractContextManager[Running]:
        """Starts it on these CPUs; its files are in `folder`. Returns when it works at its rate.

        Raises EngineError with the end of its log if it does not come up.
        """
        ...


@runtime_checkable
class Attachable(Placeable, Protocol):
    """A `Placeable` that can also be one that somebody else has started. To place it, its threads
    are bound (`atoll.engines.binding`)."""

    @property
    def independent(self) -> bool:
        """Whether its operators work without each other, so that a placement may lack some."""
        ...

    def attach(self, host: Host, url: str) -> AbstractContextManager[Running]:
        """The program at that URL; the context's end leaves it as it is. Its `measure` may raise
        UsageError. Raises UsageError for a URL of another kind, or of another machine,
        EngineFailed."""
        ...


@runtime_checkable
class Installable(Placeable, Protocol):
    """A `Placeable` that does not answer queries, and that `atoll engine install` can fetch. It
    has `facts` (`atoll.engines.facts`)."""

    def locate(self, host: Host) -> Installation:
        """As `atoll.engines.api.Engine.locate`."""
        ...
