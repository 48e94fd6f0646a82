"""Defines a suite: tables as Parquet files, queries in an engine's dialect, and their answers.

Every engine and policy gets the same data, so that only what a bench compares differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from atoll.engines.api import Column, Data, Progress, Table
from atoll.host.api import Host


class TableSchema(NamedTuple):
    """A table as engines create it."""

    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    indexes: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class DataSet:
    """Tables on disk, verified."""

    suite: str
    scale_factor: float | None  # None: the data is the user's
    root: Path
    tables: tuple[Table, ...]
    checksum: str  # over the checksums of all files; equal data has an equal checksum everywhere
    suite_checksum: str = ""  # of the user's own suite: over its texts

    @property
    def files(self) -> Mapping[str, Path]:
        """Table -> Parquet file."""
        return {table.name: Path(table.path) for table in self.tables}

    @property
    def data(self) -> Data:
        """The data set in the form that engines take."""
        return Data(f"{self.suite}-{self.root.name}", self.checksum, self.tables)


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows that a query must return. `as_text`: the values are text, empty for NULL."""

    rows: list[tuple[Any, ...]]
    order: tuple[int, ...]  # columns that the ORDER BY names, in its order
    open_end: bool = False  # the LIMIT cuts off rows that are equal to the last one in the order
    as_text: bool = False
    # By row, equal numbers for rows that the ORDER BY ties, if it sorts by more than columns.
    ties: tuple[int, ...] = ()

    @property
    def only_counted(self) -> bool:
        """Whether the LIMIT lets the engine choose all rows."""
        return self.open_end and not self.order and len(set(self.ties)) <= 1


class Suite(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def tables(self) -> tuple[str, ...]: ...

    @property
    def query_names(self) -> tuple[str, ...]:
        """All queries, in the order of the suite: 'q1', 'q2', ..."""
        ...

    def queries(self, engine: str) -> Mapping[str, str]:
        """The texts of the queries in the dialect of the engine."""
        ...

    def ensure_data(self, scale_factor: float, *, host: Host, progress: Progress) -> DataSet:
        """The data set from the cache, which is made first if it is missing or damaged."""
        ...

    def expected(self, query: str, data: DataSet) -> Answer:
        """The right answer: a published one, else the reference's. It may take as long as the
        query, so ask before the clock runs."""
        ...
