"""The connections of a database on Atoll's workers, and what ends with the last of them."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from atoll import _duckdb
from atoll.duckdb import opening
from atoll.duckdb.scheduler import Scheduler
from atoll.errors import EngineFailed
from tests.parts.faults import fails


class _Pool:
    """Counts its calls."""

    def __init__(self) -> None:
        self.stops: list[str] = []
        self.forgotten: list[int] = []

    def stop(self) -> None:
        self.stops.append("stop")

    def forget(self, owner: int) -> None:
        self.forgotten.append(owner)


class _Connection:
    pass


class _Ours(_Connection):
    pass


@pytest.fixture
def bookkeeping() -> tuple[Scheduler, _Pool]:
    pool = _Pool()
    scheduler = Scheduler(pool, "1.5.5")  # type: ignore[arg-type]  # a fake
    scheduler.connections = _Ours
    return scheduler, pool


def test_workers_end_with_the_last_connection(bookkeeping: tuple[Scheduler, _Pool]) -> None:
    scheduler, pool = bookkeeping
    one, other = scheduler.take(_Connection()), scheduler.take(_Connection())
    assert type(one) is _Ours
    scheduler.closed(one)
    assert pool.stops == []
    scheduler.closed(one)
    del other
    assert pool.stops == ["stop"] and not scheduler.in_use
    assert len(set(pool.forgotten)) == 2


def test_closing_closes_cursors_of_cursors(bookkeeping: tuple[Scheduler, _Pool]) -> None:
    scheduler, pool = bookkeeping
    one = scheduler.take(_Connection())
    cursor = scheduler.take(_Connection(), one)
    deeper = scheduler.take(_Connection(), cursor)
    alone = scheduler.take(_Connection())
    pool.forgotten.clear()
    scheduler.closed(one)
    assert sorted(pool.forgotten) == sorted(map(id, (one, cursor, deeper)))
    assert pool.stops == []
    scheduler.closed(alone)
    assert pool.stops == ["stop"]


def test_a_relation_keeps_workers_unless_its_connection_was_closed(
    bookkeeping: tuple[Scheduler, _Pool],
) -> None:
    scheduler, pool = bookkeeping
    con = scheduler.take(_Connection())
    relation, derived = _Connection(), _Connection()
    scheduler.add_relation(relation, con)
    scheduler.add_relation(derived, relation)
    del con, relation
    assert pool.stops == []
    del derived
    assert pool.stops == ["stop"]

    con, relation = scheduler.take(_Connection()), _Connection()
    scheduler.add_relation(relation, con)
    scheduler.closed(con)
    assert pool.stops == ["stop", "stop"]


def test_the_end_interrupts_who_still_calls(
    bookkeeping: tuple[Scheduler, _Pool], monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted = []

    class Caller(_Ours):
        def interrupt(self) -> None:
            interrupted.append(self)
            raise ValueError("closed by now")

    scheduler, pool = bookkeeping
    scheduler.connections = Caller
    callers = [scheduler.take(_Connection()) for _ in range(2)]
    monkeypatch.setattr(opening, "_schedulers", {1: scheduler})
    monkeypatch.setattr(opening, "_LAST_LOOKS", 2)
    told = iter([1, 2, 0, 1, 0, 0])
    monkeypatch.setattr(_duckdb, "last_calls", told.__next__)
    opening._end_all()
    assert interrupted == callers * 2  # at 2 and at 1: the first only tells that it is needed
    assert list(told) == [] and pool.stops == ["stop"]


@pytest.mark.parametrize("has_daemons", [True, False])
def test_the_end_looks_again_where_daemons_live(
    bookkeeping: tuple[Scheduler, _Pool], monkeypatch: pytest.MonkeyPatch, has_daemons: bool
) -> None:
    """One of them may be about to call."""
    looked: list[int] = []

    def last_calls() -> int:
        looked.append(0)
        return 0

    monkeypatch.setattr(opening, "_schedulers", {})
    monkeypatch.setattr(opening, "_LAST_LOOKS", 3)
    monkeypatch.setattr(_duckdb, "last_calls", last_calls)
    monkeypatch.setattr("threading.active_count", lambda: 2 if has_daemons else 1)
    opening._end_all()
    assert len(looked) == (4 if has_daemons else 1)


def test_the_end_does_not_wait_for_ever(
    bookkeeping: tuple[Scheduler, _Pool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a call that no interrupt ends."""
    scheduler, pool = bookkeeping
    monkeypatch.setattr(opening, "_schedulers", {1: scheduler})
    monkeypatch.setattr(opening, "_LAST_CALLS_S", 0.05)
    monkeypatch.setattr(_duckdb, "last_calls", lambda: 1)
    opening._end_all()
    assert pool.stops == ["stop"]


