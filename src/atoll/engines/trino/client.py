"""A client of one Trino or Presto coordinator (the Python package `trino`); what `connect` gives.

Presto answers the same protocol, with headers of another name. Promises, as
`atoll.engines.sql.client`: every fault is an EngineFailed of one line, without a password; after a
query past its limit, or a lost server, the query is cancelled where the server still listens, and
the client stays closed. The limit also holds against a server that answers nothing any more.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import re
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import requests
from trino.client import ClientSession, TrinoQuery, TrinoRequest
from trino.exceptions import Error, HttpError, TrinoConnectionError, TrinoQueryError

from atoll.engines.api import Client, Column, QueryResult
from atoll.engines.sql.types import Kind, column_from_json, kind_of
from atoll.engines.trino import detector as trino_detector
from atoll.engines.trino.address import Address, parse_endpoint, parse_url
from atoll.engines.trino.wire import Wire
from atoll.errors import EngineFailed, ServerGone

_CANCEL_LIMIT_S = 1.0
_DETECTOR_LIMIT_S = 1.0  # of both its answers; a count does without them
_WORDS_CHARACTERS = 300
_TRUSTED = "REQUESTS_CA_BUNDLE"  # requests' own variable
_ACTIVE = "select http_uri from system.runtime.nodes where not coordinator and state = 'active'"


class TrinoClient:
    """See `atoll.engines.api.Client`. Not for use by several threads at once.

    `own`: a coordinator of our own on loopback, to which no proxy leads; of a cluster that runs
    already the workers are only counted, without a word on whether that lasts.
    """

    def __init__(self, address: Address, *, header: str = "Trino", own: bool = False) -> None:
        self.settles_s = 0.0  # see `atoll.engines.api.SettlingClient`
        self._asks_detector = own
        self._address = address
        self._closed = self._answered = False
        self._out: TrinoQuery | None = None  # what has no answer yet
        self._wire = Wire(header, password=bool(address.password))
        self._http = requests.Session()
        self._http.trust_env = not own
        self._http.mount("http://", self._wire)
        self._http.mount("https://", self._wire)
        if address.password:
            self._http.auth = (address.user, address.password)
        self._request = TrinoRequest(
            host=address.host,
            port=address.port,
            http_scheme=address.scheme,
            http_session=self._http,
            client_session=ClientSession(
                user=address.user,
                catalog=address.catalog,
                schema=address.schema,
                source="atoll",
                timezone="UTC",
                headers={"X-Trino-Client-Info": "atoll"},
            ),
            max_attempts=1,  # a time with a repetition in it is no measurement
        )

    def execute(self, sql: str, *, timeout_s: float) -> QueryResult:
        # Values as they travel: they become ours by the rules that hold for every engine.
        self._out = query = TrinoQuery(self._request, sql, legacy_primitive_types=True)
        self._wire.deadline = time.monotonic() + timeout_s
        if self._closed:  # asked after `_out` is there: else close() of another thread missed it
            self._out = None
            raise self._shut()
        try:
            started = time.perf_counter()
            rows = list(query.execute())
            described = query.columns or []
            columns = tuple(Column(each["name"], each["type"].lower()) for each in described)
            kinds = [kind_of(column.type) for column in columns]
            values = _plain(rows, kinds)
            seconds = time.perf_counter() - started
        except BaseException as fault:
            raise self._failure(query, fault, timeout_s) from None
        self._out, self._answered = None, True
        if query.cancelled:  # by close() of another thread; the rows end there
            raise self._shut()
        return QueryResult(columns, values, seconds)

    def _failure(self, query: TrinoQuery, fault: BaseException, timeout_s: float) -> BaseException:
        """What `execute` raises. Only a query that the server refused leaves the client open."""
        late, closed = self._wire.is_late, self._closed
        if isinstance(fault, TrinoQueryError) and not closed:
            self._out = None
            return EngineFailed(_line(fault.message))
        self._out = query  # close() of another thread may have come before it could be cancelled
        self.close()
        if not isinstance(fault, Exception):
            return fault
        if closed:
            return self._shut()
        if isinstance(fault, TrinoConnectionError | requests.RequestException):
            if late:
                return EngineFailed(f"no answer within {timeout_s:g} s; the query was cancelled")
            return self._unreached(_reason(fault))
        if isinstance(fault, HttpError):
            return EngineFailed(f"{self._address.place}: {_refusal(fault)}")
        if isinstance(fault, Error | ValueError | ArithmeticError | KeyError | TypeError):
            return EngineFailed(
                f"{self._address.place} does not answer as a Trino or Presto does "
                f"({_line(str(fault))})"
            )
        return fault

    def _shut(self) -> EngineFailed:
        return EngineFailed(f"the connection to {self._address.place} was closed")

    def instances(self, *, timeout_s: float) -> int:
        if self._closed or not self._asks_detector:
            return len(self.execute(_ACTIVE, timeout_s=timeout_s).rows)
        # Asked first: whom it trusts by then, the list of nodes does not drop any more.
        self._wire.deadline = time.monotonic() + min(timeout_s, _DETECTOR_LIMIT_S)
        trusted = trino_detector.trusted(self._http, self._address.place, self._address.user)
        rows = self.execute(_ACTIVE, timeout_s=timeout_s).rows
        active = {urlsplit(str(row[0])).netloc for row in rows}
        self.settles_s = trino_detector.settles_s(active, trusted)
        return len(rows)

    def nodes(self, *, timeout_s: float) -> list[str]:
        """See `atoll.engines.api.ClusterClient`."""
        found = self.execute("select http_uri from system.runtime.nodes", timeout_s=timeout_s)
        return [str(row[0]) for row in found.rows]

    def greet(self, *, timeout_s: float) -> None:
        """Raises EngineFailed while the server is not there or still starting. Costs it nothing,
        while a query that is asked too early makes the start longer."""
        self._wire.deadline = time.monotonic() + timeout_s
        try:
            said = self._http.get(f"{self._address.place}/v1/info").json()
        except (requests.RequestException, ValueError) as fault:
            raise EngineFailed(f"no answer at {self._address.place} ({_reason(fault)})") from None
        if not isinstance(said, dict) or said.get("starting") is not False:
            raise EngineFailed(f"the server at {self._address.place} is still starting")
        self._answered = True

    def _unreached(self, why: str) -> EngineFailed:
        place = self._address.place
        if self._answered:
            return ServerGone(f"the server at {place} is gone ({why}); see its log")
        if "CERTIFICATE_VERIFY_FAILED" in why:
            why += f"; name a file with the certificates that you trust by {_TRUSTED}"
            return EngineFailed(f"{place}: {why}")
        return EngineFailed(f"no Trino or Presto answers at {place} ({why}); see whether it runs")

    def close(self) -> None:
        """What is out is cancelled, also where another thread waits for it."""
        self._closed = True  # first: `execute` asks for it once `_out` is there
        query, self._out = self._out, None
        if query is not None:
            self._wire.deadline = time.monotonic() + _CANCEL_LIMIT_S
            with contextlib.suppress(Error, HttpError, requests.RequestException):
                query.cancel()
        self._http.close()


def connect_all(
    endpoints: Sequence[str], *, timeout_s: float, header: str = "Trino"
) -> list[Client]:
    """A client for each of a layout's endpoints, in order; none stays open if one has no answer."""
    clients: list[TrinoClient] = []
    try:
        for endpoint in endpoints:
            clients.append(TrinoClient(parse_endpoint(endpoint), header=header, own=True))
            clients[-1].greet(timeout_s=timeout_s)
    except EngineFailed:
        for each in clients:
            each.close()
        raise
    return list(clients)


