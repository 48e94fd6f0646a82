"""DuckDB on Atoll's workers, used as DuckDB is: statements, relations, files, settings, threads."""

from __future__ import annotations

import os
import pickle
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pytest

import atoll.duckdb
from atoll.duckdb import POLICIES
from atoll.errors import EngineFailed, UsageError
from tests.parts.duckdb import connect, endless_query, kernel_threads, scheduler, wait_for


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with connect(workers=4) as connection:
        connection.execute("create table t as select range a, range % 7 b from range(1000)")
        yield connection


# Statements and relations -------------------------------------------------------------------------


def test_connection_is_duckdbs_own(con: duckdb.DuckDBPyConnection) -> None:
    assert isinstance(con, duckdb.DuckDBPyConnection)
    assert isinstance(con.sql("from t"), duckdb.DuckDBPyRelation)
    assert con.execute("from t") is con
    assert scheduler(con.cursor()) is scheduler(con.duplicate()) is scheduler(con)
    assert "Execute the given SQL query" in (con.execute.__doc__ or "")
    assert duckdb.execute("select 5", connection=con).fetchall() == [(5,)]
    assert duckdb.sql("from t limit 1", connection=con).fetchall() == [(0, 0)]
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(con)
    with pytest.raises(AttributeError):
        con.no_such_thing  # type: ignore[attr-defined]  # noqa: B018 - what fails
    with pytest.raises(TypeError, match="incompatible function arguments"):
        con.execute()  # type: ignore[call-arg]  # what fails


def test_statements(con: duckdb.DuckDBPyConnection) -> None:
    assert con.execute("select ?", [3]).fetchone() == (3,)
    assert con.execute(query="select $x", parameters={"x": 4}).fetchall() == [(4,)]
    assert con.execute("select 1; select 2").fetchall() == [(2,)]
    statements = con.extract_statements("select 5; select 6")
    assert [con.execute(one).fetchall() for one in statements] == [[(5,)], [(6,)]]
    assert [query.sql for query in scheduler(con).queries()][-2:] == ["select 5", " select 6"]
    con.execute("create table u (i int, j text)")
    con.executemany("insert into u values (?, ?)", [[1, "a"], [2, "b"]])
    assert con.execute("from u").fetchall() == [(1, "a"), (2, "b")]
    many = ", ".join(str(number) for number in range(20000))
    assert con.execute(f"select {many}").fetchone() == tuple(range(20000))
    assert con.execute("select 1 /* " + "x" * 3_000_000 + " */").fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("select", duckdb.ParserException),
        ("select 'a\0b'", duckdb.ParserException),
        ("from nothing", duckdb.CatalogException),
        ("select error('on purpose')", duckdb.InvalidInputException),
        ("select '\ud800'", UnicodeEncodeError),
        (5, duckdb.InvalidInputException),
    ],
)
def test_errors_are_duckdbs_own(
    con: duckdb.DuckDBPyConnection, text: Any, error: type[Exception]
) -> None:
    with pytest.raises(error) as caught:
        con.execute(text).fetchall()
    with duckdb.connect() as plain:
        plain.execute("create table t (a int)")
        with pytest.raises(error) as expected:
            plain.execute(text).fetchall()
    assert str(caught.value) == str(expected.value)
    assert scheduler(con).queries()[-1].failed
    assert con.execute("select 42").fetchall() == [(42,)]


def test_relations(con: duckdb.DuckDBPyConnection) -> None:
    kind = type(con.sql("from t"))
    chain = con.sql("from t").filter("b = 3").project("a").order("a desc").limit(2)
    assert type(chain) is kind and chain.fetchall() == [(997,), (990,)]
    assert type(con.table("t")["a"]) is type(con.table("t").b) is kind
    assert len(con.table("t")) == 1000
    assert con.table("t").aggregate("max(a)").fetchone() == (999,)
    assert con.sql("from t").union(con.sql("from t")).count("*").fetchall() == [(2000,)]
    assert "│" in str(con.sql("select 1")) and "│" in repr(con.sql("select 1"))
    con.register("registered", con.sql("select 8"))
    assert con.execute("from registered").fetchall() == [(8,)]


