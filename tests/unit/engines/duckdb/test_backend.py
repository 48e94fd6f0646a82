"""DuckDB inside the SQL host: what it counts of a query, under both schedulers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from atoll.engines.api import Column
from atoll.engines.duckdb.backend import AtollBackend, DuckDBBackend
from atoll.engines.duckdb.engine import IDLE_THREAD, TASK_THREAD
from atoll.engines.sql.host import Result

THREAD_NAME = Path("/proc/thread-self/comm")
JOIN = "select count(*) from range(300000) a join range(300000) b using (range)"


@pytest.fixture(params=[DuckDBBackend, AtollBackend])
def backend(request: pytest.FixtureRequest) -> Iterator[DuckDBBackend]:
    made: DuckDBBackend = request.param({"threads": 2})
    yield made
    made.close()


def run(backend: DuckDBBackend, sql: str, ticket: str) -> Result:
    with backend.around(ticket):
        return backend.run(sql, ticket)


def test_the_peak_of_a_query_is_duckdbs_own(backend: DuckDBBackend) -> None:
    run(backend, "create or replace view v as select 1 as a", "view")
    assert run(backend, "select a from v", "small")[1] == [(1,)]
    run(backend, JOIN, "large")
    found = backend.work()
    assert set(found) == {"small", "large"}, "a statement that is no query has no memory to tell"
    small, large = found["small"].peak_bytes, found["large"].peak_bytes
    assert small is not None and large is not None
    assert small < 300_000 * 8 < large, "the join holds a side"
    assert found["large"].peak_source == "system_peak_buffer_memory"
    assert backend.work() == {}, "the counts of a query come once"


def test_a_query_is_prepared_and_counted_around_its_clock(backend: DuckDBBackend) -> None:
    with backend.around("a"):
        cursor = backend._running["a"]
        assert THREAD_NAME.read_text().strip() == TASK_THREAD
        assert backend.run("select 1 as one", "a") == ([Column("one", "integer")], [(1,)])
        assert backend.work() == {}
    assert (set(backend.work()), backend._running) == ({"a"}, {})
    assert THREAD_NAME.read_text().strip() == IDLE_THREAD
    with pytest.raises(duckdb.Error):
        run(backend, "select nothing", "b")
    assert (backend._running, THREAD_NAME.read_text().strip()) == ({}, IDLE_THREAD), (
        "also after one that failed"
    )
    with pytest.raises(duckdb.ConnectionException):
        cursor.execute("select 1")
    assert run(backend, "select 2", "c")[1] == [(2,)]
    assert set(backend.work()) == {"c"}


def test_counting_is_no_query_to_atolls_scheduler() -> None:
    backend = AtollBackend({"threads": 2})
    try:
        run(backend, JOIN, "a")
        texts = [query.sql for query in backend._scheduler.queries()]
        assert texts == [JOIN]
    finally:
        backend.close()


def test_a_profile_has_the_operators_of_the_query(backend: DuckDBBackend) -> None:
    found = {one.operator: one for one in backend.profile(JOIN, "a").operators}
    join = found["HASH_JOIN"]
    assert (join.kind, join.join, join.rows) == ("join", "inner", 300_000)
    assert join.own_s
    assert backend.work() == {}, "it was no query of a pass"
