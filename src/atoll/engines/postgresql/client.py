"""A client of one PostgreSQL server (psycopg 3); what `connect` and `reach` of the engine give.

Promises, as `atoll.engines.sql.client`: every fault is an EngineFailed of one line; after a query
past its limit, or a lost server, the query is cancelled, the connection closed, and stays so. The
limit also holds against a server that answers nothing any more.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg import Column as Described
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from atoll.engines.api import Column, QueryResult
from atoll.engines.postgresql.settings import SUPERUSER
from atoll.engines.sql.connections import OverTime, TimeLimit, hang_up, plain_rows
from atoll.errors import EngineFailed, ServerGone, UsageError

_SOCKET_NAME = ".s.PGSQL."
_SCHEMES = ("postgresql://", "postgres://")
_CANCEL_S = 5.0
# What libpq takes where nothing is set, of those that it refuses to be told empty.
_USUAL = {"sslcertmode": "allow", "min_protocol_version": "3.0", "max_protocol_version": "3.0"}


def connect(path: str, *, timeout_s: float) -> psycopg.Connection[tuple[Any, ...]]:
    """A connection to a server of Atoll's, as its superuser. Raises psycopg.Error."""
    folder, name = os.path.split(path)
    own: dict[str, Any] = _usual() | {
        "host": folder,
        "port": name.removeprefix(_SOCKET_NAME),
        "user": SUPERUSER,
        "dbname": "postgres",
        "gssencmode": "disable",
        "application_name": "atoll",
        "connect_timeout": _whole_seconds(timeout_s),
        # A bench's may have nothing to ask for long, whatever limit the user's configuration has.
        "options": "-c idle_session_timeout=0",
    }
    return psycopg.connect("", autocommit=True, **own)


def _usual() -> dict[str, str]:
    """Every parameter as it is where nothing is set: what the environment says (PGOPTIONS,
    PGREQUIREAUTH, ...) is meant for other servers. There is none for 'no service'."""
    known = {
        option.keyword.decode(): (option.compiled or b"").decode()
        for option in pq.Conninfo.get_defaults()
        if option.envvar and option.keyword != b"service"
    }
    return known | {name: value for name, value in _USUAL.items() if name in known}


def reach(url: str, *, timeout_s: float) -> PostgreSQLClient:
    """A client of the server at `url`, as libpq takes it: what the URL leaves out (the password
    above all) it finds in PGPASSWORD, its password file or its service file.

    Raises UsageError for what is no such URL, and EngineFailed; neither has a password in it.
    """
    try:
        given = conninfo_to_dict(url if url.startswith(_SCHEMES) else "//")
    except psycopg.ProgrammingError:
        # libpq's own words would repeat what it was given.
        raise UsageError(
            "--url: not a URL of PostgreSQL; write postgresql://USER@HOST:PORT/DATABASE"
        ) from None
    host, port = given.get("host") or given.get("hostaddr") or "local socket", given.get("port")
    where = f"{host}:{port}" if port else str(host)
    given.setdefault("connect_timeout", str(_whole_seconds(timeout_s)))
    given.setdefault("application_name", "atoll")
    try:
        connection = psycopg.connect(make_conninfo("", **given), autocommit=True)
    except psycopg.Error as fault:
        raise EngineFailed(
            f"cannot log in to PostgreSQL at {where} ({words(fault)}); check that it is running, "
            "and put the password in PGPASSWORD or ~/.pgpass"
        ) from None
    return PostgreSQLClient(where, connection)


def _whole_seconds(timeout_s: float) -> int:
    return max(2, round(timeout_s))  # libpq knows no less than 2 s


class PostgreSQLClient:
    """See `atoll.engines.api.Client`. Not for use by several threads at once."""

    def __init__(self, where: str, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self.where = where
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = connection

    @classmethod
    def at(cls, path: str, *, timeout_s: float) -> PostgreSQLClient:
        """A client of the server at that socket."""
        try:
            return cls(path, connect(path, timeout_s=timeout_s))
        except psycopg.Error as fault:
            raise EngineFailed(
                f"no PostgreSQL answers at {path} ({words(fault)}); see 'atoll ps' for what is up"
            ) from None

    def execute(self, sql: str, *, timeout_s: float) -> QueryResult:
        connection = self._connection
        if connection is None:
            raise self._closed()
        try:
            clock = TimeLimit(connection.fileno(), timeout_s, lambda: _cancel(connection))
        except psycopg.Error:  # by another thread, just now
            raise self._closed() from None
        try:
            with clock:
                started = time.perf_counter()
                # No str of a literal: psycopg then sends the text as it is.
                cursor = connection.execute(sql.encode())
                while cursor.nextset():
                    pass  # of several statements the last one answers
                rows = cursor.fetchall() if cursor.description is not None else []
                seconds = time.perf_counter() - started
        except OverTime as late:
            self.close()
            raise EngineFailed(f"{late}; the query was cancelled") from None
        except psycopg.Error as fault:
            if self._connection is not connection:
                raise self._closed() from None
            if connection.broken:
                self.close()
                raise ServerGone(
                    f"the PostgreSQL at {self.where} is gone ({words(fault)}); see its log"
                ) from None
            raise EngineFailed(words(fault)) from None
        except BaseException:
            # Interrupted in the middle of an answer: the next one could not be told from it.
            _cancel(connection)
            self.close()
            raise
        columns = tuple(_column(each) for each in cursor.description or ())
        return QueryResult(columns, plain_rows(columns, rows), seconds)

    def instances(self, *, timeout_s: float) -> int:
        self.execute("select 1", timeout_s=timeout_s)
        return 1

    def nodes(self, *, timeout_s: float) -> list[str]:
        """See `atoll.engines.api.ClusterClient`: where libpq came to, which the URL may leave to
        it, or name several servers for."""
        if self._connection is None:
            raise self._closed()
        info = self._connection.info
        place = info.host if info.host.startswith("/") else info.hostaddr
        host = f"[{place}]" if ":" in place else quote(place, safe="")
        return [f"postgresql://{host}:{info.port}"]

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if not connection.lock.acquire(blocking=False):
            # Another thread waits for its answer. It has to leave first: libpq would free what it
            # waits with.
            _cancel(connection)
            with contextlib.suppress(psycopg.Error):
                hang_up(connection.fileno())
            connection.lock.acquire()
        try:
            connection.close()
        finally:
            connection.lock.release()

    def _closed(self) -> EngineFailed:
        return EngineFailed(f"the connection to {self.where} was closed")


def _cancel(connection: psycopg.Connection[Any]) -> None:
    """Servers that are not Atoll's do not notice that we have gone until they answer."""
    with contextlib.suppress(psycopg.Error):
        connection.cancel_safe(timeout=_CANCEL_S)


def _column(described: Described) -> Column:
    """The type by its name in SQL, with the digits of a numeric: 'numeric(15,2)', 'bigint'."""
    info = psycopg.adapters.types.get(described.type_code)
    name = info.regtype if info is not None else "unknown"
    if info is not None and info.oid != described.type_code:
        name += "[]"  # an array is registered beside its element
    if described.precision is not None and name == "numeric":
        name = f"numeric({described.precision},{described.scale or 0})"
    return Column(described.name, name)


def words(fault: psycopg.Error) -> str:
    """What the server says, else the first line of what libpq says."""
    said = fault.diag.message_primary or str(fault)
    line = (said.strip().splitlines() or [type(fault).__name__])[0]
    # Of a refused connection libpq tells the socket's path too: '... failed: FATAL:  too many'.
    return line.rpartition(" failed: ")[2].removeprefix("FATAL:").strip()
