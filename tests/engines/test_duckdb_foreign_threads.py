"""After `SET threads` DuckDB has threads of its own beside the workers, and wakes whom it likes."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import atoll.duckdb

con = atoll.duckdb.connect(workers=2)
con.execute({setting!r})
print(con.execute("select sum(range) from range(3000000)").fetchall())
con.close()
"""


@pytest.mark.parametrize("setting", ["SET threads = 6", "SET external_threads = 1"])
def test_closing_waits_for_no_worker_that_sleeps_on(setting: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(setting=setting)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "[(4499998500000,)]\n", "")
