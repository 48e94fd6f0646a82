"""A client of one MariaDB server (PyMySQL); what `connect` and `reach` of the engine give.

Promises, as `atoll.engines.sql.client`: every fault is an EngineFailed of one line; after a query
past its limit, or a lost server, the query is cancelled, the connection closed, and stays so. The
limit also holds against a server that answers nothing any more.

MariaDB does not notice that a client has gone until it has something to say to it. So a query that
is given up is ended through a second connection (KILL), and each session is told a limit
(max_statement_time) for the case that nobody is there to do that. What a query answers that its
session's limit ends is no answer: `select benchmark(...)` gives 0 then, and no error.
"""

from __future__ import annotations

import configparser
import contextlib
import math
import socket
import threading
import time
from collections.abc import Mapping
from typing import Any

import pymysql
from pymysql.constants import CLIENT, CR, FIELD_TYPE

from atoll.engines.api import Column, QueryResult
from atoll.engines.mariadb.settings import COLLATION, DATABASE, USER
from atoll.engines.mariadb.url import read_url
from atoll.engines.sql.connections import OverTime, TimeLimit, plain_rows
from atoll.errors import EngineFailed, ServerGone, UsageError

_KILL_S = 5.0
_LOST = (CR.CR_SERVER_GONE_ERROR, CR.CR_SERVER_LOST, 0)
_NAMES = {
    FIELD_TYPE.TINY: "tinyint",
    FIELD_TYPE.SHORT: "smallint",
    FIELD_TYPE.INT24: "integer",
    FIELD_TYPE.LONG: "integer",
    FIELD_TYPE.LONGLONG: "bigint",
    FIELD_TYPE.YEAR: "smallint",
    FIELD_TYPE.FLOAT: "float",
    FIELD_TYPE.DOUBLE: "double",
    FIELD_TYPE.DATE: "date",
    FIELD_TYPE.NEWDATE: "date",
    FIELD_TYPE.DATETIME: "datetime",
    FIELD_TYPE.TIMESTAMP: "timestamp",
    FIELD_TYPE.TIME: "time",
    FIELD_TYPE.JSON: "json",
}
_DECIMALS = (FIELD_TYPE.DECIMAL, FIELD_TYPE.NEWDECIMAL)


class MariaDBClient:
    """See `atoll.engines.api.Client`. Not for use by several threads at once.

    `how`: what PyMySQL needs to connect. Raises pymysql.Error and OSError."""

    def __init__(self, where: str, how: Mapping[str, Any], *, timeout_s: float) -> None:
        self.where = where
        self._how = {"client_flag": CLIENT.MULTI_STATEMENTS, "autocommit": True, **how}
        self._limit_s = 0.0  # that the session has been told
        self._asker: int | None = None  # the thread that waits for an answer
        self._connection: pymysql.Connection[Any] | None = None
        self._connection, self._line = self._connect(timeout_s)

    def _connect(
        self, timeout_s: float, peer: tuple[str, int] | None = None
    ) -> tuple[pymysql.Connection[Any], socket.socket]:
        """A connection, and its socket by a descriptor of its own: PyMySQL has no way to end a wait
        from outside, and TLS takes the first one over. `peer`: where the name was found before."""
        connection = pymysql.connect(**self._how, defer_connect=True)
        path = self._how.get("unix_socket")
        if path:
            opened = _open_unix(path, timeout_s)
        else:
            peer = peer or (connection.host, connection.port)
            opened = socket.create_connection(peer, timeout_s)
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        line = opened.dup()
        try:
            with TimeLimit(line.fileno(), timeout_s, lambda: None):
                connection.connect(opened)
        except BaseException:
            with contextlib.suppress(pymysql.Error):
                connection.close()  # as far as it came, the socket is its own
            opened.close()
            line.close()
            raise
        return connection, line

    def execute(self, sql: str, *, timeout_s: float) -> QueryResult:
        connection = self._connection
        if connection is None:
            raise self._closed()
        session = connection.thread_id()
        clock = TimeLimit(self._line.fileno(), timeout_s, lambda: self._kill(session))
        self._asker = threading.get_ident()
        try:
            with clock, connection.cursor() as cursor:
                if timeout_s != self._limit_s:
                    # Later than ours: at its own a server may answer with what it has by then.
                    cursor.execute(_limit(connection.get_server_info(), timeout_s + _KILL_S))
                    self._limit_s = timeout_s
                started = time.perf_counter()
                cursor.execute(sql)
                rows = list(cursor.fetchall())
                while cursor.nextset():  # of several statements the last one answers
                    rows = list(cursor.fetchall())
                seconds = time.perf_counter() - started
                columns = _columns(cursor)
        except OverTime as late:
            self.close()
            raise EngineFailed(f"{late}; the query was cancelled") from None
        except pymysql.Error as fault:
            if self._connection is not connection:
                raise self._closed() from None
            if fault.args and fault.args[0] in _LOST:
                self.close()
                raise ServerGone(
                    f"the MariaDB at {self.where} is gone ({words(fault)}); see its log"
                ) from None
            raise EngineFailed(words(fault)) from fault
        except BaseException as fault:
            if self._connection is not connection and isinstance(fault, Exception):
                raise self._closed() from None  # PyMySQL stumbles where it was closed meanwhile
            # Interrupted in the middle of an answer: the next one could not be told from it.
            self._kill(session)
            self.close()
            raise
        finally:
            self._asker = None
        return QueryResult(columns, plain_rows(columns, rows), seconds)

    def instances(self, *, timeout_s: float) -> int:
        self.execute("select 1", timeout_s=timeout_s)
        return 1

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if self._asker not in (None, threading.get_ident()):
            self._kill(connection.thread_id())  # another thread waits for its answer
        with contextlib.suppress(pymysql.Error, OSError):
            # So that it cannot wait either; the server takes it for a client that has gone.
            self._line.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(pymysql.Error, OSError):
            connection.close()
        self._line.close()

    def _closed(self) -> EngineFailed:
        return EngineFailed(f"the connection to {self.where} was closed")

    def _kill(self, session: int) -> None:
        """As far as that works: else the session's own limit ends the query."""
        with contextlib.suppress(Exception):
            # Behind the same name another server may have a session of that number.
            peer = None if self._how.get("unix_socket") else self._line.getpeername()[:2]
            connection, line = self._connect(_KILL_S, peer)
            limit = TimeLimit(line.fileno(), _KILL_S, lambda: None)
            with contextlib.closing(connection), line, limit:
                connection.kill(session)


