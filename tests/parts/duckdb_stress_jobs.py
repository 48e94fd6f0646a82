"""What the sessions of the DuckDB stress run do: each job checks its own answers.

A query ends in one of four ways, which `Tally` counts: with the right answer, with an interrupt
that was sent to it, with the error that it was made to end with, or left half-read. Anything else
is a fault and ends the run.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import duckdb

from atoll.suites.base import Answer
from atoll.suites.compare import compare
from tests.parts.duckdb import answer_of, result_of

_numbers = itertools.count(1)


class Fault(Exception):
    """A wrong answer, an interrupt that nobody sent, an error that was not to come."""


class Tally:
    """Counts by name; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def add(self, name: str) -> None:
        with self._lock:
            self._counts[name] += 1

    def __getitem__(self, name: str) -> int:
        with self._lock:
            return self._counts[name]

    def text(self) -> str:
        with self._lock:
            return ", ".join(f"{count} {name}" for name, count in sorted(self._counts.items()))


@dataclass(frozen=True, slots=True)
class Tpch:
    texts: tuple[str, ...]
    answers: tuple[Answer, ...]  # plain DuckDB's
    customers: int

    @staticmethod
    def of(connection: duckdb.DuckDBPyConnection, texts: tuple[str, ...]) -> Tpch:
        """What `connection`, a plain one, answers."""
        answers = tuple(answer_of(connection, sql) for sql in texts)
        found = connection.execute("select count(*) from customer").fetchone()
        assert found is not None
        return Tpch(texts, answers, found[0])


@dataclass(eq=False)
class Session:
    """One connection, used by one thread; others may send it interrupts while a query runs."""

    connection: Any
    rng: random.Random
    tally: Tally
    tpch: Tpch | None  # None: the database has no such tables, but may be written to
    lock: threading.Lock = field(default_factory=threading.Lock)
    running: bool = False
    interrupts: int = 0  # sent to the query that runs

    def interrupt(self) -> bool:
        """By another thread. False: no query runs."""
        with self.lock:
            if not self.running:
                return False
            self.interrupts += 1
            self.connection.interrupt()
        return True

    def run(self) -> None:
        """One job, chosen by chance."""
        jobs = _READING if self.tpch is not None else _WRITING
        job = self.rng.choices(list(jobs), weights=list(jobs.values()))[0]
        with contextlib.suppress(_Interrupted):
            job(self)

    @contextlib.contextmanager
    def query(
        self, error: type[Exception] | None = None, ends: str = "right answers"
    ) -> Iterator[Any]:
        """A query, to its last row. `error`: what it must end with."""
        self.tally.add("queries")
        with self.lock:
            self.running, self.interrupts = True, 0
        try:
            yield self.connection
        except duckdb.Error as fault:
            sent = self._over()
            if "INTERRUPT" in str(fault).upper():
                if not sent:
                    raise Fault("interrupted, and nobody did") from fault
                self.tally.add("interrupted")
                raise _Interrupted from None
            if error is None or not isinstance(fault, error):
                raise
            self.tally.add("expected errors")
            return
        finally:
            self._over()
        if error is not None:
            raise Fault(f"{error.__name__} did not come")
        self.tally.add(ends)

    def _over(self) -> int:
        with self.lock:
            self.running = False
        return self.interrupts

    def ask(self, sql: str, parameters: list[Any] | None = None) -> list[tuple[Any, ...]]:
        with self.query() as connection:
            rows: list[tuple[Any, ...]] = connection.execute(sql, parameters).fetchall()
        return rows


class _Interrupted(Exception):
    """The job ends here."""


def _want(found: object, wanted: object) -> None:
    if found != wanted:
        raise Fault(f"wrong answer: {found!r} instead of {wanted!r}")


# Jobs of databases with TPC-H's tables ------------------------------------------------------------


def _tpch(session: Session) -> None:
    assert session.tpch is not None
    number = session.rng.randrange(len(session.tpch.texts))
    with session.query() as connection:
        result = result_of(connection.execute(session.tpch.texts[number]))
    said = compare(result, session.tpch.answers[number])
    if said:
        raise Fault(f"wrong answer of TPC-H {session.tpch.texts[number][:60]!r}: {said}")


def _point(session: Session) -> None:
    assert session.tpch is not None
    for _ in range(session.rng.randint(1, 8)):
        key = session.rng.randint(1, session.tpch.customers)
        rows = session.ask("select c_name from customer where c_custkey = ?", [key])
        _want(rows, [(f"Customer#{key:09d}",)])


def _fails_in_a_worker(session: Session) -> None:
    with session.query(duckdb.ConversionException) as connection:
        connection.execute("select sum(cast(l_comment as integer)) from lineitem").fetchall()


