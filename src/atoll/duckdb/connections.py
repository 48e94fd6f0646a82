"""The types of one database's connections and relations, and what closing them waits for.

A connection that DuckDB made gets another class, whose methods bind the calling thread
(native/python/duckdb_types.hpp) and which knows the database's scheduler.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from atoll import _duckdb
from atoll.duckdb.methods import connection_methods, relation_methods
from atoll.duckdb.scheduler import Scheduler
from atoll.errors import EngineFailed

# How often closing looks whether a query's answer has been fetched.
_TURN_S = 0.001


def make_types(scheduler: Scheduler, pool: _duckdb.Pool, connection: Any, relation: type) -> None:
    """Makes the types of this database's connections and relations, which `scheduler` assigns."""

    def adopt(made: Any, made_from: Any) -> None:
        made.__class__ = relations
        scheduler.add_relation(made, made_from)

    def subclass(which: str, base: type, methods: list[tuple[str, str]]) -> Any:
        return _duckdb.make_subclass(which, base, methods, pool, relation, adopt, EngineFailed)

    relations = subclass("relation", relation, relation_methods(relation))
    connections = subclass("connection", connection, connection_methods(connection))

    def cursor(self: Any) -> Any:
        """A second connection to the same database."""
        scheduler.check_process()
        with inside():
            return scheduler.take(connection.cursor(self), self)

    def close(self: Any) -> None:
        """Closes the connection and its cursors; the last one of a database ends its workers."""
        scheduler.check_process()
        with inside():
            _await_answer(self)
            connection.close(self)
            scheduler.closed(self)

    def leave(self: Any, *_: object) -> None:
        close(self)

    connections.atoll = scheduler
    connections.cursor = connections.duplicate = cursor
    connections.close = close
    connections.__exit__ = leave
    scheduler.connections = connections


def _await_answer(connection: Any) -> None:
    """Lets another thread finish the query that it runs on this connection and fetch its answer.

    DuckDB's own `close` waits for the query only, and so it may take the result away before the
    thread can fetch it. A thread that continues with another query does not delay the closing.
    """
    first = _duckdb.running_query(id(connection))
    while (now := _duckdb.running_query(id(connection))) and now in (first, _duckdb.FETCH):
        time.sleep(_TURN_S)


@contextmanager
def inside() -> Iterator[None]:
    """Wraps code that releases the interpreter's lock outside of wrapped methods
    (duckdb_types.hpp)."""
    _duckdb.enter_call()
    try:
        yield
    finally:
        _duckdb.leave_call()
