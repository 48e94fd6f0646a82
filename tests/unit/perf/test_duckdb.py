"""What `make perf-duckdb` runs when, what its figures come to, and what it refuses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from atoll.engines.api import Column, QueryResult
from atoll.suites.base import Answer
from perf.duckdb import Judge
from perf.duckdb_pairs import Figures, Pair, over_lives, permutations, turns
from perf.duckdb_side import Run, Side, plain
from perf.harness import WrongAnswer

QUERIES = tuple(f"q{number}" for number in range(1, 23))
TEXTS = {"count": "select count(*) from t", "sum": "select sum(i) from t", "bad": "select frob"}
ROWS = 300_000


def a_pair(life: int, work: str, cpu_ratio: float, wall_ratio: float = 1.0) -> Pair:
    ours, peer = Figures(wall_ratio, 0.1 * cpu_ratio, 7), Figures(1.0, 0.1, 5)
    return Pair(life, 0, work, True, ours, peer)


def test_a_block_has_every_query_once_and_either_side_goes_first_in_half_of_them() -> None:
    for block in range(4):
        plan = turns(block, QUERIES)
        assert sorted(query for query, _ in plan) == sorted(QUERIES)
        assert sum(first for _, first in plan) == 11
    assert len({tuple(query for query, _ in turns(block, QUERIES)) for block in range(10)}) == 10
    assert turns(3, QUERIES) == turns(3, QUERIES)


def test_over_an_even_number_of_blocks_either_side_goes_first_equally_often() -> None:
    first = Counter(
        query for block in range(40) for query, ours_first in turns(block, QUERIES) if ours_first
    )
    assert first == dict.fromkeys(QUERIES, 20)


def test_each_stream_runs_all_queries_in_an_order_of_its_own() -> None:
    streams = permutations(0, 8, QUERIES)
    assert [sorted(stream) for stream in streams] == [sorted(QUERIES)] * 8
    assert len({tuple(stream) for stream in streams}) == 8
    assert permutations(1, 8, QUERIES) != streams


def test_a_figure_is_the_median_over_lives() -> None:
    found = over_lives([a_pair(life, "q1", 1.0 + life / 10) for life in range(5)], "cpu_s")
    assert (found.value, found.low, found.high) == pytest.approx((1.2, 1.0, 1.4))


def test_more_pairs_in_a_life_make_no_interval_narrower() -> None:
    once = [a_pair(life, "q1", 1.0 + life / 10) for life in range(5)]
    assert over_lives(once * 20, "cpu_s") == over_lives(once, "cpu_s")


def test_a_life_is_the_geometric_mean_over_its_pairs() -> None:
    pairs = [
        a_pair(life, query, ratio, wall_ratio=2.0)
        for life in range(6)
        for query, ratio in (("q1", 2.0), ("q2", 8.0))
    ]
    cpu, wall = over_lives(pairs, "cpu_s"), over_lives(pairs, "wall_s")
    assert (cpu.value, cpu.low, cpu.high) == pytest.approx((4.0, 4.0, 4.0))
    assert (wall.value, wall.low, wall.high) == pytest.approx((2.0, 2.0, 2.0))


def test_too_few_lives_are_refused() -> None:
    with pytest.raises(ValueError, match="4 lives are too few"):
        over_lives([a_pair(life, "q1", 1.0) for life in range(4)], "cpu_s")


def a_run(*answers: tuple[str, int]) -> Run:
    columns = (Column("n", "bigint"),)
    results = tuple((query, QueryResult(columns, [(n,)], 0.0)) for query, n in answers)
    return Run(Figures(1.0, 1.0, 1), results)


def test_a_wrong_answer_is_found_also_after_right_ones_and_within_streams() -> None:
    judge = Judge({"q1": Answer([(7,)], ()), "q2": Answer([(8,)], ())})
    judge.check("plain", a_run(("q1", 7), ("q2", 8), ("q1", 7)))
    with pytest.raises(WrongAnswer, match="atoll: q1: 1 of 1 rows differ"):
        judge.check("atoll", a_run(("q2", 8), ("q1", 8)))


@pytest.fixture
def side(tmp_path: Path) -> Iterator[Side]:
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"create table t as select range as i from range({ROWS})")
    with Side("plain", plain, path, 2, TEXTS) as up:
        yield up


def test_a_side_answers_alone_and_in_streams(side: Side) -> None:
    alone = side.run("count")
    assert [(query, result.rows) for query, result in alone.answers] == [("count", [(ROWS,)])]
    assert alone.figures.wall_s > 0 and alone.figures.cpu_s > 0
    streams = side.run_streams([["count", "sum"], ["sum", "count"], ["count"]])
    found = Counter((query, result.rows[0][0]) for query, result in streams.answers)
    assert found == {("count", ROWS): 3, ("sum", ROWS * (ROWS - 1) // 2): 2}
    facts = side.facts()
    assert facts.settings["threads"] == "2" and facts.settings["pin_threads"] == "off"
    assert facts.scheduler == "DuckDB's own scheduler"
    assert facts.idle_s > 0 and facts.peak_bytes > 1 << 20


def test_a_query_that_fails_is_a_wrong_answer_and_the_side_goes_on(side: Side) -> None:
    with pytest.raises(WrongAnswer, match=r"plain: run: .*frob"):
        side.run("bad")
    with pytest.raises(WrongAnswer, match=r"plain: run_streams: .*frob"):
        side.run_streams([["count"], ["bad"]])
    assert side.run("count").answers[0][1].rows == [(ROWS,)]


def _exits(path: Path, threads: int) -> duckdb.DuckDBPyConnection:
    raise SystemExit(3)


def _refuses(path: Path, threads: int) -> duckdb.DuckDBPyConnection:
    raise OSError("no such database")


def test_a_side_that_is_gone_is_a_wrong_answer(tmp_path: Path) -> None:
    with (
        Side("atoll", _exits, tmp_path, 1, TEXTS) as side,
        pytest.raises(WrongAnswer, match="atoll: its process ended with 3"),
    ):
        side.run("count")


def test_why_a_side_does_not_open_is_said(tmp_path: Path) -> None:
    with (
        Side("atoll", _refuses, tmp_path, 1, TEXTS) as side,
        pytest.raises(WrongAnswer, match="atoll: run: OSError: no such database"),
    ):
        side.run("count")
