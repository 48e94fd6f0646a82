"""The answers of TPC-DS, JCC-H and the join by every engine, against DuckDB's on the same data."""

from __future__ import annotations

import pytest

from atoll.engines import registry
from atoll.host.local import LocalHost
from atoll.suites import registry as suites
from tests.parts.answers import QUERY_LIMIT_S, deployed
from tests.parts.postgresql import ORDINARY_USER
from tests.parts.suite_answers import Told, ask_all, ask_in_a_process

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


@pytest.mark.parametrize("name", ["tpcds", "jcch", "jcch:2"])
def test_all_answers_of_duckdb(name: str) -> None:
    suite, engine = suites.get(name), registry.get("duckdb")
    data = suite.ensure_data(0.01, host=LocalHost(), progress=lambda what, part: None)
    with deployed("duckdb", instances=1) as running:
        for table in data.tables:
            for statement in engine.attach(table):
                running.clients[0].execute(statement, timeout_s=QUERY_LIMIT_S)
        assert ask_all(running, engine, suite, data, "") == Told(right=len(suite.query_names))


@pytest.mark.installed
@pytest.mark.parametrize("engine", ["duckdb", "postgresql"])
def test_ten_answers_of_tpcds_three_of_jcch_and_both_of_the_join(engine: str) -> None:
    assert ask_in_a_process(ENGINES[engine], engine, "tpcds", 0.01, TEN) == Told(right=10)
    assert ask_in_a_process(ENGINES[engine], engine, "jcch", 0.01, THREE) == Told(right=3)
    assert ask_in_a_process(ENGINES[engine], engine, "join", 0.01) == Told(right=2)


@pytest.mark.long
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("suite", "scale_factor"), [("tpcds", 0.1), ("jcch", 0.1), ("join", 0.1)])
def test_all_answers_but_of_queries_that_the_engine_cannot_run(
    engine: str, suite: str, scale_factor: float
) -> None:
    told = ask_in_a_process(ENGINES[engine], engine, suite, scale_factor)
    assert told == Told(right=len(suites.get(suite).queries(engine))), told