def _relation(session: Session) -> None:
    assert session.tpch is not None
    keys = session.rng.randint(1, session.tpch.customers)
    with session.query() as connection:
        relation = connection.table("customer").filter(f"c_custkey <= {keys}")
        rows = relation.aggregate("count(*), sum(c_custkey)").fetchall()
    _want(rows, [(keys, keys * (keys + 1) // 2)])


# Jobs of any database -----------------------------------------------------------------------------


def _fails_at_once(session: Session) -> None:
    with session.query(duckdb.CatalogException) as connection:
        connection.execute("select * from no_such_table")
    with session.query(duckdb.ParserException) as connection:
        connection.execute("selekt 1")


def _left_half_read(session: Session) -> None:
    """Streamed, as DuckDB does it for `execute`: the rest of it is never made."""
    taken = session.rng.randint(1, 30_000)
    with session.query(ends="left half-read") as connection:
        connection.execute("select i from range(3_000_000) t(i) where i % 3 = 0")
        rows = connection.fetchmany(taken)
    _want(rows[-1:], [(3 * (taken - 1),)])
    if session.rng.random() < 0.5:
        with session.query(ends="left half-read") as connection:
            first = connection.execute("select i from range(500_000) t(i)").fetchone()
        _want(first, (0,))


def _relation_left(session: Session) -> None:
    with session.query(ends="left half-read") as connection:
        relation = connection.sql("select i, i * 2 as j from range(400_000) t(i)")
        first = relation.fetchone()
    _want(first, (0, 0))
    with session.query() as connection:
        rows = relation.filter("i < 100_000").aggregate("sum(j)").fetchall()
    _want(rows, [(100_000 * 99_999,)])


def _sort(session: Session) -> None:
    last = session.rng.randint(1, 200_000)
    with session.query() as connection:
        columns = connection.execute(
            f"select i from range({last}) t(i) order by hash(i), i"
        ).fetchnumpy()
    _want((len(columns["i"]), int(columns["i"].sum())), (last, last * (last - 1) // 2))


def _udf(session: Session) -> None:
    """A function in Python, called by workers. A row takes a millisecond and more, in plain DuckDB
    too: who waits for the query asks for the GIL all the time."""
    name = f"f{next(_numbers)}"
    bad = session.rng.random() < 0.3

    def function(i: int) -> int:
        if bad and i == 50:
            raise ValueError("made to fail")
        return i + 1

    session.connection.create_function(name, function, ["BIGINT"], "BIGINT")
    try:
        with session.query(duckdb.InvalidInputException if bad else None) as connection:
            rows = connection.execute(f"select sum({name}(i)) from range(100) t(i)").fetchall()
            _want(rows, [(100 * 101 // 2,)])
    finally:
        session.connection.remove_function(name)


# Jobs of databases that may be written to ---------------------------------------------------------


def _transaction(session: Session) -> None:
    """All of it or nothing of it is there, interrupted or not."""
    table, rows = f"t{next(_numbers)}", session.rng.randint(1, 20_000)
    ends = session.rng.choice(["commit", "rollback", "at once", "many"])
    count = min(rows, 20) if ends == "many" else rows
    session.connection.execute(f"create table {table} (i bigint, s varchar)")
    try:
        try:
            _insert(session, table, count, ends)
            allowed = {0} if ends == "rollback" else {count}
        except _Interrupted:
            with contextlib.suppress(duckdb.Error):
                session.connection.rollback()
            allowed = {0, count} if ends == "at once" else {0, *range(count + 1)}
            if ends in ("commit", "rollback"):
                allowed = {0}
        found = session.ask(f"select count(*), coalesce(sum(i), 0) from {table}")[0]
        if found[0] not in allowed or found[1] != found[0] * (found[0] - 1) // 2:
            raise Fault(f"{ends}: {found} after {count} rows")
    finally:
        session.connection.execute(f"drop table {table}")


def _insert(session: Session, table: str, rows: int, ends: str) -> None:
    text = f"insert into {table} select i, 'row ' || i from range({rows}) t(i)"
    if ends == "many":
        with session.query() as connection:
            values = [[i, f"row {i}"] for i in range(rows)]
            connection.executemany(f"insert into {table} values (?, ?)", values)
    elif ends == "at once":
        session.ask(text)
    else:
        session.connection.begin()
        session.ask(text)
        # Not to be interrupted: afterwards nobody could say what became of it.
        getattr(session.connection, ends)()


_Jobs = dict[Callable[[Session], None], int]
_ANY: _Jobs = {_fails_at_once: 2, _left_half_read: 3, _relation_left: 2, _sort: 3, _udf: 2}
_READING: _Jobs = {**_ANY, _tpch: 12, _point: 6, _fails_in_a_worker: 2, _relation: 3}
_WRITING: _Jobs = {**_ANY, _transaction: 10}
