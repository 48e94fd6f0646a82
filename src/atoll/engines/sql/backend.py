"""What the SQL host (`atoll.engines.sql.host`) wants of an engine's session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from atoll.engines.api import Column
from atoll.schema.results import EngineWork, SchedulerState

Result = tuple[list[Column], list[tuple[Any, ...]]]


class Backend(Protocol):
    """An engine's session inside this process. `ticket` tells the queries under way apart."""

    def run(self, sql: str, ticket: str) -> Result: ...

    def cancel(self, ticket: str) -> None:
        """End that query soon; nothing if it does not run (yet)."""
        ...

    def instances(self) -> int: ...

    def check(self) -> None:
        """Raise EngineFailed if an instance was lost since all were there."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class ScheduledBackend(Backend, Protocol):
    """A session whose tasks Atoll's scheduler runs."""

    def scheduler(self) -> SchedulerState: ...


@runtime_checkable
class CountingBackend(Backend, Protocol):
    """A session whose engine counts what its queries take."""

    def work(self) -> Mapping[str, EngineWork]: ...
