"""A client of one PostgreSQL server over its UNIX socket (psycopg 3); what `connect` gives.

Promises, as `atoll.engines.sqlclient`: every fault is an EngineFailed of one line; after a query
past its limit, or a lost server, the connection is closed (which cancels the query there) and
stays so. The limit also holds against a server that answers nothing any more.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import socket
import threading
import time
from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import Column as Described

from atoll.engines.base import Client, Column, QueryResult
from atoll.engines.postgresql_instance import SUPERUSER
from atoll.engines.sqltypes import Kind, kind_of
from atoll.errors import EngineFailed

_SOCKET_NAME = ".s.PGSQL."


class PostgreSQLClient:
    """See `atoll.engines.base.Client`. Not for use by several threads at once."""

    def __init__(self, path: str, *, timeout_s: float) -> None:
        self._path = path
        folder, name = os.path.split(path)
        try:
            self._connection: psycopg.Connection[tuple[Any, ...]] | None = psycopg.connect(
                host=folder,
                port=name.removeprefix(_SOCKET_NAME),
                user=SUPERUSER,
                dbname="postgres",
                # What these say in the environment (PGHOSTADDR, ...) is meant for other servers.
                hostaddr="",
                options="",
                target_session_attrs="any",
                gssencmode="disable",
                connect_timeout=max(2, round(timeout_s)),  # libpq knows no less than 2 s
                autocommit=True,
            )
        except psycopg.Error as fault:
            raise EngineFailed(
                f"no PostgreSQL answers at {path} ({_words(fault)}); see 'atoll ps' for what is up"
            ) from None

    def execute(self, sql: str, *, timeout_s: float) -> QueryResult:
        connection = self._connection
        if connection is None:
            raise EngineFailed(f"the connection to {self._path} was closed")
        clock = _TimeLimit(connection, timeout_s)
        try:
            with clock:
                started = time.perf_counter()
                # No str of a literal: psycopg then sends the text as it is.
                cursor = connection.execute(sql.encode())
                while cursor.nextset():
                    pass  # of several statements the last one answers
                rows = cursor.fetchall() if cursor.description is not None else []
                seconds = time.perf_counter() - started
        except psycopg.Error as fault:
            if clock.is_over:
                self.close()
                raise EngineFailed(
                    f"no answer within {timeout_s:g} s; the query was cancelled"
                ) from None
            if connection.broken:
                self.close()
                raise EngineFailed(
                    f"the PostgreSQL at {self._path} is gone ({_words(fault)}); see its log"
                ) from None
            raise EngineFailed(_words(fault)) from None
        except BaseException:
            # Interrupted in the middle of an answer: the next one could not be told from it.
            self.close()
            raise
        columns = tuple(_column(each) for each in cursor.description or ())
        return QueryResult(columns, _plain(columns, rows), seconds)

    def instances(self, *, timeout_s: float) -> int:
        self.execute("select 1", timeout_s=timeout_s)
        return 1

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class _TimeLimit:
    """Shuts the connection's socket down once the time is over, which ends any wait on it."""

    def __init__(self, connection: psycopg.Connection[Any], seconds: float) -> None:
        self.is_over = False
        self._descriptor = connection.fileno()
        self._lock = threading.Lock()
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def _end(self) -> None:
        with self._lock:
            if self._timer.finished.is_set():
                return  # the answer came at the last instant
            self.is_over = True
            with contextlib.suppress(OSError), socket.socket(fileno=os.dup(self._descriptor)) as it:
                it.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._timer.cancel()


def connect_all(sockets: Sequence[str], *, timeout_s: float) -> list[Client]:
    """A client for each socket, in order; none stays open if one cannot be reached."""
    clients: list[Client] = []
    try:
        clients.extend(PostgreSQLClient(path, timeout_s=timeout_s) for path in sockets)
    except EngineFailed:
        for client in clients:
            client.close()
        raise
    return clients


def _column(described: Described) -> Column:
    """The type by its name in SQL, with the digits of a numeric: 'numeric(15,2)', 'bigint'."""
    info = psycopg.adapters.types.get(described.type_code)
    name = info.regtype if info is not None else "unknown"
    if info is not None and info.oid != described.type_code:
        name += "[]"  # an array is registered beside its element
    if described.precision is not None and name == "numeric":
        name = f"numeric({described.precision},{described.scale or 0})"
    return Column(described.name, name)


def _plain(columns: Sequence[Column], rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Only types that `QueryResult` allows: what is none of them, as a timestamp, becomes text."""
    texts = [kind_of(column.type) is Kind.TEXT for column in columns]
    if not any(texts):
        return rows
    return [
        tuple(_as_text(value) if text else value for value, text in zip(row, texts, strict=True))
        for row in rows
    ]


def _as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return value.isoformat() if isinstance(value, datetime.date) else str(value)


def _words(fault: psycopg.Error) -> str:
    """What the server says, else the first line of what libpq says."""
    said = fault.diag.message_primary or str(fault)
    line = (said.strip().splitlines() or [type(fault).__name__])[0]
    # Of a refused connection libpq tells the socket's path too: '... failed: FATAL:  too many'.
    return line.rpartition(" failed: ")[2].removeprefix("FATAL:").strip()
