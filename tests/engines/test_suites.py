"""The answers of TPC-DS, JCC-H and the join by every engine, against DuckDB's on the same data."""

from __future__ import annotations

import pytest

from atoll.suites import registry as suites
from tests.parts.postgresql import ORDINARY_USER
from tests.parts.suite_answers import Told, ask_in_a_process

# Windows, a rollup, set operations, a quotient, NULLs in the order, a correlated subquery.
TEN = "1,2,9,18,22,38,47,53,67,93"
# Both kinds of parameters, and texts that are not TPC-H's.
THREE = "7,18,9p"
ENGINES = {
    "duckdb": (),
    "postgresql": ORDINARY_USER,
    "mariadb": ORDINARY_USER,
    "spark": (),
    "trino": (),
    "presto": (),
}


@pytest.mark.parametrize(
    "engine",
    [
        pytest.param("duckdb", marks=pytest.mark.long),
        pytest.param("postgresql", marks=pytest.mark.installed),
    ],
)
def test_ten_answers_of_tpcds_three_of_jcch_and_both_of_the_join(engine: str) -> None:
    assert ask_in_a_process(ENGINES[engine], engine, "tpcds", 0.01, TEN) == Told(right=10)
    assert ask_in_a_process(ENGINES[engine], engine, "jcch", 0.01, THREE) == Told(right=3)
    assert ask_in_a_process(ENGINES[engine], engine, "join", 0.01) == Told(right=2)
    assert ask_in_a_process(ENGINES[engine], engine, "tpch:joins", 0.01, "17,22") == Told(right=2)


@pytest.mark.long
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("suite", ["tpcds", "jcch", "join"])
def test_all_answers_but_of_queries_that_the_engine_cannot_run(engine: str, suite: str) -> None:
    told = ask_in_a_process(ENGINES[engine], engine, suite, 0.1)
    assert told == Told(right=len(suites.get(suite).queries(engine))), told


@pytest.mark.long
def test_all_answers_of_jcch_with_other_parameters() -> None:
    told = ask_in_a_process((), "duckdb", "jcch:2", 0.1)
    assert told == Told(right=len(suites.get("jcch:2").query_names)), told
