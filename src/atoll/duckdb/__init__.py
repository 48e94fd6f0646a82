"""DuckDB with its tasks on Atoll's workers, by one line.

    import atoll.duckdb

    con = atoll.duckdb.connect("sales.duckdb")
    con.sql("select region, sum(amount) from orders group by region").show()
    con.atoll.queries()[-1]  # where it ran, and what it took

`connect` gives an ordinary DuckDB connection. DuckDB starts no thread: its tasks run on workers
that sit where the machine's chiplets say, and that move (arcas-runtime, section 5.5; docs/duckdb.md
says what that can and cannot do).
"""

from __future__ import annotations

from atoll.duckdb.opening import FallbackWarning, connect
from atoll.duckdb.scheduler import POLICIES, Scheduler

__all__ = ["POLICIES", "FallbackWarning", "Scheduler", "connect"]