def _limit(version: str, seconds: float) -> str:
    if "MariaDB" in version:
        return f"set max_statement_time = {seconds:.6f}"
    return f"set max_execution_time = {math.ceil(seconds * 1000)}"  # MySQL's, of SELECT alone


def _open_unix(path: str, timeout_s: float) -> socket.socket:
    opened = socket.socket(socket.AF_UNIX)
    try:
        opened.settimeout(timeout_s)
        opened.connect(path)
    except BaseException:
        opened.close()
        raise
    return opened


def at(path: str, *, timeout_s: float, **more: Any) -> MariaDBClient:
    """A client of the server at that socket. Raises EngineFailed."""
    how = {
        "unix_socket": path,
        "user": USER,
        "database": DATABASE,
        "charset": "utf8mb4",
        "collation": COLLATION,
        "ssl_disabled": True,
        # A bench's may have nothing to ask for long, whatever limit the user's configuration has.
        "init_command": "set session wait_timeout = 31536000",
        **more,
    }
    try:
        return MariaDBClient(path, how, timeout_s=timeout_s)
    except (pymysql.Error, OSError) as fault:
        raise EngineFailed(
            f"no MariaDB answers at {path} ({words(fault)}); see 'atoll ps' for what is up"
        ) from None


def reach(url: str, *, timeout_s: float) -> MariaDBClient:
    """A client of the server at `url` (`atoll.engines.mariadb.url`).

    Raises UsageError for what is no such URL, and EngineFailed; neither has a password in it.
    """
    where, how = read_url(url)
    try:
        return MariaDBClient(where, how, timeout_s=timeout_s)
    except (configparser.Error, UnicodeError) as fault:
        # Its own words would repeat the line, which may have the password.
        raise UsageError(
            f"~/.my.cnf: cannot be read ({type(fault).__name__}): sections of lines key=value are "
            "wanted, each name once, a password in Latin-1"
        ) from None
    except (pymysql.Error, OSError) as fault:
        raise EngineFailed(
            f"cannot log in to MariaDB at {where} ({words(fault)}); check that it is running, and "
            "put the password in MYSQL_PWD or ~/.my.cnf"
        ) from None


def _columns(cursor: Any) -> tuple[Column, ...]:
    return tuple(
        Column(name, _type_name(code, length, scale))
        for name, code, _, length, _, scale, *_ in cursor.description or ()
    )


def _type_name(code: int, length: int, scale: int) -> str:
    """'decimal(15,2)', 'bigint'. The length of a decimal counts its point and its sign."""
    if code in _DECIMALS:
        return f"decimal({length - 1 - (scale > 0)},{scale})"
    return _NAMES.get(code, "varchar")


def words(fault: Exception) -> str:
    """What the server says, else what the system says, in one line."""
    said = fault.strerror if isinstance(fault, OSError) else fault.args[-1] if fault.args else ""
    return (str(said or fault).strip().splitlines() or [type(fault).__name__])[0]
