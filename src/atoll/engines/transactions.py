"""Transactional workloads of an engine: the data, a driver that sends transactions, and what must
hold of the data however often a transaction or the server was cut off.

`atoll.oltp` measures them. An engine brings the texts of its transactions and its driver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self, runtime_checkable

from atoll.engines.api import Client, Data, Installation, LoadingEngine, Progress
from atoll.host.api import Host

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Condition:
    """Something that must always hold."""

    name: str
    means: str
    sql: str  # returns the rows that violate it


@dataclass(frozen=True, slots=True)
class Drive:
    """How the driver is started, with a folder of its own as working directory."""

    argv: Sequence[str]
    env: Mapping[str, str]
    files: Mapping[str, str]  # by name in that folder


@dataclass(frozen=True, slots=True)
class Log:
    """The transactions that the driver has had an answer to, in no order."""

    types: NDArray[np.int64]  # index in `Transactions.types`
    ended_s: NDArray[np.float64]  # by one clock
    latency_ms: NDArray[np.float64]
    failed: int  # gave up because of others (deadlocks); not among the above


class Transactions(Protocol):
    """A workload at one size."""

    @property
    def size(self) -> int: ...
    @property
    def types(self) -> tuple[str, ...]: ...
    @property
    def database_bytes(self) -> int:
        """About what the loaded data takes."""
        ...

    @property
    def data(self) -> Data:
        """Its name and checksum for `LoadingEngine.holding`; it has no Parquet files."""
        ...

    @property
    def conditions(self) -> tuple[Condition, ...]: ...
    @property
    def counted(self) -> tuple[str, str]:
        """One of `types`, and the query for how many of them the database has since it was
        loaded."""
        ...

    def load(self, installation: Installation, *, host: Host, progress: Progress) -> None:
        """As `LoadingEngine.load`."""
        ...

    def drive(
        self, installation: Installation, endpoint: str, *, clients: int, seconds: int, seed: int
    ) -> Drive:
        """Raises EngineFailed, with what to install, if the driver is missing."""
        ...

    def read(self, files: Mapping[str, str]) -> Log:
        """What the driver left in its folder, file by file. A last line that is torn is left
        out."""
        ...


@runtime_checkable
class TransactionalEngine(LoadingEngine, Protocol):
    """An engine with transactional workloads."""

    @property
    def workloads(self) -> tuple[str, ...]: ...

    def transactions(self, workload: str, size: int) -> Transactions:
        """`size`: warehouses or records, see docs/oltp.md. Raises UsageError."""
        ...

    def kept_in(self, folder: str) -> Self:
        """The engine whose data lies in this folder and outlives a deployment: a server goes on
        with what it finds there."""
        ...

    def durability(self, client: Client, *, timeout_s: float) -> Mapping[str, str]:
        """The settings of a server that decide what survives its end."""
        ...

    def checkpoint(self, client: Client, *, timeout_s: float) -> None:
        """Bring all changes to the disk, so that no run pays for what was before it."""
        ...