def test_names_are_found_where_the_caller_is(con: duckdb.DuckDBPyConnection) -> None:
    around = con.table("t").limit(2)

    def inside() -> Any:
        own = con.table("t").limit(3)
        assert own is not around
        return con.sql("select count(*) from own").fetchall(), con.execute("from own").fetchall()

    def closure() -> Any:
        assert around
        return con.execute("select count(*) from around").fetchall()

    assert inside() == ([(3,)], [(0, 0), (1, 1), (2, 2)])
    assert closure() == [(2,)]


def test_transactions(con: duckdb.DuckDBPyConnection) -> None:
    con.begin()
    con.execute("delete from t")
    con.rollback()
    assert con.execute("select count(*) from t").fetchall() == [(1000,)]


# Files and settings -------------------------------------------------------------------------------


def test_paths(tmp_path: Path) -> None:
    path = tmp_path / "ünï 'cödé'.duckdb"
    with atoll.duckdb.connect(path, workers=2) as con:
        con.execute("create table t as select 42 a")
    read = "import duckdb, sys; print(duckdb.connect(sys.argv[1]).execute('from t').fetchall())"
    done = subprocess.run([sys.executable, "-c", read, str(path)], capture_output=True, text=True)
    assert done.stdout == "[(42,)]\n", done.stderr
    with connect(path, read_only=True) as con:
        assert con.execute("from t").fetchall() == [(42,)]
        with pytest.raises(duckdb.InvalidInputException, match="read-only"):
            con.execute("insert into t values (43)")
    with pytest.raises(duckdb.IOException):
        connect(tmp_path / "no" / "folder.duckdb")
    with connect() as con:
        con.execute(f"attach '{tmp_path}/other.duckdb' as o; create table o.t as select 42 a")
        assert con.execute("from o.t").fetchall() == [(42,)]
    assert duckdb.connect(str(tmp_path / "other.duckdb")).execute("from t").fetchall() == [(42,)]


def test_named_in_memory_databases_are_shared() -> None:
    with connect(":memory:shared") as one, connect(":memory:shared") as other, connect() as third:
        one.execute("create table t as select 42 a")
        assert other.execute("from t").fetchall() == [(42,)]
        assert scheduler(one) is scheduler(other) is not scheduler(third)
        with pytest.raises(UsageError, match=r"adaptive.*local"):
            connect(":memory:shared", policy="local")


def test_macros_of_a_database_are_not_taken_for_ours(tmp_path: Path) -> None:
    path = str(tmp_path / "data.duckdb")
    with duckdb.connect(path) as plain:
        plain.execute("create macro atoll_pool() as -1")
        plain.execute("create macro sum(x) as 77777")
        plain.execute(
            "create macro duckdb_memory() as table select 'X' tag, error('run') memory_usage_bytes"
        )
    with connect(path) as con, connect(path) as again:
        assert scheduler(again) is scheduler(con)
        con.execute("select i % 5000 k, count(*) from range(100000) t(i) group by k").fetchall()
        found = scheduler(con).queries()[-1].working_set_bytes
        assert found is not None and found != 77777


def test_one_file_with_and_without_atoll(tmp_path: Path) -> None:
    path = str(tmp_path / "data.duckdb")
    with duckdb.connect(path), pytest.raises(EngineFailed, match=r"through duckdb\.connect"):
        connect(path)
    con = connect(path, workers=4)
    same = {"threads": 4, "external_threads": 4, "pin_threads": "off"}
    config: Any = same | {"allow_unsigned_extensions": True}
    plain = duckdb.connect(path, config=config)
    con.close()
    assert plain.execute("select sum(range) from range(1000000)").fetchall() == [(499999500000,)]
    with pytest.raises(EngineFailed, match="by connections that are not Atoll's; close these"):
        connect(path, workers=4)
    plain.close()
    with connect(path, workers=4) as con:
        assert con.execute("select 42").fetchall() == [(42,)]


