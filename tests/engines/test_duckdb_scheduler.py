"""DuckDB on Atoll's workers: where its threads sit, what policies do, what queries report.

On made-up places: many virtual cores on the real CPUs. What the kernel says of each thread must be
what the scheduler says.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import duckdb
import pytest

from atoll.duckdb import POLICIES, Scheduler
from atoll.errors import UsageError
from atoll.schema.duckdb_profile import DuckDBProfile
from tests.parts.duckdb import (
    ENDLESS,
    WORKERS,
    connect,
    endless_query,
    kernel_threads,
    scheduler,
    wait_for,
)

SUM = "select sum(range) from range(1000000)"


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with connect() as connection:
        yield connection


@pytest.fixture
def own_mask() -> Iterator[None]:
    """The calling thread has the same mask after the test."""
    before = os.sched_getaffinity(0)
    yield
    assert os.sched_getaffinity(0) == before


def _assert_as_the_kernel_says(of: Scheduler) -> None:
    threads = kernel_threads()
    for seat in of.threads():
        name, mask = threads[seat.tid]
        assert mask == seat.cpus
        if seat.role == "worker":
            assert name == f"atoll-duck-{seat.rank}"


# Workers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
def test_workers_sit_where_the_scheduler_says(policy: str) -> None:
    before = set(kernel_threads())
    with connect(policy=policy) as con:
        of = scheduler(con)
        assert [seat.rank for seat in of.threads()] == list(range(1, WORKERS))
        if policy == "none":
            everything = tuple(sorted(os.sched_getaffinity(0)))
            threads = kernel_threads()
            assert {threads[seat.tid][1] for seat in of.threads()} == {everything}
            assert {(seat.cpus, seat.chiplet) for seat in of.threads()} == {((), None)}
        else:
            _assert_as_the_kernel_says(of)
        ours = sorted(kernel_threads()[tid][0] for tid in set(kernel_threads()) - before)
        workers = sorted(f"atoll-duck-{rank}" for rank in range(1, WORKERS))
        assert [name for name in ours if name.startswith("atoll-duck-")] == workers
        # Beside them: the caller's seat and the governor. None is DuckDB's own.
        assert len(ours) == WORKERS + 1
        con.execute("create table t as select range i from range(3000000)")
        con.execute("select i % 1000, count(*) from t group by 1").fetchall()
        assert len(set(kernel_threads()) - before) == WORKERS + 1
    wait_for(lambda: set(kernel_threads()) <= before)


@pytest.mark.parametrize(
    ("policy", "spread"), [("adaptive", 8), ("local", 4), ("distributed", 8), ("none", 4)]
)
def test_policies_spread_as_they_say(policy: str, spread: int) -> None:
    """Two cores a chiplet: eight workers need four chiplets at least."""
    with connect(policy=policy) as con:
        of = scheduler(con)
        con.execute(SUM).fetchall()
        assert (of.policy, of.workers, of.chiplets, of.spread) == (policy, WORKERS, 8, spread)
        record = of.queries()[-1]
        assert (record.policy, record.spread) == (policy, spread)
        assert of.spreads()[-1].spread == spread


def test_policy_changes_between_queries(con: duckdb.DuckDBPyConnection) -> None:
    of = scheduler(con)
    for policy, spread in [("local", 4), ("distributed", 8), ("local", 4), ("adaptive", 8)]:
        of.policy = policy  # type: ignore[assignment]  # one of them
        con.execute(SUM).fetchall()
        assert (of.policy, of.spread) == (policy, spread)
        _assert_as_the_kernel_says(of)
    of.policy = "none"
    everything = tuple(sorted(os.sched_getaffinity(0)))
    threads = kernel_threads()
    assert {threads[seat.tid][1] for seat in of.threads()} == {everything}
    of.policy = "local"
    _assert_as_the_kernel_says(of)
    changes = [change.spread for change in of.spreads()]
    assert changes[-4:] == [8, 4, 8, 4]
    assert all(a.t_s <= b.t_s for a, b in zip(of.spreads(), of.spreads()[1:], strict=False))


def test_spread_by_hand(con: duckdb.DuckDBPyConnection) -> None:
    of = scheduler(con)
    for spread in (4, 5, 8, 6):
        of.set_spread(spread)
        con.execute(SUM).fetchall()
        assert of.spread == spread
        assert of.queries()[-1].reason == "set by hand"
        _assert_as_the_kernel_says(of)
    for spread in (-1, 0, 3, 9):
        with pytest.raises(UsageError, match=rf"{spread}.*\b4\b.*\b8\b"):
            of.set_spread(spread)
    assert of.spread == 6
    of.policy = "distributed"
    assert of.spread == 8


def test_nothing_changes_while_a_query_runs(con: duckdb.DuckDBPyConnection) -> None:
    of = scheduler(con)
    with endless_query(con.cursor()):
        with pytest.raises(UsageError, match="may not change while a query"):
            of.policy = "local"
        with pytest.raises(UsageError, match="may not change while a query"):
            of.set_spread(4)
        assert of.policy == "adaptive"
    of.policy = "local"
    assert of.spread == 4


def test_no_such_policy(con: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(UsageError, match="adaptive, local, distributed, none"):
        scheduler(con).policy = "wide"  # type: ignore[assignment]  # what is refused


# Callers ------------------------------------------------------------------------------------------


def test_caller_is_bound_during_its_query(con: duckdb.DuckDBPyConnection) -> None:
    before = os.sched_getaffinity(0)
    scheduler(con).set_spread(4)
    with endless_query(con.cursor()) as thread:
        (caller,) = [seat for seat in scheduler(con).threads() if seat.role == "caller"]
        assert (caller.tid, caller.rank) == (thread.native_id, 0)
        assert caller.cpus and caller.chiplet is not None
        _assert_as_the_kernel_says(scheduler(con))
    assert [seat for seat in scheduler(con).threads() if seat.role == "caller"] == []
    assert os.sched_getaffinity(0) == before


def test_caller_keeps_its_mask_without_a_policy() -> None:
    with connect(policy="none") as con, endless_query(con.cursor()) as thread:
        (caller,) = [seat for seat in scheduler(con).threads() if seat.role == "caller"]
        assert (caller.tid, caller.cpus) == (thread.native_id, ())
        assert thread.native_id is not None
        assert os.sched_getaffinity(thread.native_id) == os.sched_getaffinity(0)


def test_callers_side_by_side(con: duckdb.DuckDBPyConnection) -> None:
    with endless_query(con.cursor()) as one, endless_query(con.cursor()) as other:
        callers = {seat.tid for seat in scheduler(con).threads() if seat.role == "caller"}
        assert callers == {one.native_id, other.native_id}
        _assert_as_the_kernel_says(scheduler(con))
    assert [query.alone for query in scheduler(con).queries()] == [False, False]


@pytest.mark.usefixtures("own_mask")
def test_mask_is_given_back_after_errors(con: duckdb.DuckDBPyConnection) -> None:
    def fails(_: int) -> int:
        raise ValueError("on purpose")

    con.create_function("fails", fails)
    one_cpu = {min(os.sched_getaffinity(0))}
    everything = os.sched_getaffinity(0)
    os.sched_setaffinity(0, one_cpu)
    try:
        with pytest.raises(duckdb.CatalogException):
            con.execute("select * from nothing")
        assert os.sched_getaffinity(0) == one_cpu
        with pytest.raises(duckdb.InvalidInputException, match="on purpose"):
            con.execute("select fails(range) from range(10)").fetchall()
        assert os.sched_getaffinity(0) == one_cpu
    finally:
        os.sched_setaffinity(0, everything)
    assert [query.failed for query in scheduler(con).queries()] == [True, True]


@pytest.mark.usefixtures("own_mask")
def test_interrupts(con: duckdb.DuckDBPyConnection) -> None:
    ended = threading.Event()

    def interrupt() -> None:
        while not ended.wait(0.01):  # one that comes before DuckDB has begun is forgotten
            con.interrupt()

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(duckdb.InterruptException):
            con.execute(ENDLESS).fetchall()
    finally:
        ended.set()
        thread.join()
    assert con.execute("select 42").fetchall() == [(42,)]
    assert [query.failed for query in scheduler(con).queries()] == [True, False]


@pytest.mark.usefixtures("own_mask")
def test_control_c(con: duckdb.DuckDBPyConnection) -> None:
    def press() -> None:
        wait_for(lambda: any(seat.role == "caller" for seat in scheduler(con).threads()))
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    # DuckDB 1.5's own error; its query goes on until the connection is notified.
    with pytest.raises(RuntimeError, match="Query interrupted") as caught:
        con.execute(ENDLESS).fetchall()
    thread.join()
    assert isinstance(caught.value.__cause__, KeyboardInterrupt)
    con.interrupt()
    assert con.execute("select 42").fetchall() == [(42,)]


def test_functions_in_python_run_on_workers_and_query(con: duckdb.DuckDBPyConnection) -> None:
    seen: set[int] = set()

    def twice(x: int) -> int:
        seen.add(threading.get_native_id())
        (row,) = con.cursor().execute("select 2 * ?", [x]).fetchall()
        return int(row[0])

    con.create_function("twice", twice)
    con.execute("create table t as select range i from range(500000)")
    sql = "select sum(twice(i)), count(*) from t where i % 5000 = 0"
    assert con.execute(sql).fetchall() == [(2 * sum(range(0, 500000, 5000)), 100)]
    own = {seat.tid for seat in scheduler(con).threads()} | {threading.get_native_id()}
    assert seen <= own
    _assert_as_the_kernel_says(scheduler(con))


def test_progress(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("set progress_bar_time = 1")
    con.execute("set enable_progress_bar_print = false")
    cursor = con.cursor()
    with endless_query(cursor):
        assert -1 <= cursor.query_progress() <= 100


# What queries report ----------------------------------------------------------------------------


def test_record_of_a_query(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("create table t as select range i from range(4000000)")
    sql = "select count(*) from (select i % 500000 k, count(*) from t group by k)"
    assert con.execute(sql).fetchall() == [(500000,)]
    record = scheduler(con).queries()[-1]
    assert record.sql == sql and not record.failed and record.alone
    assert 0 < record.caller_cpu_s <= record.cpu_s
    # Hash tables of half a million keys, whatever it is that DuckDB adds to 16 bytes each.
    assert record.working_set_bytes is not None
    assert 500000 * 16 < record.working_set_bytes < 2**31
    assert record.wall_s > 0 and record.started_s > 0
    # No more than all CPUs for all of the time, but for the coarseness of clocks.
    assert record.cpu_s <= record.wall_s * len(os.sched_getaffinity(0)) + 0.05


def test_record_of_a_query_that_is_fetched_bit_by_bit(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("select range from range(100000)")
    first = scheduler(con).queries()[-1]
    rows = 0
    while part := con.fetchmany(20000):
        rows += len(part)
    (record,) = scheduler(con).queries()
    assert rows == 100000
    assert record.wall_s > first.wall_s and record.caller_cpu_s > first.caller_cpu_s


def test_records_of_relations(con: duckdb.DuckDBPyConnection) -> None:
    relation = con.sql("select range i from range(10)").filter("i > 6")
    assert scheduler(con).queries() == ()
    assert relation.fetchone() == (7,)
    assert relation.fetchmany(5) == [(8,), (9,)]
    (record,) = scheduler(con).queries()
    assert record.sql.endswith("WHERE (i > 6)")


def test_relations_are_bound_for_their_first_row_alone(con: duckdb.DuckDBPyConnection) -> None:
    relation = con.sql("select range i from range(100000)")
    assert relation.fetchone() == (0,)
    (first,) = scheduler(con).queries()
    for row in range(1, 10000):
        assert relation.fetchone() == (row,)
    assert scheduler(con).queries() == (first,)
    assert len(relation.fetchall()) == 90000  # goes on with it
    (record,) = scheduler(con).queries()
    assert record.wall_s > first.wall_s
    # It was read to its end, so this runs it again.
    assert relation.fetchone() == (0,) and len(scheduler(con).queries()) == 2


def test_a_relation_that_was_executed_is_one_query(con: duckdb.DuckDBPyConnection) -> None:
    relation = con.sql("select range i from range(10)")
    relation.execute()
    assert len(relation.fetchall()) == 10
    assert len(scheduler(con).queries()) == 1


def test_long_texts_are_cut_between_characters(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("select '" + "é" * 300 + "'").fetchall()
    assert scheduler(con).queries()[-1].sql == "select '" + "é" * 96


def test_profile_can_be_written_and_read(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(SUM).fetchall()
    scheduler(con).set_spread(5)
    profile = scheduler(con).profile()
    again = DuckDBProfile.model_validate_json(profile.model_dump_json())
    assert again == profile
    assert (again.policy, again.spread, again.workers) == ("adaptive", 5, WORKERS)
    assert len(again.threads) == WORKERS - 1 and len(again.queries) == 1
    assert [change.spread for change in again.spreads][-2:] == [8, 5]


def test_scheduler_tells_what_was_after_the_last_close() -> None:
    con = connect()
    of = scheduler(con)
    con.execute(SUM).fetchall()
    con.close()
    assert len(of.queries()) == 1 and len(of.profile().queries) == 1
    assert "workers=8" in repr(of)
    with pytest.raises(UsageError, match="closed"):
        of.policy = "local"
    with pytest.raises(UsageError, match="closed"):
        of.set_spread(4)


@pytest.mark.parametrize("workers", [1, 2, 3, 16, 64])
def test_any_number_of_workers(workers: int) -> None:
    with connect(workers=workers) as con:
        con.execute("create table t as select range i from range(1000000)")
        assert con.execute("select sum(i) from t").fetchall() == [(499999500000,)]
        of = scheduler(con)
        assert of.workers == workers and len(of.threads()) == workers - 1
        _assert_as_the_kernel_says(of)
