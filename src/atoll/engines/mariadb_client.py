"""A client of one MariaDB server (PyMySQL); what `connect` and `reach` of the engine give.

Promises, as `atoll.engines.sqlclient`: every fault is an EngineFailed of one line; after a query
past its limit, or a lost server, the query is cancelled, the connection closed, and stays so. The
limit also holds against a server that answers nothing any more.

MariaDB does not notice that a client has gone until it has something to say to it. So each session
is told its limit (max_statement_time), and a query that is given up is ended through a second
connection (KILL).
"""

from __future__ import annotations

import configparser
import contextlib
import math
import os
import socket
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pymysql
from pymysql.constants import CLIENT, CR, FIELD_TYPE

from atoll.engines.base import Column, QueryResult
from atoll.engines.clients import TimeLimit, plain_rows
from atoll.engines.mariadb_settings import COLLATION, DATABASE, USER
from atoll.errors import EngineFailed, UsageError

_KILL_S = 2.0
_PORT = 3306
_LOST = (CR.CR_SERVER_GONE_ERROR, CR.CR_SERVER_LOST, 0)
_OVER_TIME = (1969, 3024)  # ER_STATEMENT_TIMEOUT of MariaDB, ER_QUERY_TIMEOUT of MySQL
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
    """See `atoll.engines.base.Client`. Not for use by several threads at once.

    `how`: what PyMySQL needs to connect. Raises pymysql.Error and OSError."""

    def __init__(self, where: str, how: Mapping[str, Any], *, timeout_s: float) -> None:
        self.where = where
        self._how = {"client_flag": CLIENT.MULTI_STATEMENTS, "autocommit": True, **how}
        self._limit_s = 0.0  # that the session has been told
        self._connection: pymysql.Connection[Any] | None = None
        self._connection, self._line = self._connect(timeout_s)

    def _connect(self, timeout_s: float) -> tuple[pymysql.Connection[Any], socket.socket]:
        """A connection, and its socket by a descriptor of its own: PyMySQL has no way to end a wait
        from outside, and TLS takes the first one over."""
        connection = pymysql.connect(**self._how, defer_connect=True)
        path = self._how.get("unix_socket")
        if path:
            opened = _open_unix(path, timeout_s)
        else:
            opened = socket.create_connection((connection.host, connection.port), timeout_s)
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        line = opened.dup()
        try:
            with TimeLimit(line.fileno(), timeout_s, lambda: None):
                connection.connect(opened)
        except BaseException:
            opened.close()
            line.close()
            raise
        return connection, line

    def execute(self, sql: str, *, timeout_s: float) -> QueryResult:
        connection = self._connection
        if connection is None:
            raise EngineFailed(f"the connection to {self.where} was closed")
        clock = TimeLimit(self._line.fileno(), timeout_s, lambda: None)
        try:
            with clock, connection.cursor() as cursor:
                if timeout_s != self._limit_s:
                    cursor.execute(_limit(connection.get_server_info(), timeout_s))
                    self._limit_s = timeout_s
                started = time.perf_counter()
                cursor.execute(sql)
                rows = list(cursor.fetchall())
                while cursor.nextset():  # of several statements the last one answers
                    rows = list(cursor.fetchall())
                seconds = time.perf_counter() - started
                columns = _columns(cursor)
        except pymysql.Error as fault:
            code = fault.args[0] if fault.args else 0
            if clock.is_over or code in _OVER_TIME:
                self.close()
                raise EngineFailed(
                    f"no answer within {timeout_s:g} s; the query was cancelled"
                ) from None
            if code in _LOST:
                self.close()
                raise EngineFailed(
                    f"the MariaDB at {self.where} is gone ({words(fault)}); see its log"
                ) from None
            raise EngineFailed(words(fault)) from None
        except BaseException:
            # Interrupted in the middle of an answer: the next one could not be told from it.
            self._kill(connection.thread_id())
            self.close()
            raise
        return QueryResult(columns, plain_rows(columns, rows), seconds)

    def instances(self, *, timeout_s: float) -> int:
        self.execute("select 1", timeout_s=timeout_s)
        return 1

    def close(self) -> None:
        if self._connection is None:
            return
        with contextlib.suppress(pymysql.Error, OSError):
            # So that it cannot wait either; the server takes it for a client that has gone.
            self._line.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(pymysql.Error, OSError):
            self._connection.close()
        self._line.close()
        self._connection = None

    def _kill(self, session: int) -> None:
        with contextlib.suppress(pymysql.Error, OSError):
            connection, line = self._connect(_KILL_S)
            with TimeLimit(line.fileno(), _KILL_S, lambda: None):
                connection.kill(session)
            connection.close()
            line.close()


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
        **more,
    }
    try:
        return MariaDBClient(path, how, timeout_s=timeout_s)
    except (pymysql.Error, OSError) as fault:
        raise EngineFailed(
            f"no MariaDB answers at {path} ({words(fault)}); see 'atoll ps' for what is up"
        ) from None


def reach(url: str, *, timeout_s: float) -> MariaDBClient:
    """A client of the server at `url`. What it leaves out is taken from MYSQL_PWD and from the
    section [client] of ~/.my.cnf. TLS where the server has it; `?ssl-ca=FILE` demands it and has
    the server's certificate verified.

    Raises UsageError for what is no such URL, and EngineFailed; neither has a password in it.
    """
    form = "write mysql://USER@HOST:PORT/DATABASE"
    try:
        given = urlsplit(url)
        port = given.port or _PORT
        options = parse_qs(given.query, strict_parsing=bool(given.query))
    except ValueError:
        raise UsageError(f"--url: not a URL of MariaDB; {form}") from None
    if given.scheme not in ("mysql", "mariadb") or not given.hostname:
        raise UsageError(f"--url: not a URL of MariaDB; {form}")
    if unknown := options.keys() - {"ssl-ca"}:
        raise UsageError(f"--url: {min(unknown)!r} is not known; there is ssl-ca=FILE")
    where = f"{given.hostname}:{port}"
    how: dict[str, Any] = {
        "host": given.hostname,
        "port": port,
        "user": unquote(given.username or ""),
        "password": unquote(given.password or "") or os.environ.get("MYSQL_PWD", ""),
        "database": unquote(given.path.lstrip("/")) or None,
        "charset": "utf8mb4",
        "read_default_file": "~/.my.cnf",
        "program_name": "atoll",
    }
    if ca := options.get("ssl-ca"):
        how |= {"ssl_ca": ca[0], "ssl_verify_cert": True, "ssl_verify_identity": True}
    try:
        return MariaDBClient(where, how, timeout_s=timeout_s)
    except configparser.Error as fault:
        # Its own words would repeat the line, which may have the password.
        raise UsageError(
            f"~/.my.cnf: cannot be read ({type(fault).__name__}): sections of lines key=value are "
            "wanted, each name once"
        ) from None
    except (pymysql.Error, OSError) as fault:
        raise EngineFailed(
            f"no MariaDB lets us in at {where} ({words(fault)}); see whether it runs, and give a "
            "password by MYSQL_PWD or ~/.my.cnf"
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
