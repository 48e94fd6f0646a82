"""What a run needs from its caller, who may be a bench, a replay or a test without an engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol

from atoll.bench.results import Results
from atoll.engines.api import Client, QueryResult
from atoll.errors import EngineFailed
from atoll.schema.operators import QueryProfile
from atoll.schema.results import EngineWork, Entrant, ProcessSeen, SchedulerState
from atoll.schema.whereabouts import Whereabouts


class Server(Protocol):
    """A deployment that is up and has its tables."""

    @property
    def streams(self) -> Sequence[Client]:
        """One connection per query stream, distributed round-robin over the servers."""
        ...

    def verify(self) -> tuple[int, int, str] | None:
        """(threads checked, threads out of place, details); None without a plan."""
        ...

    def look(self, *, deep: bool) -> tuple[tuple[ProcessSeen, ...], str] | None:
        """The processes of a running cluster and what could not be seen; None for a deployment.

        `deep`: their memory too.
        """
        ...

    def check_alive(self) -> None:
        """Raises EngineFailed if a process died or an instance is missing."""
        ...

    def reconnect(self, stream: int) -> Client:
        """Replaces the connection of a stream whose query failed. Raises as `check_alive`."""
        ...

    def shown(self, fault: EngineFailed) -> str:
        """The fault without secrets."""
        ...

    def schedulers(self) -> Sequence[SchedulerState]:
        """What Atoll's scheduler did in each server, by slot; empty if the engine's own ran."""
        ...

    def watch(self) -> Callable[[], Whereabouts] | None:
        """Begins to watch threads and pages; the function that it returns ends that. None without a
        deployment."""
        ...

    def counted(self) -> Mapping[str, EngineWork]:
        """The engine's own statistics of its queries, by ticket; empty if it keeps none."""
        ...

    def profile(self, sql: str, *, timeout_s: float) -> QueryProfile | None:
        """How the first server runs this query; None if the engine does not tell. Raises
        EngineFailed if the query fails."""
        ...


class Deploy(Protocol):
    def __call__(self, entrant: Entrant) -> AbstractContextManager[Server]:
        """Start the entrant; leaving the context stops it completely."""
        ...


class Work(Protocol):
    """The queries of a run and the check of their answers."""

    def sql(self, engine: str, query: str) -> str: ...

    def check(self, query: str, result: QueryResult) -> str | None:
        """None if the answer is right, otherwise the rows that differ."""
        ...

    def require_unchanged(self) -> None:
        """Raises UsageError if the user's files have changed since the start: then what differs or
        fails is not the engine's fault."""
        ...

    @property
    def differing(self) -> Literal["wrong", "changed"]:
        """What a different answer means; 'changed' if the right one is unknown."""
        ...

    def digest(self, query: str, result: QueryResult) -> str:
        """Identifies the answer in a later run; empty if the right one is known."""
        ...

    def recall(self, earlier: Results) -> None:
        """Take over the digests of the run that is resumed."""
        ...

    def drop_from_cache(self) -> float | None:
        """Drop the data from the page cache; returns the share that stayed, None if unknown."""
        ...
