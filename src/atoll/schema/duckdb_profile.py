"""What DuckDB's queries did on Atoll's workers. Format `atoll/duckdb-profile` 1.

Written by `atoll.duckdb` (`con.atoll.profile()`); docs/duckdb.md tells what each figure means. What
could not be counted is None, never 0.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from atoll.schema.base import Record
from atoll.schema.runtime_profile import Count, Fills, RuntimeProfile, Seconds
from atoll.schema.seats import Policy, SpreadChange, ThreadSeat


class QueryRecord(Record):
    """One query: from its first call until its result was fetched or left."""

    sql: str  # the first 200 bytes (UTF-8); `relation.METHOD` where the text is not known
    policy: Policy
    spread: Annotated[int, Field(ge=1)]  # chiplets that the workers sat on when it began
    reason: str  # why it is this spread
    started_s: Seconds  # since the database was opened
    wall_s: Seconds  # inside DuckDB's calls; what the program did between them is left out
    cpu_s: Seconds  # CPU time of workers and caller inside these calls
    caller_cpu_s: Seconds  # the caller's part of it
    working_set_bytes: Count | None  # the most memory seen in use beside cached tables
    alone: bool  # no other query ran meanwhile; else cpu_s holds parts of theirs
    fills: Fills | None  # of the workers; None: not counted
    failed: bool  # it ended in an error, or was interrupted


class DuckDBProfile(Record):
    FORMAT: ClassVar[str] = "atoll/duckdb-profile"
    VERSION: ClassVar[int] = 1

    format: Literal["atoll/duckdb-profile"] = "atoll/duckdb-profile"
    version: Literal[1] = 1
    duckdb: str  # its version
    policy: Policy
    workers: Annotated[int, Field(ge=1)]  # the caller is one of them
    chiplets: Annotated[int, Field(ge=1)]  # of the places that they may sit on
    spread: Annotated[int, Field(ge=1)]
    threads: tuple[ThreadSeat, ...]
    queries: tuple[QueryRecord, ...]  # the latest, in the order in which they ended
    queries_left_out: Count  # older ones, forgotten
    spreads: tuple[SpreadChange, ...]  # the start, and the changes; the latest 4096
    runtime: RuntimeProfile  # of the workers
