"""What DuckDB's queries did on Atoll's workers. Format `atoll/duckdb-profile` 1.

Written by `atoll.duckdb` (`con.atoll.profile()`); docs/duckdb.md explains each figure. A value
that could not be counted is None, never 0.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from atoll.schema.base import Record
from atoll.schema.runtime_profile import Count, Fills, RuntimeProfile, Seconds
from atoll.schema.seats import Policy, SpreadChange, ThreadSeat


class QueryRecord(Record):
    """One query: from its first call until its result was fetched or abandoned."""

    sql: str  # the first 200 bytes (UTF-8); `relation.METHOD` if the text is unknown
    policy: Policy
    spread: Annotated[int, Field(ge=1)]  # chiplets that the workers occupied when it began
    reason: str  # why this spread was chosen
    started_s: Seconds  # since the database was opened
    wall_s: Seconds  # inside DuckDB's calls, without the program's time between them
    cpu_s: Seconds  # CPU time of workers and caller inside these calls
    caller_cpu_s: Seconds  # the caller's part of it
    working_set_bytes: Count | None  # the most memory seen in use, without cached tables
    alone: bool  # no other query ran at the same time; otherwise cpu_s includes parts of others
    fills: Fills | None  # of the workers; None: not counted
    failed: bool  # it ended in an error, or was interrupted


class DuckDBProfile(Record):
    format: Literal["atoll/duckdb-profile"] = "atoll/duckdb-profile"
    version: Literal[1] = 1
    duckdb: str  # its version
    policy: Policy
    workers: Annotated[int, Field(ge=1)]  # including the caller
    chiplets: Annotated[int, Field(ge=1)]  # of the places available to them
    spread: Annotated[int, Field(ge=1)]
    threads: tuple[ThreadSeat, ...]
    queries: tuple[QueryRecord, ...]  # the latest, in the order in which they ended
    queries_left_out: Count  # older queries that were dropped
    spreads: tuple[SpreadChange, ...]  # the start, and the changes; the latest 4096
    runtime: RuntimeProfile  # of the workers
