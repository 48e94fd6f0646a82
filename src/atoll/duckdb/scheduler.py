"""The scheduler of one database on Atoll's workers: its user interface, and the workers' end.

The workers end when no connection of the database is left: all were closed or collected, and no
relation of a connection that was not closed is alive. The order does not matter.
"""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from contextlib import suppress
from typing import Any, NamedTuple

from atoll import _duckdb
from atoll.errors import EngineFailed, UsageError
from atoll.schema.duckdb_profile import DuckDBProfile, QueryRecord
from atoll.schema.runtime_profile import RuntimeProfile
from atoll.schema.seats import Policy, SpreadChange, ThreadSeat

# How workers are placed: by each query's own record; on the fewest chiplets that hold them; on as
# many chiplets as there are; wherever the kernel puts them.
POLICIES: tuple[Policy, ...] = ("adaptive", "local", "distributed", "none")


class _User(NamedTuple):
    """A connection or relation. Connections have numbers because an `id` is reused."""

    end: weakref.ref[Any]  # fires when it is collected
    connection: int  # the connection's own number, or that of the relation's connection
    made_by: int = 0  # the connection that this one is a cursor of; 0: none


class Scheduler:
    """The workers of one database; `connection.atoll`.

    Thread-safe. After the last connection was closed it still reports the past. In a child of
    fork() it raises EngineFailed.
    """

    def __init__(self, pool: _duckdb.Pool, version: str, path: str = "") -> None:
        self._pool = pool
        self._version = version
        self.path = path  # of the database, absolute
        self._process = os.getpid()
        self._lock = threading.RLock()  # for the fields below; the collector may interrupt a holder
        self._users: dict[
            int, _User
        ] = {}  # by id; a cursor comes after the connection that made it
        self._numbers = itertools.count(1)
        self.connections: type = object  # the type of its connections (atoll.duckdb.opening)

    @property
    def policy(self) -> Policy:
        """How workers are placed. May be set while no query of this database runs."""
        policy: Policy = self._own_pool.policy
        return policy

    @policy.setter
    def policy(self, policy: Policy) -> None:
        check_policy(policy)
        try:
            self._own_pool.set_policy(policy)
        except RuntimeError as fault:
            raise UsageError(str(fault)) from None

    @property
    def workers(self) -> int:
        """The number of threads that run DuckDB's tasks, including the caller."""
        return self._own_pool.workers

    @property
    def chiplets(self) -> int:
        """The number of chiplets available to them."""
        return self._own_pool.chiplets

    @property
    def spread(self) -> int:
        """The number of chiplets that they occupy now."""
        return self._own_pool.spread

    def set_spread(self, spread: int) -> None:
        """Places them on that number of chiplets until a policy is set. Not while a query runs."""
        try:
            self._own_pool.set_spread(spread)
        except RuntimeError as fault:
            raise UsageError(str(fault)) from None

    def threads(self) -> tuple[ThreadSeat, ...]:
        """The workers, and the threads that are calling now."""
        return tuple(ThreadSeat.model_validate(seat) for seat in self._own_pool.threads())

    def queries(self) -> tuple[QueryRecord, ...]:
        """The latest 4096 queries in the order in which they ended; then those that still run."""
        return tuple(QueryRecord.model_validate(query) for query in self._own_pool.queries())

    def spreads(self) -> tuple[SpreadChange, ...]:
        """Where the workers have sat since the database was opened; the latest 4096 changes."""
        return tuple(SpreadChange.model_validate(change) for change in self._own_pool.spreads())

    def profile(self) -> DuckDBProfile:
        """All of this as a document; `model_dump_json()` writes it."""
        return DuckDBProfile(
            duckdb=self._version,
            policy=self.policy,
            workers=self.workers,
            chiplets=self.chiplets,
            spread=self.spread,
            threads=self.threads(),
            queries=self.queries(),
            queries_left_out=self._own_pool.queries_left_out,
            spreads=self.spreads(),
            runtime=RuntimeProfile.model_validate_json(self._own_pool.runtime_profile()),
        )

    def __repr__(self) -> str:
        if not self.is_here:
            return "<Scheduler of the process before a fork()>"
        return (
            f"<Scheduler policy={self.policy} workers={self.workers} "
            f"spread={self.spread} of {self.chiplets}>"
        )

    # Callbacks of the connections' types (atoll.duckdb.opening).

    @property
    def in_use(self) -> bool:
        with self._lock:
            return bool(self._users)

    @property
    def is_here(self) -> bool:
        """False in a child of fork()."""
        return os.getpid() == self._process

    def take(self, connection: Any, parent: Any = None) -> Any:
        """Adopts a connection that DuckDB has made, or a cursor of `parent`."""
        connection.__class__ = self.connections
        with self._lock:
            made_by = 0 if parent is None else self._number(parent)
            self._hold(connection, next(self._numbers), made_by)
        return connection

    def join(self, connection: Any) -> bool:
        """`take`, unless the last connection has gone, so that the workers end or have ended."""
        with self._lock:
            if not self._users:
                return False
            self.take(connection)
            return True

    def add_relation(self, relation: Any, made_from: Any) -> None:
        with self._lock:
            self._hold(relation, self._number(made_from))

    def closed(self, connection: Any) -> None:
        """`connection.close()` has returned; it also closes the connection's cursors."""
        with self._lock:
            users = self._users.copy()  # the collector may change it
            number = self._number(connection)
            closed = {number} if number else set()
            for user in users.values():
                if user.made_by in closed:
                    closed.add(user.connection)
            for one, user in users.items():
                if user.connection in closed:
                    self._forget(one)
        self._end_if_unused()

    def check_process(self) -> None:
        if not self.is_here:
            raise EngineFailed(
                "this connection was opened before a fork(); open the database again in the child "
                "process"
            )

    def interrupt(self) -> None:
        """Interrupts all queries on all connections."""
        for connection in self._connections():
            with suppress(Exception):  # DuckDB's: another thread has just closed it
                connection.interrupt()

    def end(self) -> None:
        """Called at the interpreter's end, connections or not: workers must not outlive it."""
        if self.is_here:
            self._pool.stop()

    def give_up(self) -> None:
        """Called in a child of fork(), which has no workers."""
        self._pool.give_up()

    @property
    def _own_pool(self) -> _duckdb.Pool:
        """This process's pool, not that of a parent, whose locks no thread releases here."""
        self.check_process()
        return self._pool

    def _number(self, of: Any) -> int:
        """The number of this connection or of the relation's; 0: it is closed."""
        user = self._users.get(id(of))
        return 0 if user is None else user.connection

    def _hold(self, user: Any, connection: int, made_by: int = 0) -> None:
        one = id(user)
        # A closed connection may have had this id before.
        self._pool.forget(one)
        self._users[one] = _User(weakref.ref(user, lambda _: self._gone(one)), connection, made_by)

    def _gone(self, user: int) -> None:
        if not self.is_here:
            return
        with self._lock:
            self._forget(user)
        self._end_if_unused()

    def _forget(self, user: int) -> None:
        self._users.pop(user, None)
        self._pool.forget(user)

    def _connections(self) -> list[Any]:
        with self._lock:
            users = [user.end() for user in self._users.copy().values()]
        return [user for user in users if isinstance(user, self.connections)]

    def _end_if_unused(self) -> None:
        with self._lock:
            unused = not self._users
        if unused:
            self._pool.stop()


def check_policy(policy: str) -> None:
    """Raises UsageError for an unknown policy."""
    if policy not in POLICIES:
        raise UsageError(f"no policy {policy!r} for DuckDB; choose one of {', '.join(POLICIES)}")
