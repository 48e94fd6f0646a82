"""The operators of one execution of a query, the same for all engines.

`atoll.bench` records them once for each entrant and query, in a `profile` line of a results file,
to tell why one placement won.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from atoll.schema.base import Record


class Kind(StrEnum):
    SCAN = "scan"
    FILTER = "filter"  # and projections: engines fuse the two
    JOIN = "join"
    AGGREGATE = "aggregate"
    SORT = "sort"  # and top-n
    WINDOW = "window"
    EXCHANGE = "exchange"  # between tasks or threads
    OTHER = "other"


class Operator(Record):
    """One operator of a plan, over all its tasks."""

    node: str  # the engine's id of it, or its path in the plan: '0.1.0'
    operator: str  # by the engine's own name: 'HASH_JOIN', 'Parallel Seq Scan'
    kind: Kind
    tables: tuple[str, ...]  # that it reads or that are read below it; sorted, with repetitions
    # In it alone, summed over threads: two threads for 1 s are 2 s. None: the engine does not tell.
    own_s: float | None = Field(ge=0)
    rows: int | None = Field(ge=0)  # that it gave
    join: str = ""  # 'inner', 'left', 'semi', ...
    distribution: str = ""  # of a join or an exchange: 'broadcast', 'partitioned', ...
    tasks: int | None = Field(default=None, ge=1)


class QueryProfile(Record):
    """How a server executed a query, by its own profile."""

    operators: tuple[Operator, ...]  # each before those below it
    # Only from engines that count memory in a profile alone; else `EngineWork` has it.
    peak_bytes: int | None = Field(default=None, ge=0)
    peak_source: str = ""