def _with_id(number: int) -> _Connection:
    """One that has an id that was another's."""
    others = []
    for _ in range(10000):
        found = _Connection()
        if id(found) == number:
            return found
        others.append(found)
    pytest.skip("this Python gave the id to nothing")


def test_an_id_that_comes_again_is_not_who_had_it(bookkeeping: tuple[Scheduler, _Pool]) -> None:
    scheduler, pool = bookkeeping
    one, other = scheduler.take(_Connection()), scheduler.take(_Connection())
    cursor = scheduler.take(_Connection(), one)
    number = id(cursor)
    del cursor
    cursor = scheduler.take(_with_id(number), other)
    scheduler.closed(one)  # closes its cursor, which is no more
    del other
    assert scheduler.in_use and pool.stops == []

    relation = _Connection()
    scheduler.add_relation(relation, cursor)
    keeps = scheduler.take(_Connection())
    number = id(cursor)
    del cursor
    scheduler.closed(scheduler.take(_with_id(number), keeps))
    del keeps
    assert pool.stops == []
    del relation
    assert pool.stops == ["stop"]


def test_queries_of_who_had_an_id_before_are_over(bookkeeping: tuple[Scheduler, _Pool]) -> None:
    """A closed connection may be called in vain, and nobody tells of its end."""
    scheduler, pool = bookkeeping
    con, relation = scheduler.take(_Connection()), _Connection()
    scheduler.add_relation(relation, con)
    assert pool.forgotten == [id(con), id(relation)]


def test_nobody_joins_a_database_that_is_being_closed(
    bookkeeping: tuple[Scheduler, _Pool],
) -> None:
    scheduler, pool = bookkeeping
    one, other = scheduler.take(_Connection()), _Connection()
    assert scheduler.join(other)
    assert type(other) is _Ours
    scheduler.closed(one)
    scheduler.closed(other)
    late = _Connection()
    assert not scheduler.join(late)
    assert type(late) is _Connection
    assert pool.stops == ["stop"] and not scheduler.in_use


def test_nothing_is_asked_of_the_pool_of_another_process(
    bookkeeping: tuple[Scheduler, _Pool], monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler, _ = bookkeeping
    own = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: own + 1)
    asked: list[Callable[[], object]] = [
        *(lambda: scheduler.policy, lambda: scheduler.spread, lambda: scheduler.chiplets),
        *(scheduler.threads, scheduler.queries, scheduler.spreads, scheduler.profile),
        *(lambda: setattr(scheduler, "policy", "local"), lambda: scheduler.set_spread(2)),
    ]
    for ask in asked:  # the pool here has nothing that could be asked, either
        with fails(EngineFailed):
            ask()
    assert "fork" in repr(scheduler)


def test_another_process_is_refused(
    bookkeeping: tuple[Scheduler, _Pool], monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler, pool = bookkeeping
    con = scheduler.take(_Connection())
    pool.forgotten.clear()
    own = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: own + 1)
    with fails(EngineFailed):
        scheduler.check_process()
    scheduler.end()
    del con
    assert pool.stops == [] and pool.forgotten == []
