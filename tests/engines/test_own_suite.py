"""The user's own suite by the command line: right answers, resuming, and answers that vary."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from atoll.bench.results import read_results


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    folder = tmp_path / "sales"
    folder.mkdir()
    (folder / "daily.sql").write_text("select day, sum(n) from orders group by day order by day;\n")
    (folder / "total.sql").write_text("select sum(n) from orders")
    (folder / "suite.toml").write_text('[tables]\norders = "orders.parquet"\n')
    write(folder, 1000)
    return folder


def write(folder: Path, rows: int) -> None:
    with duckdb.connect() as connection:
        connection.execute(
            "copy (select range % 7 as day, range::decimal(12,2) as n "
            f"from range({rows})) to '{folder}/orders.parquet' (format parquet)"
        )


def bench(suite: Path, output: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "atoll", "bench", "duckdb", "--suite", str(suite)]
    command += ["--policies", "wim", "--blocks", "1", "--json", "-o", str(output), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_answers_are_compared_with_the_references(suite: Path, tmp_path: Path) -> None:
    output = tmp_path / "r.jsonl"
    done = bench(suite, output)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["suite"], summary["scale_factor"]) == ("sales", None)
    assert (summary["answers_known"], summary["answers"]) == (True, 4)
    assert read_results(output).header.queries == ("daily", "total")
    resumed = bench(suite, output, "--blocks", "2", "--resume")
    assert resumed.returncode == 0, resumed.stderr
    write(suite, 1001)
    changed = bench(suite, output, "--blocks", "3", "--resume")
    assert changed.returncode == 2 and "differs in its data checksum" in changed.stderr


def test_a_changed_query_is_not_resumed(suite: Path, tmp_path: Path) -> None:
    output = tmp_path / "r.jsonl"
    assert bench(suite, output, "--queries", "total").returncode == 0
    (suite / "total.sql").write_text("select max(n) from orders")
    done = bench(suite, output, "--queries", "total", "--resume", "--blocks", "2")
    assert done.returncode == 2 and "differs in its SQL" in done.stderr


@pytest.mark.long
def test_an_answer_that_is_never_the_same_is_not_the_policys(suite: Path, tmp_path: Path) -> None:
    (suite / "suite.toml").unlink()
    for query in suite.glob("*.sql"):
        query.unlink()
    (suite / "lottery.sql").write_text("select (1000000000 * random())::bigint as n")
    done = bench(suite, tmp_path / "r.jsonl")
    assert done.returncode == 0, done.stderr
    codes = [caution["code"] for caution in json.loads(done.stdout)["warnings"]]
    assert "answer-unstable" in codes and "answer-changed" in codes
