"""A client of one PostgreSQL server (psycopg 3), for `connect` and `reach` of the engine.

Every fault is an EngineFailed of one line. After a query past its limit or a lost server the client
cancels the query, closes its connection and stays closed. The limit holds even if the server no
longer answers.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg import Column as Described
from psycopg import pq, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from atoll.engines.api import Column, QueryResult
from atoll.engines.operators import reading
from atoll.engines.postgresql.profile import profile_of
from atoll.engines.postgresql.settings import SUPERUSER
from atoll.engines.sql.connections import plain_rows
from atoll.engines.sql.endings import QueryEnd, TimeLimit, hang_up
from atoll.errors import EngineFailed, UsageError
from atoll.schema.operators import QueryProfile
from atoll.schema.text import first_line

_SOCKET_NAME = ".s.PGSQL."
_SCHEMES = ("postgresql://", "postgres://")
_CANCEL_S = 5.0
# The defaults of the parameters that libpq refuses to take empty.
_USUAL = {"sslcertmode": "allow", "min_protocol_version": "3.0", "max_protocol_version": "3.0"}


def connect(path: str, *, timeout_s: float) -> psycopg.Connection[tuple[Any, ...]]:
    """A connection to a server that Atoll started, as its superuser. Raises psycopg.Error."""
    folder, name = os.path.split(path)
    own: dict[str, Any] = _usual() | {
        "host": folder,
        "port": name.removeprefix(_SOCKET_NAME),
        "user": SUPERUSER,
        "dbname": "postgres",
        "gssencmode": "disable",
        "application_name": "atoll",
        "connect_timeout": _whole_seconds(timeout_s),
        # A bench may be idle for longer than a user's configuration allows.
        "options": "-c idle_session_timeout=0",
    }
    return psycopg.connect("", autocommit=True, **own)


def _usual() -> dict[str, str]:
    """The default of every parameter that the environment may set: PGOPTIONS, PGREQUIREAUTH and the
    like are meant for other servers. No value of `service` stands for none."""
    known = {
        option.keyword.decode(): (option.compiled or b"").decode()
        for option in pq.Conninfo.get_defaults()
        if option.envvar and option.keyword != b"service"
    }
    return known | {name: value for name, value in _USUAL.items() if name in known}


def reach(url: str, *, timeout_s: float) -> PostgreSQLClient:
    """A client of the server at `url`. libpq looks for whatever the URL leaves out, such as the
    password, in PGPASSWORD, its password file or its service file.

    Raises UsageError for any other URL, and EngineFailed; neither contains a password.
    """
    try:
        given = conninfo_to_dict(url if url.startswith(_SCHEMES) else "//")
    except psycopg.ProgrammingError:
        # libpq's message would repeat the URL.
        raise UsageError(
            "URL: not a PostgreSQL URL; write postgresql://USER@HOST:PORT/DATABASE"
        ) from None
    host, port = given.get("host") or given.get("hostaddr") or "local socket", given.get("port")
    where = f"{host}:{port}" if port else str(host)
    given.setdefault("connect_timeout", str(_whole_seconds(timeout_s)))
    given.setdefault("application_name", "atoll")
    try:
        connection = psycopg.connect(make_conninfo("", **given), autocommit=True)
    except psycopg.Error as fault:
        raise EngineFailed(
            f"cannot log in to PostgreSQL at {where} ({reason(fault)}); check that it is running, "
            "and put the password in PGPASSWORD or ~/.pgpass"
        ) from None
    return PostgreSQLClient(where, connection)


def _whole_seconds(timeout_s: float) -> int:
    return max(2, round(timeout_s))  # libpq takes at least 2 s


class PostgreSQLClient(QueryEnd):
    """See `atoll.engines.api.ClusterClient`. Not for use by several threads at once."""

    server = "PostgreSQL"

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
                f"no PostgreSQL answers at {path} ({reason(fault)}); "
                "see 'atoll ps' for what is running"
            ) from None

    def execute(self, sql: str, *, timeout_s: float) -> QueryResult:
        described, rows, seconds = self._answer(sql, timeout_s)
        columns = tuple(_column(each) for each in described)
        return QueryResult(columns, plain_rows(columns, rows), seconds)

    def profile(self, sql: str, *, timeout_s: float) -> QueryProfile:
        """See `atoll.engines.api.ProfilingClient`."""
        try:
            with reading():  # psycopg decodes the JSON
                _, rows, _ = self._answer(f"explain (analyze, format json) {sql}", timeout_s)
                return profile_of(rows[0][0])
        except ValueError as fault:
            raise EngineFailed(f"{self.where}: the plan cannot be read ({fault})") from None

    def _answer(
        self, sql: str, timeout_s: float
    ) -> tuple[Sequence[Described], list[tuple[Any, ...]], float]:
        """The columns, the rows and the seconds that they took."""
        with self.asking(timeout_s):
            connection = self._open
            clock = TimeLimit(connection.fileno(), timeout_s, lambda: _cancel(connection))
            with clock:
                started = time.perf_counter()
                # No str of a literal: psycopg then sends the text as it is.
                cursor = connection.execute(sql.encode())
                while cursor.nextset():
                    pass  # of several statements the last one answers
                rows = cursor.fetchall() if cursor.description is not None else []
                seconds = time.perf_counter() - started
        return cursor.description or (), rows, seconds

    @property
    def _open(self) -> psycopg.Connection[tuple[Any, ...]]:
        if self._connection is None:
            raise self.closed()
        return self._connection

    @property
    def is_closed(self) -> bool:
        return self._connection is None

    def explain(self, fault: Exception) -> EngineFailed | None:
        """See `QueryEnd`."""
        if not isinstance(fault, psycopg.Error):
            return None
        return self.gone(reason(fault)) if self._open.broken else EngineFailed(reason(fault))

    def cancel(self) -> None:
        """A server that Atoll did not start notices a client that hangs up only when it answers."""
        if self._connection is not None:
            _cancel(self._connection)

    def set_password(self, file: Path) -> None:
        """Give the superuser the password in that file of libpq's, for connections at a port. The
        server gets only its verifier, so that no log of statements contains the password."""
        password = file.read_text().strip().rpartition(":")[2]
        verifier = self._open.pgconn.encrypt_password(
            password.encode(), SUPERUSER.encode(), b"scram-sha-256"
        )
        role = sql.Identifier(SUPERUSER)
        self._open.execute(
            sql.SQL("alter role {} password {}").format(role, sql.Literal(verifier.decode()))
        )

    def instances(self, *, timeout_s: float) -> int:
        self.execute("select 1", timeout_s=timeout_s)
        return 1

    def nodes(self, *, timeout_s: float) -> list[str]:
        """See `atoll.engines.api.ClusterClient`. This is the address that libpq connected to: a URL
        may name several servers, or none."""
        info = self._open.info
        place = info.host if info.host.startswith("/") else info.hostaddr
        host = f"[{place}]" if ":" in place else quote(place, safe="")
        return [f"postgresql://{host}:{info.port}"]

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if not connection.lock.acquire(blocking=False):
            # Another thread waits for its answer. It has to leave first: libpq would free the
            # memory that the wait uses.
            _cancel(connection)
            with contextlib.suppress(psycopg.Error):
                hang_up(connection.fileno())
            connection.lock.acquire()
        try:
            connection.close()
        finally:
            connection.lock.release()


def _cancel(connection: psycopg.Connection[Any]) -> None:
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


def reason(fault: psycopg.Error) -> str:
    """The server's message, else the first line of libpq's."""
    line = first_line(fault.diag.message_primary or str(fault) or type(fault).__name__)
    # For a refused connection libpq prints the socket's path too: '... failed: FATAL:  too many'.
    return line.rpartition(" failed: ")[2].removeprefix("FATAL:").strip()
