"""DuckDB on Atoll's workers: the answers of TPC-H, and plain DuckDB's to all 99 queries of TPC-DS.

On this machine's own places, and on made-up ones with eight chiplets, where between queries the
workers are moved: over one chiplet to all by hand, and by the adaptive policy in turns.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

import atoll.duckdb
from atoll.engines import registry
from atoll.engines.api import QueryResult
from atoll.suites.base import Answer
from atoll.suites.compare import compare
from tests.parts.answers import TPCH, data_at
from tests.parts.duckdb import answer_of, connect, result_of, scheduler

EIGHT_CHIPLETS = "node:2 chiplet:4 core:8"  # so that one holds all workers
SPREADS = (1, 2, 3, 4, 5, 6, 7, 8)
TPCDS_SCALE_FACTOR = 0.1


@dataclass(frozen=True, slots=True)
class Subject:
    connect: Callable[[str, bool], duckdb.DuckDBPyConnection]  # path, read_only
    spreads: tuple[int, ...]  # to be set by hand


@dataclass(frozen=True, slots=True)
class Tpcds:
    path: Path
    texts: dict[str, str]
    answers: dict[str, Answer]  # plain DuckDB's


@pytest.fixture(params=["here", "eight-chiplets"])
def subject(request: pytest.FixtureRequest) -> Subject:
    if request.param == "here":
        return Subject(lambda path, read_only: atoll.duckdb.connect(path, read_only=read_only), ())
    return Subject(
        lambda path, read_only: connect(path, places=EIGHT_CHIPLETS, read_only=read_only), SPREADS
    )


@pytest.mark.parametrize(
    "scale_factor", [0.01, 0.1, pytest.param(1.0, marks=pytest.mark.installed)]
)
def test_all_answers_of_tpch(subject: Subject, scale_factor: float) -> None:
    data = data_at(scale_factor)
    texts = TPCH.queries("duckdb")
    with subject.connect(":memory:", False) as connection:
        for table in data.tables:
            for statement in registry.get("duckdb").attach(table):
                connection.execute(statement)
        wrong = {
            query: said
            for query, result in _all_results(connection, texts, subject.spreads)
            if (said := compare(result, TPCH.expected(query, data)))
        }
        assert wrong == {}


def test_all_answers_of_tpcds(subject: Subject, tpcds: Tpcds) -> None:
    """At this scale factor no LIMIT cuts through rows that differ and that the order ties."""
    with subject.connect(str(tpcds.path), True) as connection:
        wrong = {
            query: said
            for query, result in _all_results(connection, tpcds.texts, subject.spreads)
            if (said := compare(result, tpcds.answers[query]))
        }
        assert wrong == {}


@pytest.fixture(scope="module")
def tpcds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tpcds]:
    path = tmp_path_factory.mktemp("tpcds") / "tpcds.duckdb"
    spec = importlib.util.find_spec("duckdb_extension_tpcds")
    assert spec is not None and spec.submodule_search_locations, "make setup installs it"
    extension = Path(
        spec.submodule_search_locations[0],
        f"extensions/v{duckdb.__version__}/tpcds.duckdb_extension",
    )
    with duckdb.connect(str(path), config={"pin_threads": "off"}) as connection:
        connection.load_extension(str(extension))
        connection.execute(f"call dsdgen(sf = {TPCDS_SCALE_FACTOR})")
        rows = connection.execute("select query_nr, query from tpcds_queries()").fetchall()
        texts = {f"q{number}": text.strip().rstrip(";") for number, text in rows}
        answers = {query: answer_of(connection, sql) for query, sql in texts.items()}
    assert len(texts) == 99
    # At this scale factor 18 answers have no row. All of them empty would prove nothing.
    assert sum(bool(answer.rows) for answer in answers.values()) > 75
    yield Tpcds(path, texts, answers)
    path.unlink()


def _all_results(
    connection: duckdb.DuckDBPyConnection, texts: Mapping[str, str], spreads: Sequence[int]
) -> Iterator[tuple[str, QueryResult]]:
    """Of each query, and in the end a check that Atoll's workers ran them, spread as set."""
    steered = scheduler(connection)
    for turn, (query, sql) in enumerate(texts.items()):
        if spreads and turn % 2:
            steered.set_spread(spreads[turn // 2 % len(spreads)])
        else:
            steered.policy = "adaptive"
        yield query, result_of(connection.execute(sql))
    ran = [record for record in steered.queries() if not record.failed]
    assert {sql[:200] for sql in texts.values()} <= {record.sql for record in ran}
    assert set(spreads) <= {record.spread for record in ran}
