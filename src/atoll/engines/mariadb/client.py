"""A client of one MariaDB server (PyMySQL), for `connect` and `reach` of the engine.

Every fault is an EngineFailed of one line. After a query past its limit or a lost server the client
cancels the query, closes its connection and stays closed. The limit holds even if the server no
longer answers.

MariaDB notices that a client has gone only when it sends something. So a second connection ends a
query that is given up (KILL). Each session also has a limit of its own (max_statement_time), in
case nobody is left to send the KILL. A result that came by the session's limit does not count:
`select benchmark(...)` then gives 0 without an error.
"""

from __future__ import annotations

import configparser
import contextlib
import json
import math
import os
import socket
import threading
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pymysql
from pymysql.constants import CLIENT, CR, FIELD_TYPE

from atoll.engines.api import Column, QueryResult
from atoll.engines.mariadb.profile import operators_of
from atoll.engines.mariadb.settings import COLLATION, DATABASE, USER
from atoll.engines.operators import reading
from atoll.engines.sql.connections import plain_rows
from atoll.engines.sql.endings import QueryEnd, TimeLimit
from atoll.errors import EngineFailed, UsageError
from atoll.host.caller import variable
from atoll.schema.operators import QueryProfile
from atoll.schema.text import first_line

_KILL_S = 5.0
_DEFAULT_PORT = 3306
_URL_FORM = "write mysql://USER@HOST:PORT/DATABASE"
_URL_OPTIONS = ("ssl-ca", "unix_socket")
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

_PEAK = "select max_memory_used from information_schema.processlist where id = connection_id()"


class MariaDBClient(QueryEnd):
    """See `atoll.engines.api.Client`. Not for use by several threads at once.

    `how`: the arguments of PyMySQL's `connect`. Raises pymysql.Error and OSError."""

    server = "MariaDB"

    def __init__(self, where: str, how: Mapping[str, Any], *, timeout_s: float) -> None:
        self.where = where
        self._how = {"client_flag": CLIENT.MULTI_STATEMENTS, "autocommit": True, **how}
        self._limit_s = 0.0  # of the session
        self._asker: int | None = None  # the thread that waits for an answer
        self._connection: pymysql.Connection[Any] | None = None
        self._connection, self._line = self._connect(timeout_s)

    def _connect(
        self, timeout_s: float, peer: tuple[str, int] | None = None
    ) -> tuple[pymysql.Connection[Any], socket.socket]:
        """A connection, and a second descriptor of its socket: PyMySQL cannot end a wait from
        outside, and TLS takes the first one over. `peer`: the address that the name led to before.
        """
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
                connection.close()  # it may own the socket already
            opened.close()
            line.close()
            raise
        return connection, line

    def execute(self, sql: str, *, timeout_s: float) -> QueryResult:
        connection = self._connection
        if connection is None:
            raise self.closed()
        session = connection.thread_id()
        clock = TimeLimit(self._line.fileno(), timeout_s, lambda: self._kill(session))
        self._asker = threading.get_ident()
        try:
            with self.asking(timeout_s), clock, connection.cursor() as cursor:
                if timeout_s != self._limit_s:
                    # Later than ours: at its own limit a server may answer with a partial result.
                    cursor.execute(_limit(connection.get_server_info(), timeout_s + _KILL_S))
                    self._limit_s = timeout_s
                started = time.perf_counter()
                cursor.execute(sql)
                rows = list(cursor.fetchall())
                while cursor.nextset():  # of several statements the last one answers
                    rows = list(cursor.fetchall())
                seconds = time.perf_counter() - started
                columns = _columns(cursor)
        finally:
            self._asker = None
        return QueryResult(columns, plain_rows(columns, rows), seconds)

    def profile(self, sql: str, *, timeout_s: float) -> QueryProfile:
        """See `atoll.engines.api.ProfilingClient`. The memory is the session's, from before the
        query on."""
        self.execute("flush status", timeout_s=timeout_s)
        ((told,), *_) = self.execute(f"analyze format=json {sql}", timeout_s=timeout_s).rows
        ((peak,),) = self.execute(_PEAK, timeout_s=timeout_s).rows
        try:
            with reading():
                operators = operators_of(json.loads(told))
        except ValueError as fault:
            raise EngineFailed(f"{self.where}: the plan cannot be read ({fault})") from None
        return QueryProfile(
            operators=operators, peak_bytes=peak, peak_source="MAX_MEMORY_USED of the session"
        )

    @property
    def is_closed(self) -> bool:
        return self._connection is None

    def explain(self, fault: Exception) -> EngineFailed | None:
        """See `QueryEnd`."""
        if not isinstance(fault, pymysql.Error):
            return None
        is_lost = fault.args and fault.args[0] in _LOST
        return self.gone(_reason(fault)) if is_lost else EngineFailed(_reason(fault))

    def cancel(self) -> None:
        """See `QueryEnd`."""
        if self._connection is not None:
            self._kill(self._connection.thread_id())

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
            # So that closing cannot wait. To the server it is a client that has gone.
            self._line.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(pymysql.Error, OSError):
            connection.close()
        self._line.close()

    def _kill(self, session: int) -> None:
        """If this fails, the session's own limit ends the query."""
        with contextlib.suppress(Exception):
            # Another server behind the same name may have a session with that number.
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
        # A bench may be idle for longer than a user's configuration allows.
        "init_command": "set session wait_timeout = 31536000",
        **more,
    }
    try:
        return MariaDBClient(path, how, timeout_s=timeout_s)
    except (pymysql.Error, OSError) as fault:
        raise EngineFailed(
            f"no MariaDB answers at {path} ({_reason(fault)}); see 'atoll ps' for what is running"
        ) from None