def test_settings() -> None:
    with connect(workers=None, config={"threads": 3, "memory_limit": "200MB"}) as con:
        assert scheduler(con).workers == 3
        got = "select current_setting('threads'), current_setting('allow_unsigned_extensions')"
        assert con.execute(got).fetchall() == [(3, False)]
    with atoll.duckdb.connect(THREADS=3) as con:
        assert scheduler(con).workers == 3
    with connect(config={"allow_unsigned_extensions": True}) as con:
        assert con.execute(got).fetchall() == [(8, True)]
    with connect(config={"lock_configuration": True}) as con:
        assert con.execute("select 42").fetchall() == [(42,)]
        with pytest.raises(duckdb.InvalidInputException, match="locked"):
            con.execute("set allow_unsigned_extensions = true")
    with pytest.raises(duckdb.InvalidInputException, match="no_such_setting"):
        connect(config={"no_such_setting": 1})


def test_spills(tmp_path: Path) -> None:
    config = {"memory_limit": "60MB", "temp_directory": str(tmp_path)}
    with connect(workers=4, config=config) as con:
        sql = "select range || 'abcdefghijklmnop' y, range x from range(1000000) order by y"
        counted = con.execute(f"select count(*), sum(x) from ({sql})").fetchall()
        assert counted == [(1000000, 499999500000)]
    with connect(workers=4, config={"memory_limit": "20MB", "temp_directory": ""}) as con:
        with pytest.raises(duckdb.OutOfMemoryException):
            con.execute(
                "select count(*) from (select range || '', 1 from range(3000000) group by 1)"
            )
        assert con.execute("select 42").fetchall() == [(42,)]


# Threads ------------------------------------------------------------------------------------------


def test_threads_end_while_another_query_runs(con: duckdb.DuckDBPyConnection) -> None:
    def query() -> None:
        assert con.cursor().execute("select count(*) from t").fetchall() == [(1000,)]

    with endless_query(con.cursor()) as endless:
        for _ in range(10):
            thread = threading.Thread(target=query)
            thread.start()
            thread.join()
        callers = [seat for seat in scheduler(con).threads() if seat.role == "caller"]
        assert [seat.tid for seat in callers] == [endless.native_id]


def test_one_connection_in_many_threads(con: duckdb.DuckDBPyConnection) -> None:
    with ThreadPoolExecutor(4) as threads:
        for _ in threads.map(lambda n: con.execute(f"select sum(a) + {n} from t"), range(100)):
            pass
    assert len(scheduler(con).queries()) == 101
    con.execute("select 42")
    assert scheduler(con).queries()[-1].alone
    assert [s for s in scheduler(con).threads() if s.role == "caller"] == []


def test_hammered() -> None:
    """Cursors in eight threads, closed and interrupted at any time, beside changes of policy."""
    seconds = 4.0
    wrong: list[object] = []
    interrupted = 0
    before = os.sched_getaffinity(0)
    con = connect()
    con.execute("create table t as select range i from range(300000)")
    live: dict[int, duckdb.DuckDBPyConnection] = {}
    end = time.monotonic() + seconds

    def query(number: int) -> int:
        dice = random.Random(number)
        answered = 0
        # The last one has no more interrupts to fear; on a slow machine every other may have one.
        while time.monotonic() < end or not (answered or wrong):
            cursor = live[number] = con.cursor()
            k = dice.randrange(2, 1000)
            try:
                got = cursor.execute(f"select count(*), sum(i) from t where i % {k} = 0").fetchall()
                expected = [((299999 // k) + 1, k * (299999 // k) * (299999 // k + 1) // 2)]
                if got != expected:
                    wrong.append((k, got))
                answered += 1
            except duckdb.InterruptException:
                pass
            except Exception as error:
                wrong.append(error)
            if dice.random() < 0.5:
                cursor.close()
        return answered

    with ThreadPoolExecutor(8) as threads:
        running = [threads.submit(query, number) for number in range(8)]
        dice = random.Random(8)
        while time.monotonic() < end:
            time.sleep(0.003)
            if live:
                with suppress(duckdb.ConnectionException):  # closed by now
                    dice.choice(list(live.values())).interrupt()
                    interrupted += 1
            with suppress(UsageError):  # a query runs
                scheduler(con).policy = dice.choice(POLICIES)
            assert len(scheduler(con).threads()) >= 7
        answered = sum(one.result() for one in running)
    assert wrong == []
    assert answered > 0 and interrupted > 0
    assert os.sched_getaffinity(0) == before
    live.clear()
    con.close()
    wait_for(lambda: not any(name.startswith("atoll-") for name, _ in kernel_threads().values()))
