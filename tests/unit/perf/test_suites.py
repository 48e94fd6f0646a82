"""What `make perf-suites` compares: makers that change their minds, and an invented report."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import duckdb
import pytest

from atoll.bench.analysis import summarise
from atoll.bench.results import parse_results
from atoll.report.bench.render import render
from perf import suites_report
from perf.datasets import Files, Maker, compare_makers
from perf.harness import WrongAnswer


def maker(*rows: int) -> Maker:
    """Makes that many rows, each time the next number; the last one for good."""
    turns = count()

    def make(folder: Path) -> tuple[float, Files]:
        path = folder / "t.parquet"
        number = rows[min(next(turns), len(rows) - 1)]
        duckdb.sql(f"select range as n from range({number})").write_parquet(str(path))
        return 0.5, {"t": path}

    return make


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_each_maker_has_its_seconds_and_rows() -> None:
    makers = {"a": maker(3), "b": maker(5)}
    seconds, rows = compare_makers("it", makers, rounds=2, warmup=0, same=False)
    assert {side: list(each) for side, each in seconds.items()} == {"a": [0.5] * 2, "b": [0.5] * 2}
    assert rows == {"a": 3, "b": 5}
    with pytest.raises(WrongAnswer, match=r"it, b: other data"):
        compare_makers("it", makers, rounds=2, warmup=0)


def test_a_maker_that_makes_other_data_is_refused() -> None:
    with pytest.raises(WrongAnswer, match=r"it, a: other data"):
        compare_makers("it", {"a": maker(3, 4)}, rounds=2, warmup=0, same=False)


def test_the_invented_results_fill_every_section(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suites_report, "RESULTS", 100)
    records = suites_report.invented()
    text = "".join(f"{one.model_dump_json()}\n" for one in records)
    results = parse_results(text.encode(), where="invented")
    summary = summarise(results)
    others = [one for one in summary.entrants if one.baseline]
    assert [one.label for one in summary.why] == [one.label for one in others]
    assert all(one.work and one.places and one.speedups for one in others)
    assert {axis.name for axis in summary.axes} == {"policy", "n", "memory"}
    assert "Why" in render(results, "html")
