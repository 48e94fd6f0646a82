"""Runs DuckDB's tasks on Atoll's workers, with one changed line.

    import atoll.duckdb

    con = atoll.duckdb.connect("sales.duckdb")
    con.sql("select region, sum(amount) from orders group by region").show()
    con.atoll.queries()[-1]  # where it ran, and what it took

`connect` returns an ordinary DuckDB connection. DuckDB starts no threads: its tasks run on workers
that Atoll places on the machine's chiplets, and moves (arcas-runtime, section 5.5; docs/duckdb.md
describes what that can and cannot achieve).
"""

from __future__ import annotations

from atoll.duckdb.opening import FallbackWarning, connect
from atoll.duckdb.scheduler import POLICIES, Scheduler

__all__ = ["POLICIES", "FallbackWarning", "Scheduler", "connect"]