def reach(url: str, *, timeout_s: float, header: str = "Trino") -> Client:
    """A client of the cluster at `url`, which has answered."""
    client = TrinoClient(parse_url(url), header=header)
    try:
        client.execute("select 1", timeout_s=timeout_s)
    except EngineFailed:
        client.close()
        raise
    return client


def _plain(rows: list[Any], kinds: Sequence[Kind]) -> list[tuple[Any, ...]]:
    """By column: value by value 10,000 rows take five times as long. Raises as
    `column_from_json`, and ValueError for rows that have not all those columns."""
    if not rows:
        return []
    travelled = zip(*rows, strict=True)
    columns = [_plain_column(*each) for each in zip(travelled, kinds, strict=True)]
    return list(zip(*columns, strict=True))


def _plain_column(values: Sequence[Any], kind: Kind) -> Sequence[Any]:
    if kind is Kind.DATE:
        # Text always; whole numbers are dates in Atoll's own protocol alone.
        read = datetime.date.fromisoformat
        return [None if value is None else read(value) for value in values]
    if kind is not Kind.TEXT:
        return column_from_json(values, kind)
    if set(map(type, values)) <= {str, type(None)}:
        return values
    # Arrays, maps and rows.
    return [
        value if value is None or isinstance(value, str) else json.dumps(value) for value in values
    ]


def _refusal(fault: HttpError) -> str:
    """'error 401: Access Denied', where the client package has the bytes as Python writes them."""
    return re.sub(r"""^(error \d+: )b(['"])(.*)\2$""", r"\1\3", _line(str(fault)))


def _line(text: str) -> str:
    return (text.strip().splitlines() or ["no word"])[0][:_WORDS_CHARACTERS]


def _reason(fault: BaseException) -> str:
    """The first cause: what wraps it tells objects' addresses too."""
    while inner := fault.__cause__ or fault.__context__:
        fault = inner
    return _line(getattr(fault, "strerror", None) or str(fault))
