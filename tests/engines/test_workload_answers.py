"""The answers of W1 to W4 are those of DuckDB on the same rows."""

from __future__ import annotations

import subprocess
from pathlib import Path

import duckdb
import numpy as np
import pytest

from atoll.host.local import LocalHost
from atoll.host.programs import find_program
from atoll.probing.workload import PROGRAM, run_workload
from atoll.schema.workload import WorkloadResult

RECORDS, GROUPS = 60_000, 700
DATASETS = ("moving-cluster", "sequential", "runs", "zipf", "heavy-hitter")
VARIANTS = ("paper", "fast")
INDEXES = ("art", "masstree", "btree", "skiplist")


def result(folder: Path, *flags: str) -> WorkloadResult:
    size = ["--records", str(RECORDS), "--groups", str(GROUPS), "--runs", "1"]
    return run_workload(LocalHost(), [*flags, *size, "--save", str(folder)], ())


def loaded(con: duckdb.DuckDBPyConnection, name: str, file: Path) -> None:
    """The pairs of integers of a file as a table."""
    pairs = np.fromfile(file, dtype="<i8").reshape(-1, 2)
    columns = {column: pairs[:, at].copy() for at, column in enumerate(("key", "value"))}
    con.register("pairs", columns)
    con.execute(f"create table {name} as select * from pairs")


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    ("workload", "aggregate"), [("w1", "2 * median(value)"), ("w2", "count(value)")]
)
def test_aggregates(
    workload: str, aggregate: str, variant: str, dataset: str, tmp_path: Path
) -> None:
    found = result(tmp_path, workload, "--variant", variant, "--dataset", dataset, "--no-check")
    with duckdb.connect() as con:
        loaded(con, "records", tmp_path / "records.bin")
        loaded(con, "answer", tmp_path / "answer.bin")
        theirs = con.execute(
            f"select key, ({aggregate})::bigint from records group by key order by key"
        ).fetchall()
        ours = con.execute("select key, value from answer order by key").fetchall()
    assert ours == theirs
    assert found.answer.rows == len(theirs)
    assert found.answer.sums == (sum(value for _, value in theirs),)


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize(
    "flags",
    [
        ["w3"],
        ["w3", "--keep"],
        ["w3", "--variant", "fast"],
        *[
            ["w4", "--index", index, "--variant", variant]
            for index in INDEXES
            for variant in VARIANTS
        ],
    ],
)
def test_joins(flags: list[str], dataset: str, tmp_path: Path) -> None:
    found = result(tmp_path, *flags, "--dataset", dataset, "--no-check")
    with duckdb.connect() as con:
        loaded(con, "records", tmp_path / "records.bin")
        loaded(con, "keys", tmp_path / "keys.bin")
        theirs = con.execute(
            "select count(*), sum(k.value)::hugeint, sum(r.value)::hugeint "
            "from keys k join records r using (key)"
        ).fetchone()
    assert theirs is not None and (found.answer.rows, *found.answer.sums) == theirs


@pytest.mark.parametrize("flags", [["--help"], ["--version"], ["w1", "--records", "10"]])
def test_a_full_disk_below_standard_output_is_said(flags: list[str]) -> None:
    program = find_program(PROGRAM)
    assert program
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([program, *flags], stdout=full, stderr=subprocess.PIPE, check=False)
    words = "atoll-workload: standard output: No space left on device\n"
    assert (done.returncode, done.stderr.decode()) == (5, words)