def reach(url: str, *, timeout_s: float) -> MariaDBClient:
    """A client of the server at `url`.

    Raises UsageError for any other URL, and EngineFailed; neither contains a password.
    """
    where, how = _read_url(url)
    try:
        return MariaDBClient(where, how, timeout_s=timeout_s)
    except (configparser.Error, UnicodeError) as fault:
        # The fault's own message would repeat the line, which may contain the password.
        raise UsageError(
            f"~/.my.cnf: cannot be read ({type(fault).__name__}); write sections of lines "
            "key=value, with each key once and the password in Latin-1"
        ) from None
    except (pymysql.Error, OSError) as fault:
        raise EngineFailed(
            f"cannot log in to MariaDB at {where} ({_reason(fault)}); check that it is running, "
            "and put the password in MYSQL_PWD or ~/.my.cnf"
        ) from None


def _read_url(url: str) -> tuple[str, dict[str, Any]]:
    """Where the server is, without a password, and the arguments with which PyMySQL connects.

    MYSQL_PWD and the section [client] of ~/.my.cnf supply whatever the URL leaves out. The client
    uses TLS if the server offers it; `?ssl-ca=FILE` requires it and verifies the server's
    certificate. `?unix_socket=PATH` is a server of this machine. Raises UsageError.
    """
    try:
        given = urlsplit(url)
        port = given.port or _DEFAULT_PORT
        options = parse_qs(given.query, keep_blank_values=True, strict_parsing=bool(given.query))
        (given.hostname or "").encode("idna")  # a UnicodeError is a ValueError
    except ValueError:
        raise UsageError(f"URL: not a MariaDB URL; {_URL_FORM}") from None
    path = options.get("unix_socket", [""])[0]
    if given.scheme not in ("mysql", "mariadb") or not (given.hostname or path):
        raise UsageError(f"URL: not a MariaDB URL; {_URL_FORM}")
    if unknown := options.keys() - set(_URL_OPTIONS):
        raise UsageError(f"URL: {min(unknown)!r} is not an option; use {' or '.join(_URL_OPTIONS)}")
    # From an empty variable. Without the file nothing would be verified.
    if empty := [name for name, values in options.items() if not all(values)]:
        raise UsageError(f"URL: {empty[0]!r} has no value; give it one, or leave it out")
    how: dict[str, Any] = {
        "user": unquote(given.username or ""),
        # As bytes, because PyMySQL encodes text as Latin-1.
        "password": os.fsencode(unquote(given.password or "") or variable("MYSQL_PWD")),
        "database": unquote(given.path.lstrip("/")) or None,
        "charset": "utf8mb4",
        "read_default_file": "~/.my.cnf",
        "program_name": "atoll",
    }
    if path:
        return path, how | {"unix_socket": path, "ssl_disabled": True}
    how |= {"host": given.hostname, "port": port}
    if ca := options.get("ssl-ca"):
        how |= {"ssl_ca": ca[0], "ssl_verify_cert": True, "ssl_verify_identity": True}
    return f"{given.hostname}:{port}", how


def _columns(cursor: Any) -> tuple[Column, ...]:
    return tuple(
        Column(name, _type_name(code, length, scale))
        for name, code, _, length, _, scale, *_ in cursor.description or ()
    )


def _type_name(code: int, length: int, scale: int) -> str:
    """'decimal(15,2)', 'bigint'. The length of a decimal includes its point and its sign."""
    if code in _DECIMALS:
        return f"decimal({length - 1 - (scale > 0)},{scale})"
    return _NAMES.get(code, "varchar")


def _reason(fault: Exception) -> str:
    """The server's message, else the system's."""
    message = fault.strerror if isinstance(fault, OSError) else fault.args[-1] if fault.args else ""
    return first_line(str(message or fault) or type(fault).__name__)
