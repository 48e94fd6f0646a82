"""Inside a guest with simulated caches: a database on Atoll's workers is steered by the fills.

    python -m tests.vm.inside.duckdb_fills WORKERS RUNS QUERY

Runs the query, and writes the profile of the database as JSON.
"""

from __future__ import annotations

import sys

import atoll.duckdb
from atoll.duckdb.scheduler import Scheduler


def main(workers: int, runs: int, query: str) -> None:
    with atoll.duckdb.connect(policy="none", workers=workers) as connection:
        scheduler: Scheduler = connection.atoll  # type: ignore[attr-defined]  # not in its stubs
        scheduler.policy = "adaptive"
        for _ in range(runs):
            connection.execute(query).fetchall()
    print(scheduler.profile().model_dump_json())


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
